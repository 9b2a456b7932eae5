# SPDX-License-Identifier: Apache-2.0
"""Learned corrections of cameras' poses, SO(3) x R^3, one per training image."""

from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from diorama.cameras import Cameras, Rays
from diorama.nn.camera_neighbours import CameraNeighbours
from diorama.nn.rows import rows

SMALL_ANGLE = 1e-4
TRANSLATION_WEIGHT, ROTATION_WEIGHT = 1e-2, 1e-3


class PoseRefinement(nn.Module):
    """Six numbers per image, zero at first: a translation and a rotation vector in the world.

    Directions are rotated from the left and origins are moved. Cameras err together with those
    around them, and the scene may drift a little with all of them: so a view that nobody
    photographed is corrected as the training cameras around it are.
    """

    def __init__(self, cameras: Cameras, training: tuple[int, ...]):
        super().__init__()
        self.corrections = nn.Parameter(torch.zeros(len(cameras), 6))
        self.neighbours = CameraNeighbours(cameras, training)

    def initialize(self) -> None:
        """No correction."""
        nn.init.zeros_(self.corrections)

    def forward(self, rays: Rays, image_index: Int[Tensor, " R"]) -> Rays:
        """The corrected rays of the images they belong to."""
        correction = rows(self.corrections, image_index)
        rotation = rotation_matrices(correction[:, 3:])
        directions = (rotation @ rays.directions[:, :, None])[:, :, 0]
        return replace(rays, origins=rays.origins + correction[:, :3], directions=directions)

    def of_image(self, camera: Cameras, image_index: int) -> Cameras:
        """The camera of one image, corrected: its rays are those that `forward` gives."""
        return _moved(camera, self.corrections[image_index])

    def at(self, camera: Cameras) -> Cameras:
        """The camera of a picture that nobody took, as the training cameras around it moved."""
        return _moved(camera, self.neighbours.mean_around(camera, self.corrections))

    def penalty(self) -> Float[Tensor, ""]:
        """Mean length of the corrections, weighted: keeps the whole scene from drifting."""
        translation, rotation = self.corrections.split(3, dim=1)
        return TRANSLATION_WEIGHT * _mean_norm(translation) + ROTATION_WEIGHT * _mean_norm(rotation)


def _moved(camera: Cameras, correction: Float[Tensor, "6"]) -> Cameras:
    pose = camera.world_from_camera.to(correction)
    turned = rotation_matrices(correction[None, 3:]) @ pose[:, :, :3]
    center = pose[:, :, 3:] + correction[None, :3, None]
    return replace(camera, world_from_camera=torch.cat((turned, center), dim=2))


def rotation_matrices(vectors: Float[Tensor, "R 3"]) -> Float[Tensor, "R 3 3"]:
    """Rodrigues' formula; differentiable at zero, where sin(a)/a and its kin have limits."""
    square = vectors.square().sum(dim=1)
    is_small = square < SMALL_ANGLE**2
    angle = torch.where(is_small, torch.ones_like(square), square).sqrt()
    sine = torch.where(is_small, 1.0 - square / 6.0, angle.sin() / angle)
    cosine = torch.where(is_small, 0.5 - square / 24.0, (1.0 - angle.cos()) / angle.square())
    x, y, z = vectors.unbind(dim=1)
    zero = torch.zeros_like(x)
    cross = torch.stack((zero, -z, y, z, zero, -x, -y, x, zero), dim=1).view(-1, 3, 3)
    identity = torch.eye(3, dtype=vectors.dtype, device=vectors.device)
    return identity + sine[:, None, None] * cross + cosine[:, None, None] * (cross @ cross)


def _mean_norm(vectors: Float[Tensor, "N 3"]) -> Float[Tensor, ""]:
    """The mean length; the tiny constant gives zero vectors a gradient of zero, not NaN."""
    return (vectors.square().sum(dim=1) + 1e-16).sqrt().mean()

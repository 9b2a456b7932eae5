# SPDX-License-Identifier: Apache-2.0
"""Learned corrections of the training cameras' poses, SO(3) x R^3, one per image."""

from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from diorama.cameras import Rays
from diorama.nn.rows import rows

SMALL_ANGLE = 1e-4
TRANSLATION_WEIGHT, ROTATION_WEIGHT = 1e-2, 1e-3


class PoseRefinement(nn.Module):
    """Six numbers per image, zero at first: a translation and a rotation vector in the world.

    Directions are rotated from the left and origins are moved. Only training rays are corrected:
    held-out cameras are rendered where the data set puts them.
    """

    def __init__(self, num_images: int):
        super().__init__()
        self.corrections = nn.Parameter(torch.zeros(num_images, 6))

    def initialize(self) -> None:
        """No correction."""
        nn.init.zeros_(self.corrections)

    def forward(self, rays: Rays, image_index: Int[Tensor, " R"]) -> Rays:
        """The corrected rays of the images they belong to."""
        correction = rows(self.corrections, image_index)
        rotation = rotation_matrices(correction[:, 3:])
        directions = (rotation @ rays.directions[:, :, None])[:, :, 0]
        return replace(rays, origins=rays.origins + correction[:, :3], directions=directions)

    def pose(
        self, world_from_camera: Float[Tensor, "3 4"], image_index: int
    ) -> Float[Tensor, "3 4"]:
        """The corrected pose of one image: the one whose rays `forward` gives."""
        correction = self.corrections[image_index]
        rotation = rotation_matrices(correction[None, 3:])[0]
        center = world_from_camera[:, 3] + correction[:3]
        return torch.cat((rotation @ world_from_camera[:, :3], center[:, None]), dim=1)

    def penalty(self) -> Float[Tensor, ""]:
        """Mean length of the corrections, weighted: keeps the whole scene from drifting."""
        translation, rotation = self.corrections.split(3, dim=1)
        return TRANSLATION_WEIGHT * _mean_norm(translation) + ROTATION_WEIGHT * _mean_norm(rotation)


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

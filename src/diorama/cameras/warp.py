# SPDX-License-Identifier: Apache-2.0
"""Drawings of an ideal lens seen through a distorted one: the way back from `straight_camera`."""

import math
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from diorama.cameras.camera_model import CameraModel
from diorama.cameras.cameras import Cameras
from diorama.cameras.undistort import source_pixels

_EDGE_SAMPLES = 257
_WIDEST_TANGENT = math.tan(math.radians(75))
"""A pinhole never reaches farther than this from its axis."""


def covering_camera(camera: Cameras) -> Cameras:
    """The ideal camera of the same pose and focal lengths whose image covers a distorted one's."""
    if int(camera.model[0]) == int(CameraModel.EQUIRECTANGULAR):
        raise ValueError("a panorama is not covered by one image")
    directions = _edge_directions(camera)
    if int(camera.model[0]) == int(CameraModel.FISHEYE):
        ideal = replace(camera, distortion=torch.zeros_like(camera.distortion))
        plane = _on_ideal_fisheye(directions)
    else:
        ideal = camera
        plane = directions[:, :2] / directions[:, 2:].clamp(min=1e-6)
        plane = plane.clamp(-_WIDEST_TANGENT, _WIDEST_TANGENT)
    low, high = plane.amin(dim=0), plane.amax(dim=0)
    focal = camera.intrinsics[0, :2]
    size = ((high - low) * focal).ceil() + 2  # a pixel of margin on each side
    center = 1 - low * focal
    return replace(
        ideal,
        intrinsics=torch.cat((focal, center))[None],
        size=size.long()[None],
        distortion=torch.zeros_like(camera.distortion),
    )


def warped(
    image: Float[Tensor, "H W *C"], drawn_with: Cameras, camera: Cameras
) -> Float[Tensor, "h w *C"]:
    """The drawing as `camera`, at the same place, sees it; bilinear."""
    flat = image if image.ndim == 3 else image[..., None]
    xy, _ = source_pixels(drawn_with, camera, slice(0, camera.height()))
    size = xy.new_tensor([flat.shape[1], flat.shape[0]])
    grid = (2 * xy / size - 1).clamp(-2, 2).nan_to_num(nan=2.0).to(flat.dtype)[None]
    sampled = torch.nn.functional.grid_sample(
        flat.permute(2, 0, 1)[None], grid, padding_mode="border", align_corners=False
    )[0].permute(1, 2, 0)
    return sampled if image.ndim == 3 else sampled[..., 0]


def _edge_directions(camera: Cameras) -> Float[Tensor, "E 3"]:
    """Unit directions through the border of the image, in the camera's frame."""
    width, height = camera.width(), camera.height()
    along = torch.linspace(0, 1, _EDGE_SAMPLES, device=camera.intrinsics.device)
    zero, one = torch.zeros_like(along), torch.ones_like(along)
    corners = ((along, zero), (along, one), (zero, along), (one, along))
    xy = torch.cat([torch.stack((x * width, y * height), dim=1) for x, y in corners])
    return camera.unproject(torch.zeros(len(xy), dtype=torch.int64, device=xy.device), xy)


def _on_ideal_fisheye(directions: Float[Tensor, "E 3"]) -> Float[Tensor, "E 2"]:
    """theta times the direction around the axis."""
    radius = directions[:, :2].norm(dim=1)
    theta = torch.atan2(radius, directions[:, 2])
    return directions[:, :2] * (theta / radius.clamp(min=1e-9))[:, None]

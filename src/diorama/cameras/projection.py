# SPDX-License-Identifier: Apache-2.0
"""Camera-frame points to pixels and back, for one camera model at a time, one camera per row.

The camera frame is OpenCV's: x right, y down, z forward. Pixel coordinates are continuous and the
centre of the top left pixel is (0.5, 0.5). `Cameras` picks the function for each row's model.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from diorama.cameras.distortion import distort, distort_angle, undistort, undistort_angle


class Projected(NamedTuple):
    """Pixel coordinates, depth, and whether the camera model holds for that point."""

    xy: Float[Tensor, "*B 2"]
    depth: Float[Tensor, "*B"]
    is_valid: Bool[Tensor, "*B"]


class Unprojected(NamedTuple):
    """Unit directions of pixels, their footprints and whether the camera model holds there.

    footprint: how far apart the rays of neighbouring pixels are per unit distance along the ray,
    averaged over the two image axes (see `Rays.radii`).
    """

    directions: Float[Tensor, "R 3"]
    footprint: Float[Tensor, " R"]
    is_valid: Bool[Tensor, " R"]


def _tiny(like: Tensor) -> float:
    """A squared length whose root is negligible and still divides safely."""
    return 1e-16 if like.dtype == torch.float32 else 1e-30


def project_perspective(
    points: Float[Tensor, "R 3"],
    intrinsics: Float[Tensor, "R 4"],
    distortion: Float[Tensor, "R 9"] | None,
    fold: Float[Tensor, " R"] | None,
) -> Projected:
    """Perspective projection; depth is z. Valid in front of the camera and within the fold."""
    z = points[:, 2]
    is_valid = z > 1e-9
    plane = points[:, :2] / torch.where(is_valid, z, torch.ones_like(z)).unsqueeze(-1)
    if distortion is not None and fold is not None:
        is_valid = is_valid & (torch.linalg.vector_norm(plane, dim=-1) <= fold)
        plane = distort(plane, distortion)
    return Projected(plane * intrinsics[:, :2] + intrinsics[:, 2:], z, is_valid)


def unproject_perspective(
    xy: Float[Tensor, "R 2"],
    intrinsics: Float[Tensor, "R 4"],
    distortion: Float[Tensor, "R 9"] | None,
    fold: Float[Tensor, " R"] | None,
) -> Unprojected:
    """The inverse of `project_perspective`.

    The footprint at z = 1 is the mean length of the columns of d(plane)/d(pixel); times the
    direction's z it becomes per unit distance.
    """
    per_pixel = intrinsics[:, :2].reciprocal()
    plane = (xy - intrinsics[:, 2:]) * per_pixel
    if distortion is None or fold is None:
        footprint = per_pixel.mean(-1)
        is_valid = torch.ones_like(footprint, dtype=torch.bool)
    else:
        plane, jacobian, is_valid = undistort(plane, distortion, fold)
        a, b, d = jacobian.unbind(-1)
        determinant = (a * d - b * b).abs().clamp(min=1e-6)
        along_x = torch.hypot(d, b) * per_pixel[:, 0]
        along_y = torch.hypot(a, b) * per_pixel[:, 1]
        footprint = 0.5 * (along_x + along_y) / determinant
    x, y = plane.unbind(-1)
    z = torch.rsqrt(x * x + y * y + 1)
    return Unprojected(torch.stack([x * z, y * z, z], dim=-1), footprint * z, is_valid)


def project_fisheye(
    points: Float[Tensor, "R 3"],
    intrinsics: Float[Tensor, "R 4"],
    distortion: Float[Tensor, "R 9"],
    fold: Float[Tensor, " R"],
) -> Projected:
    """Equidistant fisheye projection; depth is z, which is negative beyond 90 degrees."""
    plane, z = points[:, :2], points[:, 2]
    radius = plane.square().sum(-1).clamp(min=_tiny(points)).sqrt()
    theta = torch.atan2(radius, z)
    distorted = plane * (distort_angle(theta, distortion)[0] / radius).unsqueeze(-1)
    is_valid = (theta <= fold) & (theta < math.pi - 1e-6) & ((radius > 1e-9) | (z > 1e-9))
    return Projected(distorted * intrinsics[:, :2] + intrinsics[:, 2:], z, is_valid)


def unproject_fisheye(
    xy: Float[Tensor, "R 2"],
    intrinsics: Float[Tensor, "R 4"],
    distortion: Float[Tensor, "R 9"],
    fold: Float[Tensor, " R"],
) -> Unprojected:
    """The inverse of `project_fisheye`; the footprint is measured on the unit sphere."""
    per_pixel = intrinsics[:, :2].reciprocal()
    plane = (xy - intrinsics[:, 2:]) * per_pixel
    radius = plane.square().sum(-1).clamp(min=_tiny(xy)).sqrt()
    theta, slope, is_valid = undistort_angle(radius, distortion, fold)
    around = torch.sin(theta) / radius
    outwards = slope.clamp(min=1e-6).reciprocal()
    directions = torch.cat([plane * around.unsqueeze(-1), torch.cos(theta).unsqueeze(-1)], dim=-1)
    # A pixel step splits into a part outwards and a part around; written so that it also holds at
    # the centre, where "outwards" has no direction and both derivatives are 1.
    share = (plane / radius.unsqueeze(-1)).square()
    squared = around.square().unsqueeze(-1) * (1 - share) + outwards.square().unsqueeze(-1) * share
    footprint = (squared.sqrt() * per_pixel).mean(-1)
    return Unprojected(directions, footprint, is_valid & (theta < math.pi))


def project_equirectangular(points: Float[Tensor, "R 3"], size: Int[Tensor, "R 2"]) -> Projected:
    """Longitude and latitude; depth is the distance. x = 0 and x = width both look backwards."""
    x, y, z = points.unbind(-1)
    distance = torch.linalg.vector_norm(points, dim=-1)
    longitude = torch.atan2(x, z)
    latitude = torch.atan2(-y, torch.hypot(x, z))
    unit = torch.stack([0.5 + longitude / (2 * math.pi), 0.5 - latitude / math.pi], dim=-1)
    return Projected(unit * size.to(points.dtype), distance, distance > 1e-9)


def unproject_equirectangular(xy: Float[Tensor, "R 2"], size: Int[Tensor, "R 2"]) -> Unprojected:
    """The inverse of `project_equirectangular`; valid inside the image."""
    per_pixel = size.to(xy.dtype).reciprocal()
    unit = xy * per_pixel
    longitude = (unit[:, 0] - 0.5) * (2 * math.pi)
    latitude = (0.5 - unit[:, 1]) * math.pi
    level = torch.cos(latitude)
    directions = torch.stack(
        [level * torch.sin(longitude), -torch.sin(latitude), level * torch.cos(longitude)], dim=-1
    )
    footprint = math.pi * (level.abs() * per_pixel[:, 0] + 0.5 * per_pixel[:, 1])
    return Unprojected(directions, footprint, ((unit >= 0) & (unit <= 1)).all(-1))

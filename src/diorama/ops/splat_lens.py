# SPDX-License-Identifier: Apache-2.0
"""How points near a camera-frame position move on the image: two lenses and their Jacobians.

Torch only: the specification of what `project_gaussians` does for `pinhole` and `fisheye`.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

BORDER = 0.15
"""A pinhole Jacobian is taken at most this share of the image beyond its edge."""
STRAIGHT_BEHIND = 1e-6
"""A fisheye sees nothing of an angle to the backward axis whose sine has a smaller square."""
_SERIES_UP_TO = 0.04
_SERIES_TERMS = 12


@dataclass(frozen=True)
class Landing:
    """Where points land, their depth, and d(center)/d(point)."""

    centers: Float[Tensor, "N 2"]
    depths: Float[Tensor, " N"]
    jacobians: Float[Tensor, "N 2 3"]


def pinhole(
    points: Float[Tensor, "N 3"], intrinsics: Float[Tensor, " 4"], size: tuple[int, int]
) -> Landing:
    """u = fx x / z + cx; the depth is z; `size` is width, height.

    Far outside the image the Jacobian grows without limit and a Gaussian would smear over all of
    it, so the Jacobian is that of the nearest place within 15 % of a width or height of the image
    (the limits of x / z are then those of the true principal point plus 0.3 tan(fov / 2)).
    """
    z = points[:, 2]
    focal, principal = intrinsics[:2], intrinsics[2:]
    centers = focal * points[:, :2] / z[:, None] + principal
    extent = centers.new_tensor(size)
    offset = centers.clamp(-BORDER * extent, (1 + BORDER) * extent) - principal
    zero = torch.zeros_like(z)
    du = torch.stack([focal[0] / z, zero, -offset[:, 0] / z], dim=-1)
    dv = torch.stack([zero, focal[1] / z, -offset[:, 1] / z], dim=-1)
    return Landing(centers, z, torch.stack([du, dv], dim=1))


def fisheye(points: Float[Tensor, "N 3"], intrinsics: Float[Tensor, " 4"]) -> Landing:
    """u = fx theta x / rho + cx, with rho^2 = x^2 + y^2 and theta the angle from the axis; the
    depth is the distance, but 0 straight behind the camera, where there is no direction to go.

    With a = theta / rho and b = (z / d^2 - a) / rho^2, d the distance, the rows of the Jacobian are
    fx (a + x^2 b, x y b, -x / d^2) and fy (x y b, a + y^2 b, -y / d^2).
    """
    x, y, z = points.unbind(-1)
    distance = torch.linalg.vector_norm(points, dim=-1)
    squared = distance * distance
    sine_squared, cosine = (x * x + y * y) / squared, z / distance
    ratio, slope = _angle_ratios(sine_squared, cosine)
    a, b = ratio / distance, slope / (squared * distance)
    centers = intrinsics[:2] * points[:, :2] * a[:, None] + intrinsics[2:]
    du = torch.stack([a + x * x * b, x * y * b, -x / squared], dim=-1)
    dv = torch.stack([x * y * b, a + y * y * b, -y / squared], dim=-1)
    jacobians = intrinsics[:2, None] * torch.stack([du, dv], dim=1)
    is_behind = (sine_squared < STRAIGHT_BEHIND) & (cosine < 0)
    return Landing(centers, torch.where(is_behind, 0.0, distance), jacobians)


def _angle_ratios(sine_squared: Tensor, cosine: Tensor) -> tuple[Tensor, Tensor]:
    """F = theta / sin and G = (cos - F) / sin^2 of the angle, by series in sin^2 near the axis."""
    is_near = (sine_squared < _SERIES_UP_TO) & (cosine > 0)
    # Where the other branch is taken, this one sees numbers at which its gradient is finite.
    squared = torch.where(is_near, 0.5, sine_squared)
    far_cosine = torch.where(is_near, 0.5, cosine)
    sine = squared.sqrt()
    ratio = torch.atan2(sine, far_cosine) / sine
    slope = (far_cosine - ratio) / squared
    small = torch.where(is_near, sine_squared, 0.0)
    near_ratio, near_slope = torch.zeros_like(small), torch.zeros_like(small)
    for k in reversed(range(_SERIES_TERMS)):
        binomial = [math.comb(2 * j, j) / 4**j for j in (k, k + 1)]
        near_ratio = near_ratio * small + binomial[0] / (2 * k + 1)
        near_slope = near_slope * small - binomial[1] * 4 * (k + 1) / (4 * (k + 1) ** 2 - 1)
    return torch.where(is_near, near_ratio, ratio), torch.where(is_near, near_slope, slope)

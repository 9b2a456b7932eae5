# SPDX-License-Identifier: Apache-2.0
"""Camera paths as poses: orbit, circle, spiral, spherify, and a smooth curve through given poses.

Every path is `N 3 4` world_from_camera with OpenCV axes; `camera.along(path)` gives it optics.
Paths that close do not repeat their first pose at the end, so they loop without a stutter.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from diorama.cameras.interpolation import interpolate
from diorama.cameras.number import Number
from diorama.cameras.path_json import CameraPath, path_from_json, path_to_json, read_path
from diorama.cameras.poses import (
    Vector,
    as_vector,
    average_pose,
    look_at,
    nearest_point_to_axes,
    spherical_pose,
)
from diorama.cameras.similarity import Similarity

__all__ = [
    "CameraPath",
    "Spherified",
    "blender_circle",
    "interpolate",
    "orbit",
    "path_from_json",
    "path_to_json",
    "read_path",
    "spherify",
    "spiral",
    "spiral_focus_depth",
]


def orbit(
    center: Vector,
    radius: Number,
    elevation_degrees: Number = 30.0,
    num: int = 120,
    up: Vector = (0.0, 0.0, 1.0),
    start_degrees: Number = 0.0,
) -> Float[Tensor, "K 3 4"]:
    """A full turn around `center` at a distance of `radius`, always looking at it.

    Counter-clockwise seen from above; positive elevations are above. At +-90 degrees the camera
    spins on the spot.
    """
    center = as_vector(center)
    up = normalize(as_vector(up).to(center), dim=0)
    spare = torch.zeros_like(up)
    spare[int(up.abs().argmin())] = 1
    side = normalize(spare - (spare @ up) * up, dim=0)
    other = torch.linalg.cross(up, side)
    turn = torch.arange(num, dtype=torch.float64) * (2 * math.pi / num)
    turn = (turn + math.radians(start_degrees)).to(center).unsqueeze(-1)
    elevation = math.radians(elevation_degrees)
    level = torch.cos(turn) * side + torch.sin(turn) * other
    outwards = math.cos(elevation) * level + math.sin(elevation) * up
    right = torch.cos(turn) * other - torch.sin(turn) * side
    forward = -outwards
    down = torch.linalg.cross(forward, right)
    return torch.stack([right, down, forward, center + radius * outwards], dim=-1)


def blender_circle(
    num: int = 40, elevation_degrees: Number = -30.0, radius: Number = 4.0
) -> Float[Tensor, "K 3 4"]:
    """NeRF's render path for Blender scenes: angles from -180 up to 180 degrees."""
    return torch.stack(
        [spherical_pose(-180 + 360 * i / num, elevation_degrees, radius) for i in range(num)]
    )


def spiral_focus_depth(nearest: Number, farthest: Number) -> float:
    """LLFF's look-at depth 1 / (0.25 / (0.9 nearest) + 0.75 / (5 farthest))."""
    return 1 / (0.25 / (0.9 * nearest) + 0.75 / (5 * farthest))


def spiral(
    poses: Float[Tensor, "N 3 4"],
    focus_depth: Number,
    num: int = 120,
    turns: Number = 2.0,
    z_rate: Number = 0.5,
) -> Float[Tensor, "K 3 4"]:
    """LLFF's spiral around the average pose, looking at the point `focus_depth` in front of it.

    The radii are the 90th percentiles of the cameras' offsets along the average camera's axes;
    the offset at angle a is (r_x cos a, r_y sin a, r_z sin(a z_rate)).
    """
    average = average_pose(poses)
    axes, center = average[:, :3], average[:, 3]
    radii = torch.quantile(((poses[:, :, 3] - center) @ axes).abs(), 0.9, dim=0)
    angle = torch.arange(num, dtype=torch.float64) * (2 * math.pi * turns / num)
    unit = torch.stack([torch.cos(angle), torch.sin(angle), torch.sin(angle * z_rate)], dim=-1)
    eyes = (unit.to(poses) * radii) @ axes.T + center
    target = center + focus_depth * axes[:, 2]
    up = -poses[:, :, 1].sum(0)
    return torch.stack([look_at(eye, target, up) for eye in eyes])


class Spherified(NamedTuple):
    """The new world around the scene's centre, and a circle of poses in it."""

    similarity: Similarity
    circle: Float[Tensor, "K 3 4"]


def spherify(poses: Float[Tensor, "N 3 4"], num: int = 120) -> Spherified:
    """NeRF's `spherify`: an inward-facing capture as cameras on the unit sphere, +z up.

    The origin is the point nearest to all optical axes, up is the mean camera offset from it, and
    the root mean square camera distance becomes 1. The circle runs at the cameras' mean height.
    """
    center = nearest_point_to_axes(poses)
    offsets = poses[:, :, 3] - center
    rms = float(offsets.square().sum(-1).mean().sqrt())
    if rms < 1e-9:
        raise ValueError("spherify needs cameras that are apart from the point they look at")
    up = offsets.mean(0)
    if float(up.norm()) < 1e-3 * rms:
        # Cameras all around leave no preferred side, so up is where the images' tops point.
        up = -poses[:, :, 1].mean(0)
    up = normalize(up, dim=0)
    side = normalize(torch.linalg.cross(poses.new_tensor([0.1, 0.2, 0.3]), up), dim=0)
    axes = torch.stack([side, torch.linalg.cross(up, side), up])
    similarity = Similarity(1 / rms, axes, -(axes @ center) / rms)

    height = float(similarity.apply(poses[:, :, 3])[:, 2].mean())
    elevation = math.degrees(math.asin(max(-1.0, min(1.0, height))))
    return Spherified(similarity, orbit((0.0, 0.0, 0.0), 1.0, elevation, num).to(poses))

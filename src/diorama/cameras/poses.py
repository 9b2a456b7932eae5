# SPDX-License-Identifier: Apache-2.0
"""Camera poses: looking at things, changing axes, averaging, recentring.

A pose is `world_from_camera`, 3 x 4, whose columns are the camera's right, down and forward axes
and its centre, in world coordinates (OpenCV axes).
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from diorama.cameras.number import Number
from diorama.cameras.similarity import Similarity

Vector = Float[Tensor, " 3"] | Sequence[Number]
CANCELLED = 1e-4
"""Means of unit axes that are shorter than this are rounding errors."""


def flip_yz(poses: Float[Tensor, "*B R 4"]) -> Float[Tensor, "*B R 4"]:
    """Poses (3 x 4 or 4 x 4) from OpenGL camera axes (right, up, back) to OpenCV's, or back.

    Only the camera's axes change; the world stays. Its own inverse.
    """
    return poses * poses.new_tensor([1.0, -1.0, -1.0, 1.0])


def as_vector(value: Vector, dtype: torch.dtype = torch.float32) -> Float[Tensor, " 3"]:
    """A 3-vector from a tensor or any three numbers."""
    vector = value if isinstance(value, Tensor) else torch.tensor(value, dtype=dtype)
    if vector.shape != (3,):
        raise ValueError(f"a vector has three numbers, got the shape {tuple(vector.shape)}")
    return vector


def look_at(eye: Vector, target: Vector, up: Vector = (0.0, 0.0, 1.0)) -> Float[Tensor, "3 4"]:
    """The pose at `eye` that looks at `target` with `up` towards the top of the image.

    An `up` along the line of sight leaves the roll open; then the world axis that is farthest from
    the line of sight serves as up.
    """
    eye = as_vector(eye)
    forward = as_vector(target).to(eye) - eye
    if float(forward.norm()) == 0:
        raise ValueError("look_at needs a target that differs from eye")
    forward = normalize(forward, dim=0)
    up = normalize(as_vector(up).to(eye), dim=0)
    right = torch.linalg.cross(forward, up)
    if float(right.norm()) < 1e-6:
        spare = torch.zeros_like(up)
        spare[int(forward.abs().argmin())] = 1
        right = torch.linalg.cross(forward, spare)
    right = normalize(right, dim=0)
    return torch.stack([right, torch.linalg.cross(forward, right), forward, eye], dim=-1)


def spherical_pose(
    angle_degrees: Number,
    elevation_degrees: Number,
    radius: Number,
    dtype: torch.dtype = torch.float32,
) -> Float[Tensor, "3 4"]:
    """NeRF's pose on a sphere, looking at the origin with +z up, returned with OpenCV axes.

    The centre is radius * (sin a cos e, cos a cos e, -sin e): negative elevations are *above* the
    ground, as in the original code.
    """
    a, e = math.radians(angle_degrees), math.radians(elevation_degrees)
    sin_a, cos_a, sin_e, cos_e = math.sin(a), math.cos(a), math.sin(e), math.cos(e)
    right = (-cos_a, sin_a, 0.0)
    back = (sin_a * cos_e, cos_a * cos_e, -sin_e)
    up = (sin_a * sin_e, cos_a * sin_e, cos_e)
    center = tuple(radius * value for value in back)
    return flip_yz(torch.tensor([right, up, back, center], dtype=dtype).T)


def average_pose(poses: Float[Tensor, "N 3 4"]) -> Float[Tensor, "3 4"]:
    """Mean centre, mean forward axis, and the mean down axis made orthogonal to it (LLFF)."""
    mean_down, mean_forward = poses[:, :, 1].mean(0), poses[:, :, 2].mean(0)
    forward = normalize(mean_forward, dim=0)
    right = torch.linalg.cross(mean_down, forward)
    if float(right.norm()) < CANCELLED or float(mean_forward.norm()) < CANCELLED:
        raise ValueError("these poses have no average: their axes cancel out")
    right = normalize(right, dim=0)
    down = torch.linalg.cross(forward, right)
    return torch.stack([right, down, forward, poses[:, :, 3].mean(0)], dim=-1)


def recentre(poses: Float[Tensor, "N 3 4"]) -> tuple[Similarity, Float[Tensor, "N 3 4"]]:
    """The rigid motion that makes the average pose the identity, and the moved poses.

    In the new world the average camera stands at the origin and looks along +z with y down.
    """
    average = average_pose(poses)
    recentred_from_world = Similarity(1.0, average[:, :3], average[:, 3]).inverse()
    return recentred_from_world, recentred_from_world.apply_to_poses(poses)


def nearest_point_to_axes(poses: Float[Tensor, "N 3 4"]) -> Float[Tensor, " 3"]:
    """The point with the least summed squared distance to all optical axes.

    It solves sum_i (I - d_i d_i^T) (p - o_i) = 0. Where the axes leave a direction undetermined
    (all parallel), p is the solution nearest to the mean camera centre.
    """
    centers, forward = poses[:, :, 3].double(), normalize(poses[:, :, 2].double(), dim=-1)
    mean = centers.mean(0)
    across = torch.eye(3, dtype=torch.float64, device=poses.device) - (
        forward[:, :, None] * forward[:, None, :]
    )
    right_side = (across @ (centers - mean).unsqueeze(-1)).mean(0)
    offset = torch.linalg.pinv(across.mean(0), rtol=1e-9, hermitian=True) @ right_side
    return (mean + offset.squeeze(-1)).to(poses.dtype)

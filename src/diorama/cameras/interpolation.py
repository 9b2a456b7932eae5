# SPDX-License-Identifier: Apache-2.0
"""A smooth curve through given poses: Catmull-Rom for centres, squad for rotations."""

from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diorama.cameras.cameras import Cameras
from diorama.cameras.quaternions import (
    matrix_from_quaternion,
    quaternion_from_matrix,
    squad,
    squad_tangents,
)


def interpolate(
    keyframes: Float[Tensor, "N 3 4"], num: int, loop: bool = False
) -> Float[Tensor, "K 3 4"]:
    """`num` poses through the keyframes, the same time between each two.

    An open path starts at the first and ends at the last keyframe; a loop returns to the first
    without repeating it. Position and rotation and their speeds are continuous. A keyframe is hit
    exactly when its time is sampled: num - 1 (loop: num) a multiple of the number of segments.
    """
    count = len(keyframes)
    if count == 0 or num < 1:
        raise ValueError(f"interpolate needs a keyframe and num >= 1, got {count} and {num}")
    if count == 1:
        return keyframes.expand(num, 3, 4).clone()
    start, t = _times(count, num, loop, keyframes.device)
    poses = keyframes.double()
    centers = _catmull_rom(poses[:, :, 3], start, t, loop)
    keys = quaternion_from_matrix(poses[:, :, :3])
    tangents = _tangents(keys, loop)
    end = (start + 1) % count
    rotation = matrix_from_quaternion(
        squad((keys[start], keys[end]), (tangents[start], tangents[end]), t)
    )
    return torch.cat([rotation, centers.unsqueeze(-1)], dim=-1).to(keyframes.dtype)


def interpolate_cameras(keyframes: Cameras, num: int, loop: bool = False) -> Cameras:
    """`interpolate` for whole cameras: intrinsics and distortion change linearly between keys.

    All keyframes must share one camera model; the image size is the first keyframe's.
    """
    if len(keyframes) == 0 or bool((keyframes.model != keyframes.model[0]).any()):
        raise ValueError("keyframes must exist and share one camera model")
    poses = interpolate(keyframes.world_from_camera, num, loop)
    start, t = _times(len(keyframes), num, loop, poses.device)
    end = (start + 1) % len(keyframes)
    t = t.to(poses.dtype).unsqueeze(-1)
    path = keyframes[:1].along(poses)
    return replace(
        path,
        intrinsics=torch.lerp(keyframes.intrinsics[start], keyframes.intrinsics[end], t),
        distortion=torch.lerp(keyframes.distortion[start], keyframes.distortion[end], t),
    )


def _times(
    count: int, num: int, loop: bool, device: torch.device
) -> tuple[Int[Tensor, " K"], Float[Tensor, " K"]]:
    """Each frame's segment (the keyframe it starts from) and its time within, in [0, 1]."""
    segments = count if loop else max(count - 1, 1)
    steps = torch.arange(num, dtype=torch.float64, device=device) * segments
    time = steps / num if loop else steps / max(num - 1, 1)
    start = time.floor().long().clamp(max=segments - 1)
    return start, time - start


def _catmull_rom(
    points: Float[Tensor, "N 3"], start: Int[Tensor, " K"], t: Float[Tensor, " K"], loop: bool
) -> Float[Tensor, "K 3"]:
    """Each segment's cubic; an open end is continued by reflecting its neighbour."""
    if loop:
        padded = torch.cat([points[-1:], points, points[:1], points[1:2]])
    else:
        padded = torch.cat([2 * points[:1] - points[1:2], points, 2 * points[-1:] - points[-2:-1]])
    a, b, c, d = (padded[start + i] for i in range(4))
    t = t.unsqueeze(-1)
    cubic = (3 * (b - c) + d - a) * t + 2 * a - 5 * b + 4 * c - d
    return b + 0.5 * t * (c - a + t * cubic)


def _tangents(keys: Float[Tensor, "N 4"], loop: bool) -> Float[Tensor, "N 4"]:
    before, after = keys.roll(1, 0), keys.roll(-1, 0)
    tangents = squad_tangents(before, keys, after)
    if loop:
        return tangents
    return torch.cat([keys[:1], tangents[1:-1], keys[-1:]])

# SPDX-License-Identifier: Apache-2.0
"""Scenes of several rigid objects: Gaussians stay in their object's frame, and the objects move.

As in the taichi system, an object's motion is a different camera pose for it. Harmonics are
therefore evaluated in the object's own frame and need no rotation.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diorama.cameras import quaternion_from_matrix


def seen_from_objects(
    means: Float[Tensor, "N 3"],
    quaternions: Float[Tensor, "N 4"],
    object_ids: Int[Tensor, " N"],
    world_from_objects: Float[Tensor, "K 3 4"],
    camera_center: Float[Tensor, "3"],
) -> tuple[Float[Tensor, "N 3"], Float[Tensor, "N 4"], Float[Tensor, "K 3"]]:
    """Means and rotations in the world, and the camera's centre in each object's frame."""
    turn = world_from_objects[:, :, :3]
    moved = (turn[object_ids] @ means[:, :, None])[:, :, 0] + world_from_objects[object_ids, :, 3]
    turned = multiply(quaternion_from_matrix(turn)[object_ids], quaternions)
    offset = camera_center - world_from_objects[:, :, 3]
    return moved, turned, (turn.transpose(1, 2) @ offset[:, :, None])[:, :, 0]


def multiply(a: Float[Tensor, "N 4"], b: Float[Tensor, "N 4"]) -> Float[Tensor, "N 4"]:
    """Hamilton's product of quaternions wxyz: first b, then a."""
    aw, ax, ay, az = a.unbind(dim=1)
    bw, bx, by, bz = b.unbind(dim=1)
    return torch.stack(
        (
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ),
        dim=1,
    )

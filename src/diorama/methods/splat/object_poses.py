# SPDX-License-Identifier: Apache-2.0
"""Scenes of several rigid objects: Gaussians stay in their object's frame, and the objects move.

As in the taichi system, an object's motion is a different camera pose for it. Harmonics are
therefore evaluated in the object's own frame and need no rotation.
"""

from jaxtyping import Float, Int
from torch import Tensor

from diorama.cameras import quaternion_from_matrix
from diorama.cameras.quaternions import multiply


def seen_from_objects(
    means: Float[Tensor, "N 3"],
    quaternions: Float[Tensor, "N 4"],
    object_ids: Int[Tensor, " N"],
    world_from_objects: Float[Tensor, "K 3 4"],
    camera_center: Float[Tensor, "3"],
) -> tuple[Float[Tensor, "N 3"], Float[Tensor, "N 4"], Float[Tensor, "K 3"]]:
    """Means and rotations in the world, and the camera's centre in each object's frame."""
    if len(object_ids) and int(object_ids.max()) >= len(world_from_objects):
        raise ValueError(
            f"world_from_objects must have a pose for each object up to {int(object_ids.max())},"
            f" got {len(world_from_objects)}"
        )
    turn = world_from_objects[:, :, :3]
    moved = (turn[object_ids] @ means[:, :, None])[:, :, 0] + world_from_objects[object_ids, :, 3]
    turned = multiply(quaternion_from_matrix(turn)[object_ids], quaternions)
    offset = camera_center - world_from_objects[:, :, 3]
    return moved, turned, (turn.transpose(1, 2) @ offset[:, :, None])[:, :, 0]

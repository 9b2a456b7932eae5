# SPDX-License-Identifier: Apache-2.0
"""The direction that a flat Gaussian faces."""

import torch
from jaxtyping import Float
from torch import Tensor

from diorama.cameras.quaternions import matrix_from_quaternion


def gaussian_normals(
    quaternions: Float[Tensor, "N 4"],
    log_scales: Float[Tensor, "N 3"],
    means: Float[Tensor, "N 3"],
    camera_center: Float[Tensor, " 3"],
) -> Float[Tensor, "N 3"]:
    """Each Gaussian's shortest axis in world coordinates, of the two signs the one that faces the
    camera; differentiable in the quaternions.

    >>> facing = torch.tensor([[1.0, 0.0, 0.0, 0.0]]), torch.tensor([[0.0, 0.0, -3.0]])
    >>> gaussian_normals(*facing, torch.tensor([[0.0, 0.0, 5.0]]), torch.zeros(3))
    tensor([[-0., -0., -1.]])
    """
    shortest = log_scales.argmin(-1)
    axes = matrix_from_quaternion(quaternions)
    index = shortest[:, None, None].expand(-1, 3, 1)
    normals = axes.gather(2, index)[:, :, 0]
    is_turned_away = (normals * (camera_center - means)).sum(-1, keepdim=True) < 0
    return torch.where(is_turned_away, -normals, normals)

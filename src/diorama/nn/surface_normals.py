# SPDX-License-Identifier: Apache-2.0
"""Normals of a density field, from looks around a surface."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

TETRAHEDRON = ((1.0, -1.0, -1.0), (-1.0, -1.0, 1.0), (-1.0, 1.0, -1.0), (1.0, 1.0, 1.0))


def surface_normals(
    density_at: Callable[[Float[Tensor, "N 3"]], Float[Tensor, " N"]],
    points: Float[Tensor, "N 3"],
    reach: float,
) -> Float[Tensor, "N 3"]:
    """The direction in which matter ends, at each point; zero where all sides are alike.

    A trained density is a rough step, whose derivative says little. So it is asked how opaque
    `reach` of the field is at a tetrahedron's corners, `reach` away on each axis.
    """
    normals = torch.zeros_like(points)
    for corner in TETRAHEDRON:
        side = points.new_tensor(corner)
        opacity = -torch.expm1(-reach * density_at(points + reach * side))
        normals -= opacity[:, None] * side
    return torch.nn.functional.normalize(normals, dim=1)

# SPDX-License-Identifier: Apache-2.0
"""Cells of a regular grid that fills the unit cube."""

from jaxtyping import Float, Int64
from torch import Tensor


def cell_index(unit_points: Float[Tensor, "N 3"], resolution: int) -> Int64[Tensor, " N"]:
    """Index of each point's cell, x slowest; points outside the cube belong to its nearest cell."""
    cell = (unit_points.detach() * resolution).long().clamp_(0, resolution - 1)
    x, y, z = cell.unbind(dim=1)
    return (x * resolution + y) * resolution + z

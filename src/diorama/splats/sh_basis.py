# SPDX-License-Identifier: Apache-2.0
"""Real spherical harmonics of degrees 0 to 3 with the signs and order of Gaussian splatting files.

Degree l has the orders m = -l .. l. `diorama.ops` has a fast kernel for the same values; this copy
exists because files are read below that layer.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

SH_DC = 0.28209479177387814
"""The value of the constant harmonic: one colour c is stored as (c - 0.5) / SH_DC."""


def sh_basis(directions: Float[Tensor, "N 3"], degree: int) -> Float[Tensor, "N K"]:
    """The K = (degree + 1)^2 harmonics of unit directions."""
    if not 0 <= degree <= 3:
        raise ValueError(f"degree must be 0 to 3, got {degree}")
    x, y, z = directions.unbind(-1)
    xx, yy, zz = x * x, y * y, z * z
    values = [
        torch.full_like(x, SH_DC),
        -0.4886025119029199 * y,
        0.4886025119029199 * z,
        -0.4886025119029199 * x,
        1.0925484305920792 * x * y,
        -1.0925484305920792 * y * z,
        0.31539156525252005 * (3 * zz - 1),
        -1.0925484305920792 * x * z,
        0.5462742152960396 * (xx - yy),
        -0.5900435899266435 * y * (3 * xx - yy),
        2.890611442640554 * x * y * z,
        -0.4570457994644658 * y * (5 * zz - 1),
        0.3731763325901154 * z * (5 * zz - 3),
        -0.4570457994644658 * x * (5 * zz - 1),
        1.445305721320277 * z * (xx - yy),
        -0.5900435899266435 * x * (xx - 3 * yy),
    ]
    return torch.stack(values[: (degree + 1) ** 2], dim=-1)


def sphere_directions(count: int) -> Float[Tensor, "{count} 3"]:
    """Evenly spread unit directions in float64 (a golden-angle spiral)."""
    index = torch.arange(count, dtype=torch.float64)
    z = 1 - (2 * index + 1) / count
    angle = index * (math.pi * (3 - math.sqrt(5)))
    radius = (1 - z * z).sqrt()
    return torch.stack([radius * angle.cos(), radius * angle.sin(), z], dim=-1)

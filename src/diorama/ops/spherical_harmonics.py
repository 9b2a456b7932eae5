# SPDX-License-Identifier: Apache-2.0
"""Real spherical harmonics of unit directions, up to five bands.

Band l = 0 .. 4 has the orders m = -l .. l, so `num_bands` bands have num_bands^2 values: 1, 4, 9,
16 or 25. Signs and order are those of 3-D Gaussian splatting and tiny-cuda-nn (the
Condon-Shortley phase is kept): 0.2821; -0.4886 y, 0.4886 z, -0.4886 x; ...
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from diorama import native
from diorama.ops.once import once_differentiable

MAX_BANDS = 5


def spherical_harmonics_reference(
    directions: Float[Tensor, "N 3"], num_bands: int
) -> Float[Tensor, "N {num_bands}**2"]:
    """The polynomials in torch, differentiable any number of times."""
    _check(directions, num_bands)
    x, y, z = directions.unbind(-1)
    xx, yy, zz = x * x, y * y, z * z
    bands = [
        [torch.full_like(x, 0.28209479177387814)],
        [-0.48860251190291987 * y, 0.48860251190291987 * z, -0.48860251190291987 * x],
        [
            1.0925484305920792 * x * y,
            -1.0925484305920792 * y * z,
            0.94617469575755997 * zz - 0.31539156525251999,
            -1.0925484305920792 * x * z,
            0.54627421529603959 * (xx - yy),
        ],
        [
            0.59004358992664352 * y * (yy - 3 * xx),
            2.8906114426405538 * x * y * z,
            0.45704579946446572 * y * (1 - 5 * zz),
            0.3731763325901154 * z * (5 * zz - 3),
            0.45704579946446572 * x * (1 - 5 * zz),
            1.4453057213202769 * z * (xx - yy),
            0.59004358992664352 * x * (3 * yy - xx),
        ],
        [
            2.5033429417967046 * x * y * (xx - yy),
            1.7701307697799304 * y * z * (yy - 3 * xx),
            0.94617469575756008 * x * y * (7 * zz - 1),
            0.66904654355728921 * y * z * (3 - 7 * zz),
            0.1057855469152043 * (35 * zz * zz - 30 * zz + 3),
            0.66904654355728921 * x * z * (3 - 7 * zz),
            0.47308734787878004 * (xx - yy) * (7 * zz - 1),
            1.7701307697799304 * x * z * (3 * yy - xx),
            0.62583573544917614 * (xx * xx - 6 * xx * yy + yy * yy),
        ],
    ]
    return torch.stack([value for band in bands[:num_bands] for value in band], dim=-1)


def spherical_harmonics(
    directions: Float[Tensor, "N 3"], num_bands: int
) -> Float[Tensor, "N {num_bands}**2"]:
    """The first `num_bands` bands; once differentiable in the directions.

    The gradient is that of the polynomials. Of a direction that was normalised, the part along it
    is removed by the normalisation's own gradient.

    >>> spherical_harmonics(torch.tensor([[0.0, 0.0, 1.0]]), 2)
    tensor([[ 0.2821, -0.0000,  0.4886, -0.0000]])
    """
    _check(directions, num_bands)
    if not native.serves(directions):
        return spherical_harmonics_reference(directions, num_bands)
    return _SphericalHarmonics.apply(directions, num_bands)


def _check(directions: Tensor, num_bands: int) -> None:
    if directions.shape[1:] != (3,):
        raise ValueError(f"directions must have the shape (N, 3), got {tuple(directions.shape)}")
    if not 1 <= num_bands <= MAX_BANDS:
        raise ValueError(f"num_bands must be 1 to {MAX_BANDS}, got {num_bands}")


class _SphericalHarmonics(torch.autograd.Function):
    """The native kernel."""

    @staticmethod
    def forward(ctx: Any, directions: Tensor, num_bands: int) -> Tensor:
        directions = directions.detach().contiguous()
        values = directions.new_empty(len(directions), num_bands**2)
        native.module.spherical_harmonics_forward(
            directions, num_bands, values, native.num_threads()
        )
        ctx.save_for_backward(directions)
        ctx.num_bands = num_bands
        return values

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_values: Tensor) -> tuple[Tensor, None]:
        (directions,) = ctx.saved_tensors
        grad_directions = torch.empty_like(directions)
        native.module.spherical_harmonics_backward(
            directions,
            grad_values.contiguous(),
            ctx.num_bands,
            grad_directions,
            native.num_threads(),
        )
        return grad_directions, None

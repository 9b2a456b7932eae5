# SPDX-License-Identifier: Apache-2.0
"""Spherical harmonics of a batch of view directions."""

from collections.abc import Callable

import torch
from torch import Tensor

from diorama.bench.case import Case, Work
from diorama.ops.spherical_harmonics import spherical_harmonics, spherical_harmonics_reference

NUM_DIRECTIONS = 1 << 18


def cases() -> list[Case]:
    """Four bands, as all methods use them."""
    return [_case(num_bands=4, with_backward=False), _case(num_bands=4, with_backward=True)]


def _case(num_bands: int, with_backward: bool) -> Case:
    generator = torch.Generator().manual_seed(0)
    directions = torch.nn.functional.normalize(
        torch.randn(NUM_DIRECTIONS, 3, generator=generator), dim=-1
    ).requires_grad_(with_backward)
    cotangent = torch.randn(NUM_DIRECTIONS, num_bands**2, generator=generator)

    def work(op: Callable[[Tensor, int], Tensor]) -> Work:
        if not with_backward:
            return lambda: op(directions, num_bands)
        return lambda: torch.autograd.grad(op(directions, num_bands), directions, cotangent)

    floats = 3 + num_bands**2
    return Case(
        op="spherical_harmonics",
        what=f"{num_bands} bands, {'forward + backward' if with_backward else 'forward'}",
        kernel=work(spherical_harmonics),
        reference=work(spherical_harmonics_reference),
        compiled=work(torch.compile(spherical_harmonics_reference)),
        num_items=NUM_DIRECTIONS,
        unit="directions",
        num_bytes=4.0 * NUM_DIRECTIONS * (floats * 2 + 3 if with_backward else floats),
    )

# SPDX-License-Identifier: Apache-2.0
"""SSIM as a loss of splatting, at the sizes of its training images."""

from collections.abc import Callable

import torch
from torch import Tensor

from diorama.bench.case import Case, Work
from diorama.ops.ssim import Padding, ssim, ssim_reference


def cases() -> list[Case]:
    """With a border, and a gradient for the render only."""
    return [
        _case(height, width, with_backward)
        for height, width in ((400, 400), (1000, 1600))
        for with_backward in (False, True)
    ]


def _case(height: int, width: int, with_backward: bool) -> Case:
    generator = torch.Generator().manual_seed(0)
    a, b = torch.rand(2, height, width, 3, generator=generator)
    a.requires_grad_(with_backward)

    def work(op: Callable[[Tensor, Tensor, Padding], Tensor]) -> Work:
        if not with_backward:
            return lambda: op(a, b, "same")
        return lambda: torch.autograd.grad(op(a, b, "same"), a)

    # Forward: two images; backward: these again, three maps out and in, one gradient.
    num_numbers = height * width * 3
    return Case(
        op="ssim",
        what=f"{width} x {height} x 3, {'forward + backward' if with_backward else 'forward'}",
        kernel=work(ssim),
        reference=work(ssim_reference),
        compiled=work(torch.compile(ssim_reference)),
        num_items=height * width,
        unit="pixels",
        num_bytes=4.0 * num_numbers * (11 if with_backward else 2),
        # Two directions of 11 taps over four images, and over three on the way back.
        num_flops=2.0 * 22 * num_numbers * (7 if with_backward else 4),
    )

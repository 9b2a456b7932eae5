# SPDX-License-Identifier: Apache-2.0
"""Colours of a scene's Gaussians, all of them visible."""

from collections.abc import Callable

import torch
from torch import Tensor

from diorama.bench.case import Case, Work
from diorama.bench.splats import NUM_GAUSSIANS, gaussians
from diorama.ops.sh_colors import sh_colors, sh_colors_reference


def cases() -> list[Case]:
    """All four bands, and the first alone of Gaussians that store all, as early in training."""
    return [_case(degree, with_backward) for degree in (3, 0) for with_backward in (False, True)]


def _case(degree: int, with_backward: bool) -> Case:
    generator = torch.Generator().manual_seed(0)
    dc, rest = (
        torch.randn(NUM_GAUSSIANS, count, 3, generator=generator).requires_grad_(with_backward)
        for count in (1, 15)
    )
    means = gaussians()[0].requires_grad_(with_backward and degree > 0)
    wanted = [t for t in (dc, rest, means) if t.requires_grad]
    center, cotangent = torch.zeros(3), torch.randn(NUM_GAUSSIANS, 3, generator=generator)
    visible = torch.ones(NUM_GAUSSIANS, dtype=torch.bool)

    def work(op: Callable[..., Tensor]) -> Work:
        if not with_backward:
            return lambda: op(dc, rest, means, center, degree, "shifted", visible)
        return lambda: torch.autograd.grad(
            op(dc, rest, means, center, degree, "shifted", visible), wanted, cotangent
        )

    # Active coefficients and the mean in, the colour out; back, colour and its gradient in, all
    # coefficients' gradients out, and for the mean's the coefficients and the mean again.
    active = 3 * (degree + 1) ** 2
    forward, backward = active + 3 + 3, 3 + 3 + 48 + (degree > 0) * (active + 3 + 3)
    return Case(
        op="sh_colors",
        what=f"degree {degree} of 3, {'forward + backward' if with_backward else 'forward'}",
        kernel=work(sh_colors),
        reference=work(sh_colors_reference),
        num_items=NUM_GAUSSIANS,
        unit="Gaussians",
        num_bytes=4.0 * NUM_GAUSSIANS * (forward + with_backward * backward),
    )

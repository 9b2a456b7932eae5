# SPDX-License-Identifier: Apache-2.0
"""Adam on a table of 8 M numbers of which gradients have reached a part, in runs of a level."""

from collections.abc import Callable

import torch
from torch import nn

from diorama.bench.case import Case
from diorama.engine.native_adam import NativeAdam

NUM_ITEMS = 1 << 23
RUN = 1 << 15


def cases() -> list[Case]:
    """The optimiser against torch's fused one, which is also memory bound."""
    return [_case(share) for share in (0.1, 0.5, 1.0)]


def _case(share: float) -> Case:
    ours, torchs = (
        _warm(kind, share)
        for kind in (
            lambda p: NativeAdam(p, lr=1e-6),
            lambda p: torch.optim.Adam(p, lr=1e-6, fused=True),
        )
    )
    # Of what is touched, four numbers are read and three written; of the rest the gradient is read.
    num_bytes = 4.0 * NUM_ITEMS * (7 * share + (1 - share))
    return Case(
        op="adam",
        what=f"{NUM_ITEMS} float32, {share:.0%} touched, step",
        kernel=ours.step,
        reference=torchs.step,
        num_items=NUM_ITEMS,
        unit="parameters",
        num_bytes=num_bytes,
    )


def _warm(
    kind: Callable[[list[nn.Parameter]], torch.optim.Optimizer], share: float
) -> torch.optim.Optimizer:
    """An optimiser whose moments are in place."""
    generator = torch.Generator().manual_seed(0)
    reached = (torch.rand(NUM_ITEMS // RUN, generator=generator) < share).repeat_interleave(RUN)
    parameter = nn.Parameter(torch.randn(NUM_ITEMS, generator=generator))
    parameter.grad = torch.randn(NUM_ITEMS, generator=generator) * reached
    optimizer = kind([parameter])
    optimizer.step()
    return optimizer

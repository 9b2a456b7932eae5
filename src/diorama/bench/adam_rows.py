# SPDX-License-Identifier: Apache-2.0
"""Adam on the harmonics of Gaussians of which a camera sees a part."""

from collections.abc import Callable

import torch

from diorama.bench.case import Case, Work
from diorama.ops.adam import AdamRule
from diorama.ops.adam_rows import adam_rows_step_, adam_rows_step_reference_

NUM_ROWS, WIDTH = 100_000, 45


def cases() -> list[Case]:
    """From a room, of which little is seen at once, to an object."""
    return [_case(share) for share in (0.1, 0.5, 0.9)]


def _case(share: float) -> Case:
    def work(op: Callable[..., None]) -> Work:
        generator = torch.Generator().manual_seed(0)
        shape = (NUM_ROWS, WIDTH)
        parameter, gradient, first = (torch.randn(shape, generator=generator) for _ in range(3))
        second = torch.rand(shape, generator=generator)
        row_steps = torch.randint(3000, (NUM_ROWS,), generator=generator).float()
        chosen = torch.rand(NUM_ROWS, generator=generator) < share
        state = (parameter, gradient, first, second, row_steps, chosen)
        return lambda: op(*state, AdamRule(lr=1e-6))

    # Of a chosen row four numbers are read and three written for each parameter.
    return Case(
        op="adam_rows",
        what=f"{NUM_ROWS} rows of {WIDTH} float32, {share:.0%} chosen, step",
        kernel=work(adam_rows_step_),
        reference=work(adam_rows_step_reference_),
        num_items=NUM_ROWS * WIDTH,
        unit="parameters",
        num_bytes=4.0 * NUM_ROWS * WIDTH * 7 * share,
    )

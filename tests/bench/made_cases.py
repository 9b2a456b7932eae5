# SPDX-License-Identifier: Apache-2.0
"""Cases that need no kernel: adding up as many numbers as one likes."""

from collections.abc import Callable

import torch

from diorama.bench.case import Case


def made_case(
    what: str = "forward", compiled: Callable[[], object] | None = None, size: int = 1000
) -> Case:
    numbers = torch.ones(size)
    return Case(
        op="sum",
        what=what,
        kernel=numbers.sum,
        reference=lambda: numbers.double().sum().float(),
        num_items=size,
        unit="numbers",
        compiled=compiled,
        num_bytes=4.0 * size,
    )


def cannot_be_compiled() -> None:
    raise RuntimeError("\n[no] graph for this\nand a long story\n")

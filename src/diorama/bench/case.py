# SPDX-License-Identifier: Apache-2.0
"""One measurement of `diorama bench`: a kernel, its reference, and the work that both do."""

from collections.abc import Callable
from dataclasses import dataclass

Work = Callable[[], object]


@dataclass(frozen=True)
class Case:
    """A kernel call and the reference call that gives the same result."""

    op: str
    """Name of the op, such as `hash_grid`."""
    what: str
    """Sizes and direction, such as `L16 F2 T2^19, forward + backward`."""
    kernel: Work
    """One call of the op through its public function, inputs already made."""
    reference: Work
    """The same through the op's torch reference."""
    num_items: int
    """Items one call handles."""
    unit: str = "points"
    """What an item is."""
    compiled: Work | None = None
    """The reference under torch.compile; None where it cannot be compiled."""
    num_bytes: int | float | None = None
    """Least memory traffic of one call: inputs read once, outputs written once."""
    num_flops: int | float | None = None
    """Multiplications and additions of one call, where arithmetic is the limit."""

# SPDX-License-Identifier: Apache-2.0
"""The shortest time of a call: what the code needs while no neighbour is busy."""

import contextlib
import math
import time
from collections.abc import Iterator, Sequence

import torch

from diorama.bench.case import Work


def best_seconds(works: Sequence[Work], seconds: float) -> list[float]:
    """The shortest time of a call of each work, in about this much time for all together.

    Next is always the work that has had the least time so far. So they take turns, a busy moment
    of the machine hits all of them, and each gets an equal share: a quick work is called often, a
    slow one at least twice. The first calls warm up; they do not count against the time.
    """
    best, spent = [math.inf] * len(works), [0.0] * len(works)
    for index, work in enumerate(works):
        best[index] = _seconds(work)
    while min(spent) < seconds / len(works):
        index = spent.index(min(spent))
        elapsed = _seconds(works[index])
        spent[index] += elapsed
        best[index] = min(best[index], elapsed)
    return best


def _seconds(work: Work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


@contextlib.contextmanager
def threads(count: int) -> Iterator[None]:
    """Let torch and the kernels use this many threads, and afterwards as many as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)

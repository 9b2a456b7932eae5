# SPDX-License-Identifier: Apache-2.0
"""Measures a case: kernel, reference and compiled reference in turns, then the kernel alone."""

import logging
from dataclasses import dataclass

import torch

from diorama.bench.case import Case, Work
from diorama.bench.neighbours import busy_neighbours, cpu_times
from diorama.bench.timing import best_seconds, threads


@dataclass(frozen=True)
class Measurement:
    """The shortest seconds of one call. Holds no tensors, so that a case can be dropped."""

    op: str
    what: str
    unit: str
    num_items: int
    num_bytes: int | float | None
    num_flops: int | float | None
    kernel: float
    kernel_one_thread: float
    reference: float
    compiled: float | None
    """None where there is nothing to compile, compiling was not wanted, or it failed."""
    compile_error: str | None
    """Why torch.compile failed, if it did."""
    neighbours: float | None
    """CPUs that other programs kept busy meanwhile, on average; None if that is not known."""


def measure(case: Case, seconds: float, with_compile: bool) -> Measurement:
    """Measure a case, in `seconds` on all threads of torch and half of that on one thread."""
    compiled = case.compiled if with_compile else None
    compile_error = _compile(compiled) if compiled else None
    works = [case.kernel, case.reference]
    if compiled and compile_error is None:
        works.append(compiled)
    before = cpu_times()
    kernel, reference, *rest = best_seconds(works, seconds)
    one_thread = kernel
    if torch.get_num_threads() > 1:
        with threads(1):
            (one_thread,) = best_seconds([case.kernel], seconds / 2)
    return Measurement(
        op=case.op,
        what=case.what,
        unit=case.unit,
        num_items=case.num_items,
        num_bytes=case.num_bytes,
        num_flops=case.num_flops,
        kernel=kernel,
        kernel_one_thread=one_thread,
        reference=reference,
        compiled=rest[0] if rest else None,
        compile_error=compile_error,
        neighbours=busy_neighbours(before),
    )


def _compile(compiled: Work) -> str | None:
    """Make torch.compile do its work by a first call; the reason if it cannot, in one line."""
    # A reference that is compiled in pieces is measured all the same; why it is, is torch's affair.
    logging.getLogger("torch._dynamo").setLevel(logging.ERROR)
    # Otherwise a second case of the same function would be compiled for shapes of any size.
    torch.compiler.reset()
    try:
        compiled()
    except Exception as error:  # noqa: BLE001  (the compiler raises errors of every kind)
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    return None

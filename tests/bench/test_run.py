# SPDX-License-Identifier: Apache-2.0
"""A case is measured on all threads and on one; what cannot be compiled is told, not raised."""

import time

import torch

from diorama.bench.case import Case
from diorama.bench.run import measure
from tests.bench.made_cases import cannot_be_compiled, made_case


def test_times_and_facts_of_a_case():
    seen: set[int] = set()

    def kernel() -> None:
        seen.add(torch.get_num_threads())

    torch.set_num_threads(2)
    case = Case("nap", "short", kernel, lambda: time.sleep(0.02), 7, num_flops=9.0)
    got = measure(case, 0.02, with_compile=True)
    assert seen == {1, 2} and torch.get_num_threads() == 2
    assert (got.op, got.what, got.unit, got.num_items) == ("nap", "short", "points", 7)
    assert (got.num_bytes, got.num_flops) == (None, 9.0)
    assert 0 < got.kernel < got.reference and got.reference >= 0.02
    assert got.kernel_one_thread > 0
    assert got.compiled is None and got.compile_error is None


def test_the_compiled_reference_is_measured_unless_unwanted():
    calls = []
    case = made_case(compiled=lambda: calls.append(1))
    assert measure(case, 0.002, with_compile=False).compiled is None and not calls
    got = measure(case, 0.002, with_compile=True)
    assert got.compiled is not None and got.compiled > 0 and len(calls) >= 3


def test_a_failure_to_compile_is_one_line():
    got = measure(made_case(compiled=cannot_be_compiled), 0.002, with_compile=True)
    assert got.compiled is None and got.kernel > 0
    assert got.compile_error == "RuntimeError: [no] graph for this"

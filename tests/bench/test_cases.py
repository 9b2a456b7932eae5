# SPDX-License-Identifier: Apache-2.0
"""Every op's cases: listed, well formed, and they run."""

import math
from pathlib import Path

import pytest

import diorama.bench
from diorama import native
from diorama.bench import registry
from diorama.bench.registry import OPS, cases_of, choose_ops
from diorama.errors import UserError


def test_every_module_with_cases_is_listed():
    folder = Path(diorama.bench.__path__[0])
    with_cases = {path.stem for path in folder.glob("*.py") if "\ndef cases(" in path.read_text()}
    assert with_cases == set(OPS)
    assert len(set(OPS)) == len(OPS)


# Cases have the sizes of real training, and their references take seconds.
@pytest.mark.slow
@pytest.mark.skipif(native.module is None, reason="the native kernels are not built")
@pytest.mark.parametrize("op", OPS)
def test_cases_run(op: str):
    cases = cases_of(op)
    assert cases
    assert len({case.what for case in cases}) == len(cases)
    for case in cases:
        assert case.op == op
        assert case.num_items > 0 and case.unit and case.what
        for work in (case.num_bytes, case.num_flops):
            assert work is None or (work > 0 and math.isfinite(work))
        case.kernel()
        case.reference()


def test_ops_are_chosen_by_name(monkeypatch):
    monkeypatch.setattr(registry, "OPS", ("hash_grid", "march", "adam"))
    assert choose_ops([]) == ("hash_grid", "march", "adam")
    assert choose_ops(["march", "hash_grid", "march"]) == ("march", "hash_grid")
    with pytest.raises(UserError, match=r"--ops hashgrid: .* did you mean hash_grid\?"):
        choose_ops(["march", "hashgrid"])
    with pytest.raises(UserError, match="there are hash_grid, march, adam"):
        choose_ops(["xyz"])

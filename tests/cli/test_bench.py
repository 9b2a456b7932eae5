# SPDX-License-Identifier: Apache-2.0
"""`diorama bench kernels` as a user types it, on cases of a microsecond and small arrays."""

import json
import sys
from functools import partial
from types import ModuleType

import pytest
import torch

from diorama import native
from diorama.bench import machine, registry
from diorama.cli.main import main
from tests.bench.made_cases import cannot_be_compiled, made_case


@pytest.fixture
def _made_ops(monkeypatch) -> None:
    """One op with two cases, a machine measured in no time, and kernels, built or not."""
    module = ModuleType("diorama.bench.sum")
    module.__dict__["cases"] = lambda: [made_case(), made_case("backward", cannot_be_compiled)]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(registry, "OPS", ("sum",))
    small = partial(machine.measure_machine, array_bytes=1 << 16, gemm_sizes=(16,))
    monkeypatch.setattr(machine, "measure_machine", small)
    monkeypatch.setattr(native, "module", native.module or ModuleType("kernels"))


def refusal(capsys, *arguments: str) -> str:
    """The one line on stderr of a command that must exit with 2."""
    with pytest.raises(SystemExit) as stopped:
        main(list(arguments))
    lines = capsys.readouterr().err.strip().splitlines()
    assert stopped.value.code == 2
    assert len(lines) == 1 and lines[0].startswith("diorama: "), lines
    return lines[0]


@pytest.mark.usefixtures("_made_ops")
def test_the_table_and_the_file(tmp_path, capsys):
    output = tmp_path / "numbers.json"
    flags = ["--ops", "sum", "--threads", "2", "--output", str(output)]
    main(["bench", "kernels", "--quick", *flags])
    told = capsys.readouterr().out
    rows = [line for line in told.splitlines() if line.strip().startswith("sum")]
    assert "GB/s on 2 threads" in told and "GFLOP/s on 1 thread" in told
    assert len(rows) == 2 and all("numbers/s" in row and "% mem" in row for row in rows)
    assert "– (1)" in rows[1]
    assert told.count("(1) torch.compile failed: RuntimeError: [no] graph for this") == 1
    assert told.rstrip().endswith("numbers.json")
    data = json.loads(output.read_text())
    assert [case["what"] for case in data["cases"]] == ["forward", "backward"]
    assert data["machine"]["all_threads"]["num_threads"] == 2
    assert data["machine"]["versions"]["torch"] == torch.__version__


@pytest.mark.usefixtures("_made_ops")
def test_flags_may_stand_before_the_name(capsys):
    main(["bench", "--no-compile", "--quick", "--threads=1", "kernels"])
    told = capsys.readouterr().out
    assert "torch.compile" not in told and "numbers/s" in told


@pytest.mark.usefixtures("_made_ops")
def test_refusals_name_the_mistake_and_the_fix(tmp_path, capsys):
    assert "diorama bench NAME; NAME is one of kernels" in refusal(capsys, "bench")
    assert "did you mean kernels" in refusal(capsys, "bench", "kernel")
    assert "did you mean sum" in refusal(capsys, "bench", "kernels", "--ops", "summ")
    assert "did you mean --quick" in refusal(capsys, "bench", "kernels", "--quik")
    assert "at least one thread" in refusal(capsys, "bench", "kernels", "--threads", "0")
    assert "is a folder" in refusal(capsys, "bench", "kernels", "--output", str(tmp_path))
    missing = str(tmp_path / "none" / "a.json")
    assert "does not exist" in refusal(capsys, "bench", "kernels", "--output", missing)


@pytest.mark.usefixtures("_made_ops")
def test_without_kernels_there_is_nothing_to_compare(capsys, monkeypatch):
    monkeypatch.setattr(native, "module", None)
    assert "the native kernels are missing" in refusal(capsys, "bench", "kernels")

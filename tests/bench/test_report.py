# SPDX-License-Identifier: Apache-2.0
"""The table's numbers, worked out by hand from made measurements."""

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from diorama.bench.machine import Limits, Machine
from diorama.bench.neighbours import num_cpus
from diorama.bench.report import ideal_seconds, machine_lines, notes, plain, quantity, table, times
from diorama.bench.run import Measurement

MADE = Measurement(
    op="march",
    what="128^3, [forward]",
    unit="rays",
    num_items=4096,
    num_bytes=8e6,
    num_flops=3e6,
    kernel=0.002,
    kernel_one_thread=0.0038,
    reference=0.050,
    compiled=0.011,
    compile_error=None,
    neighbours=0.0,
)
ONE = Limits(1, 10e9, 90e9)
ALL = Limits(2, 20e9, 180e9)
MACHINE = Machine("Abacus 9", {"native": "v3", "torch": "2.9", "diorama": "0.1"}, ONE, ALL)


def printed(*measurements: Measurement, limits: Limits = ALL) -> list[list[str]]:
    """The rows of the table as words, each after its op."""
    file = io.StringIO()
    Console(file=file, width=130).print(table(measurements, limits))
    lines = [line.split("  ") for line in file.getvalue().splitlines()]
    words = [[word.strip() for word in line if word.strip()] for line in lines]
    return [line for line in words if line and line[0] == "march"]


def test_a_row_says_speed_ratios_limit_and_scaling():
    assert printed(MADE) == [
        ["march", "128^3, [forward]", "2.05 M rays/s", "25x", "5.5x", "20% mem", "1.9x"]
    ]


def test_what_is_not_known_is_a_dash():
    unknown = replace(MADE, compiled=None, num_bytes=None, num_flops=None)
    assert printed(unknown, limits=ONE)[0][3:] == ["25x", "–", "–", "–"]


def test_the_tighter_limit_counts():
    assert ideal_seconds(MADE, ALL) == pytest.approx((4e-4, "mem"))
    assert ideal_seconds(replace(MADE, num_flops=1.8e8), ALL) == pytest.approx((1e-3, "flop"))
    assert ideal_seconds(replace(MADE, num_bytes=None), ALL) == pytest.approx((3e6 / 180e9, "flop"))


def test_each_reason_not_to_compile_is_told_once():
    failed = [
        replace(MADE, compiled=None, compile_error=why) for why in ("no graph", "slow", "no graph")
    ]
    assert [row[4] for row in printed(MADE, *failed)] == ["5.5x", "– (1)", "– (2)", "– (1)"]
    assert notes([MADE, *failed], ALL) == [
        "(1) torch.compile failed: no graph",
        "(2) torch.compile failed: slow",
    ]


def test_a_busy_machine_is_told_about():
    all_cpus = replace(ALL, num_threads=num_cpus())
    assert notes([replace(MADE, neighbours=0.1)], all_cpus) == []
    assert notes([replace(MADE, neighbours=None)], all_cpus) == []
    (told,) = notes([MADE, replace(MADE, neighbours=0.8)], all_cpus)
    assert f"up to 0.8 of {num_cpus()} CPUs" in told and "idle machine" in told
    assert notes([replace(MADE, neighbours=0.8)], replace(ALL, num_threads=num_cpus() - 1)) == []


def test_the_machine_in_three_lines():
    cpu, memory, arithmetic = machine_lines(MACHINE)
    assert cpu == "Abacus 9, 2 threads; kernels v3, torch 2.9, diorama 0.1"
    assert "20.0 GB/s on 2 threads, 10.0 GB/s on 1 thread" in memory
    assert "180 GFLOP/s on 2 threads, 90 GFLOP/s on 1 thread" in arithmetic
    assert "90 GFLOP/s on 1 thread (" in machine_lines(replace(MACHINE, all_threads=ONE))[2]


def test_plain_data_survive_json():
    data = json.loads(json.dumps(plain(MACHINE, [MADE])))
    assert data["machine"]["all_threads"]["bytes_per_second"] == 20e9
    assert data["cases"][0]["kernel"] == 0.002 and data["date"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (5.1234e6, "5.12 M"),
        (999.6e3, "1 M"),
        (640.0, "640"),
        (0.25, "0.25"),
        (0.0, "0"),
        (2e16, "2e+04 T"),
    ],
)
def test_quantities_have_three_digits_and_a_prefix(value: float, text: str):
    assert quantity(value) == text


@pytest.mark.parametrize(("ratio", "text"), [(1.94, "1.9x"), (9.96, "10x"), (123.4, "123x")])
def test_ratios(ratio: float, text: str):
    assert times(ratio) == text

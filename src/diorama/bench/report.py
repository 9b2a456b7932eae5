# SPDX-License-Identifier: Apache-2.0
"""The measurements for people, as lines and a table, and for programs, as plain data."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from diorama.bench.machine import Limits, Machine
from diorama.bench.neighbours import num_cpus
from diorama.bench.run import Measurement
from diorama.bench.splat import SplatBench

PREFIXES = ("", "k", "M", "G", "T")
NOTHING = "–"
BUSY_CPUS = 0.25
"""Neighbours that are busier than this, on the CPUs that we need, are worth a warning."""


def machine_lines(machine: Machine) -> list[str]:
    """The machine, the software, and the limits that the table's percentages refer to."""
    one, all_ = machine.one_thread, machine.all_threads
    limits = (all_,) if all_.num_threads == 1 else (all_, one)
    memory = [f"{x.bytes_per_second / 1e9:.1f} GB/s on {_threads(x)}" for x in limits]
    arithmetic = [f"{x.flops_per_second / 1e9:.0f} GFLOP/s on {_threads(x)}" for x in limits]
    built = machine.versions
    software = f"kernels {built['native']}, torch {built['torch']}, diorama {built['diorama']}"
    return [
        f"{machine.cpu}, {_threads(all_)}; {software}",
        f"memory      {', '.join(memory)} (copy or triad of large arrays)",
        f"arithmetic  {', '.join(arithmetic)} (float32 torch.mm)",
    ]


def splat_lines(m: SplatBench, limits: Limits) -> list[str]:
    """Steps, pictures and the rasteriser's rates, with their share of the arithmetic limit."""
    per_pixel = m.num_evaluations / (m.width * m.height)
    rates = [
        f"{name:<11} {quantity(m.num_evaluations / seconds)} splat-pixels/s, "
        f"{flops / seconds / limits.flops_per_second:.0%} of the arithmetic limit "
        f"({1000 * seconds:.1f} ms)"
        for name, seconds, flops in (
            ("forward", m.forward, m.forward_flops),
            ("backward", m.backward, m.backward_flops),
        )
    ]
    versus = ""
    if m.reference_step is not None:
        versus = f", {times(m.reference_step / m.step)} the torch references"
    return [
        f"{m.num_gaussians} Gaussians, {m.width} x {m.height} pixels: {m.num_pairs} tile entries, "
        f"{per_pixel:.1f} Gaussians drawn per pixel",
        f"step        {1 / m.step:.1f} per second{versus}",
        f"render      {1 / m.render:.1f} pictures per second, with depth and normals",
        *rates,
    ]


def _threads(limits: Limits) -> str:
    return "1 thread" if limits.num_threads == 1 else f"{limits.num_threads} threads"


def table(measurements: Sequence[Measurement], limits: Limits) -> Table:
    """One row per case; `limits` are those of all threads."""
    errors = compile_errors(measurements)
    made = Table(box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    made.add_column("op", overflow="fold", min_width=9)
    made.add_column("what", min_width=14)
    scaling = f"1 to {limits.num_threads}\nthreads"
    for heading in ("speed", "vs\ntorch", "vs\ncompile", "of\nlimit", scaling):
        made.add_column(heading, justify="right", no_wrap=True)
    for m in measurements:
        cells = (
            m.op,
            m.what,
            f"{quantity(m.num_items / m.kernel)} {m.unit}/s",
            times(m.reference / m.kernel),
            _versus_compile(m, errors),
            _of_limit(m, limits),
            times(m.kernel_one_thread / m.kernel) if limits.num_threads > 1 else NOTHING,
        )
        made.add_row(*map(Text, cells))
    return made


def _versus_compile(m: Measurement, errors: Sequence[str]) -> str:
    if m.compile_error is not None:
        return f"{NOTHING} ({errors.index(m.compile_error) + 1})"
    return NOTHING if m.compiled is None else times(m.compiled / m.kernel)


def _of_limit(m: Measurement, limits: Limits) -> str:
    ideal = ideal_seconds(m, limits)
    if ideal is None:
        return NOTHING
    seconds, limit = ideal
    return f"{seconds / m.kernel:.0%} {limit}"


def ideal_seconds(m: Measurement, limits: Limits) -> tuple[float, str] | None:
    """max(bytes / bandwidth, operations / GEMM rate) of a call, and which of the two it is."""
    bounds = []
    if m.num_bytes is not None:
        bounds.append((m.num_bytes / limits.bytes_per_second, "mem"))
    if m.num_flops is not None:
        bounds.append((m.num_flops / limits.flops_per_second, "flop"))
    return max(bounds, default=None)


def compile_errors(measurements: Sequence[Measurement]) -> list[str]:
    """Each reason why torch.compile failed, once, in the order of the table's notes."""
    return list(dict.fromkeys(m.compile_error for m in measurements if m.compile_error is not None))


def notes(measurements: Sequence[Measurement], limits: Limits) -> list[str]:
    """What a reader of the table must know: why something is missing, and what to distrust."""
    told = [
        f"({number}) torch.compile failed: {reason}"
        for number, reason in enumerate(compile_errors(measurements), start=1)
    ]
    busy = max((m.neighbours for m in measurements if m.neighbours is not None), default=0.0)
    if busy + min(limits.num_threads, num_cpus()) > num_cpus() + BUSY_CPUS:
        told.append(
            f"Other programs kept up to {busy:.1f} of {num_cpus()} CPUs busy: times are too long, "
            "torch's more than the kernels'. Repeat this on an idle machine."
        )
    return told


def plain(machine: Machine, measurements: Sequence[Measurement]) -> dict[str, Any]:
    """Everything measured, in seconds, bytes and operations, ready for JSON."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": asdict(machine),
        "cases": [asdict(m) for m in measurements],
    }


def quantity(value: float) -> str:
    """Three digits and a prefix, such as `5.12 M`, for a unit to follow."""
    rounded = float(f"{value:.2e}")
    power = math.floor(math.log10(rounded)) // 3 if rounded > 0 else 0
    power = min(max(power, 0), len(PREFIXES) - 1)
    return f"{rounded / 1000**power:.4g} {PREFIXES[power]}".rstrip()


def times(ratio: float) -> str:
    """A ratio such as `1.9x` or `23x`."""
    return f"{ratio:.1f}x" if ratio < 9.95 else f"{ratio:.0f}x"

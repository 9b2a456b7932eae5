# SPDX-License-Identifier: Apache-2.0
"""`diorama bench kernels|splat`: how fast we are here, beside torch and the machine's limits."""

import difflib
import os
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from diorama.bench.registry import cases_of, choose_ops
from diorama.cli.arguments import parse, take_word
from diorama.errors import UserError

if TYPE_CHECKING:
    from rich.console import Console

    from diorama.bench.machine import Machine
    from diorama.bench.run import Measurement

DESCRIPTION = "Measure the kernels against torch and the machine's limits (docs/benchmarks.md)."
BENCHMARKS = ("kernels", "splat")
SPLAT_DESCRIPTION = "Measure training steps and pictures of Gaussian splatting."
SECONDS, QUICK_SECONDS = 1.0, 0.1
PIPE_WIDTH = 130


@dataclass(frozen=True)
class KernelsConfig:
    """What to measure, and how long."""

    ops: tuple[str, ...] = ()
    """The ops to measure, such as hash_grid march; unset measures all."""
    quick: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """A tenth of a second for each case instead of one: for a first look."""
    compile: bool = True
    """Also compare with torch.compile, which takes long to compile."""
    threads: int | None = None
    """CPU threads; unset takes all cores."""
    output: Annotated[Path | None, tyro.conf.arg(metavar="FILE.json")] = None
    """Also write the raw numbers to this JSON file."""


@dataclass(frozen=True)
class SplatBenchConfig:
    """Which Gaussians to draw, and how long."""

    data: Path | None = None
    """The data set whose first training view is drawn; unset: the scene that comes along."""
    run: Path | None = None
    """A splat run whose Gaussians to draw; unset: fresh ones on the object's hull."""
    gaussians: Annotated[int, tyro.conf.arg(metavar="N")] = 100_000
    """Fresh Gaussians."""
    size: int = 400
    """Longer side of the image in pixels, at most."""
    quick: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """A tenth of the time: for a first look."""
    reference: bool = True
    """Also take one step with the torch references, which takes long."""
    threads: int | None = None
    """CPU threads; unset takes all cores."""


def main(arguments: list[str]) -> None:
    """Find out which benchmark is meant, and run it."""
    name, flags = take_word(arguments, list(BENCHMARKS))
    if name is None and not {"-h", "--help"} & set(arguments):
        raise UserError(f"bench what? diorama bench NAME; NAME is one of {', '.join(BENCHMARKS)}.")
    if name not in (None, *BENCHMARKS):
        close = difflib.get_close_matches(name, BENCHMARKS, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(BENCHMARKS)}."
        raise UserError(f"there is no benchmark {name!r}; {hint}")
    if name == "splat":
        bench_splat(parse(SplatBenchConfig, flags, "diorama bench splat", SPLAT_DESCRIPTION))
    else:
        bench_kernels(parse(KernelsConfig, flags, "diorama bench kernels", DESCRIPTION))


def bench_kernels(options: KernelsConfig) -> None:
    """Measure the machine and the chosen ops, print the table, write the file."""
    ops = choose_ops(options.ops)
    _check_output(options.output)
    _require_kernels()
    from rich.console import Console

    from diorama.bench.machine import measure_machine
    from diorama.bench.report import machine_lines, notes, plain
    from diorama.engine.device import use_threads

    use_threads(options.threads)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else PIPE_WIDTH)
    machine = measure_machine(QUICK_SECONDS if options.quick else SECONDS)
    for line in machine_lines(machine):
        console.print(line, markup=False)
    measurements = _measure_all(ops, options, machine, console)
    for note in notes(measurements, machine.all_threads):
        console.print(note, markup=False)
    if options.output is not None:
        _write(options.output, plain(machine, measurements))
        console.print(str(options.output), markup=False, soft_wrap=True)


def bench_splat(options: SplatBenchConfig) -> None:
    """Measure the machine and the method, and print lines."""
    if options.gaussians < 1 or options.size < 16:
        raise UserError("--gaussians must be at least 1 and --size at least 16.")
    _require_kernels()
    from diorama.bench.machine import measure_machine
    from diorama.bench.report import machine_lines, splat_lines
    from diorama.bench.splat import SplatTraining, measure_splat
    from diorama.engine.device import use_threads

    use_threads(options.threads)
    seconds = QUICK_SECONDS if options.quick else SECONDS
    machine = measure_machine(seconds)
    training = SplatTraining(options.data, options.run, options.gaussians, options.size)
    measured = measure_splat(training, 5 * seconds, options.reference)
    for line in (*machine_lines(machine), *splat_lines(measured, machine.all_threads)):
        print(line)


def _measure_all(
    ops: tuple[str, ...], options: KernelsConfig, machine: "Machine", console: "Console"
) -> list["Measurement"]:
    """Measure every case; on a terminal the table grows row by row."""
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    from diorama.bench.report import table
    from diorama.bench.run import measure

    seconds = QUICK_SECONDS if options.quick else SECONDS
    measurements = []
    # Not refreshed from a thread of its own, which would disturb the measurements.
    with Live(console=console, auto_refresh=False) as live:
        for op in ops:
            for case in cases_of(op):
                so_far = table(measurements, machine.all_threads)
                live.update(Group(so_far, Text(f"measuring {op}, {case.what}")), refresh=True)
                measurements.append(measure(case, seconds, options.compile))
        live.update(table(measurements, machine.all_threads), refresh=True)
    if not console.is_terminal:
        console.print()  # A terminal has had this line's end from Live.
    return measurements


def _check_output(output: Path | None) -> None:
    """Refuse a file that cannot be written before minutes are spent on what goes into it."""
    if output is None:
        return
    if output.is_dir():
        raise UserError(f"--output {output}: this is a folder; name a file.")
    if not output.parent.is_dir():
        raise UserError(f"--output {output}: the folder {output.parent} does not exist; make it.")
    if not os.access(output.parent, os.W_OK):
        raise UserError(f"--output {output}: writing is not permitted; choose another folder.")


def _write(output: Path, data: dict[str, Any]) -> None:
    from diorama.engine.disk import write_json

    try:
        write_json(output, data)
    except OSError as error:
        raise UserError(f"--output {output}: cannot be written ({error.strerror}).") from error


def _require_kernels() -> None:
    with warnings.catch_warnings():
        # Without kernels the import warns; here that is an error, said once.
        warnings.simplefilter("ignore", RuntimeWarning)
        from diorama import native

    if native.module is None:
        raise UserError(
            f"the native kernels are missing, so there is nothing to compare: {native.describe()}."
        )

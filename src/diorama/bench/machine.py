# SPDX-License-Identifier: Apache-2.0
"""What the machine can do at best, measured in the same run: memory bandwidth and float32 GEMM."""

import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import torch

from diorama.bench.case import Work
from diorama.bench.timing import best_seconds, threads
from diorama.engine.versions import versions

ARRAY_BYTES = 256 << 20
"""Size of each array of the bandwidth measurement, far larger than any cache."""
GEMM_SIZES = (512, 1024, 2048)


@dataclass(frozen=True)
class Limits:
    """The best rates that this number of threads reached."""

    num_threads: int
    bytes_per_second: float
    flops_per_second: float


@dataclass(frozen=True)
class Machine:
    """The CPU, what runs on it, and its limits on one thread and on all."""

    cpu: str
    versions: dict[str, str]
    one_thread: Limits
    all_threads: Limits


def measure_machine(
    seconds: float, array_bytes: int = ARRAY_BYTES, gemm_sizes: tuple[int, ...] = GEMM_SIZES
) -> Machine:
    """Measure the limits on one thread and on as many as torch now uses, `seconds` for each."""
    all_threads = one_thread = _measure_limits(seconds, array_bytes, gemm_sizes)
    if all_threads.num_threads > 1:
        with threads(1):
            one_thread = _measure_limits(seconds, array_bytes, gemm_sizes)
    return Machine(cpu_name(), versions(), one_thread, all_threads)


def _measure_limits(seconds: float, array_bytes: int, gemm_sizes: tuple[int, ...]) -> Limits:
    return Limits(
        torch.get_num_threads(), _bandwidth(seconds, array_bytes), _gemm_peak(seconds, gemm_sizes)
    )


def _bandwidth(seconds: float, array_bytes: int) -> float:
    """The better of STREAM's copy and triad, reads and writes counted once each.

    The line that a store fetches before it overwrites it is not counted, as in STREAM.
    """
    a, b, c = (torch.ones(array_bytes // 4) for _ in range(3))
    copy, triad = best_seconds(
        [lambda: a.copy_(b), lambda: torch.add(b, c, alpha=3.0, out=a)], seconds / 2
    )
    return max(2 * array_bytes / copy, 3 * array_bytes / triad)


def _gemm_peak(seconds: float, sizes: tuple[int, ...]) -> float:
    """The best rate of torch.mm over square matrices; a product of n x n has 2 n^3 operations."""
    times = best_seconds([_gemm(size) for size in sizes], seconds / 2)
    return max(2 * size**3 / time for size, time in zip(sizes, times, strict=True))


def _gemm(size: int) -> Work:
    a, b, out = torch.rand(size, size), torch.rand(size, size), torch.empty(size, size)
    return lambda: torch.mm(a, b, out=out)


def cpu_name() -> str:
    """The CPU's name as its maker gives it, or its architecture."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(errors="replace").splitlines():
            key, _, name = line.partition(":")
            if key.strip() == "model name" and name.strip():
                return name.strip()
    if sys.platform == "darwin":
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        told = subprocess.run(command, capture_output=True, text=True)
        if told.stdout.strip():
            return told.stdout.strip()
    return platform.processor() or platform.machine() or "unknown CPU"

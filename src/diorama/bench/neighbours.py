# SPDX-License-Identifier: Apache-2.0
"""How busy other programs kept our CPUs during a measurement, because that spoils it.

Threads that wait for each other wait for the slowest, so a neighbour costs a work of many short
parallel loops, such as a torch reference, far more than a kernel of one loop.
"""

import os
import time
from dataclasses import dataclass
from pathlib import Path

STAT = Path("/proc/stat")


@dataclass(frozen=True)
class CpuTimes:
    """Seconds since some past: on the clock, of all programs on our CPUs, of this process."""

    wall: float
    all_programs: float
    own: float


def num_cpus() -> int:
    """The CPUs that this process may run on."""
    return len(_cpus())


def _cpus() -> set[int]:
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def cpu_times() -> CpuTimes | None:
    """The times now; None where the system does not tell."""
    if not STAT.exists():
        return None
    ours = {f"cpu{index}" for index in _cpus()}
    ticks = 0
    for name, *numbers in map(str.split, STAT.read_text().splitlines()):
        if name in ours:
            user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, numbers[:8])
            ticks += user + nice + system + irq + softirq + steal
    own = os.times()
    return CpuTimes(time.perf_counter(), ticks / os.sysconf("SC_CLK_TCK"), own.user + own.system)


def busy_neighbours(before: CpuTimes | None) -> float | None:
    """How many of our CPUs others kept busy since `before`, on average."""
    now = cpu_times()
    if before is None or now is None:
        return None
    others = (now.all_programs - before.all_programs) - (now.own - before.own)
    return max(others, 0.0) / (now.wall - before.wall)

# SPDX-License-Identifier: Apache-2.0
"""The machine's limits are within what machines can do, and neighbours are counted."""

import subprocess
import sys
import time

import pytest
import torch

from diorama.bench import neighbours
from diorama.bench.machine import cpu_name, measure_machine
from diorama.bench.neighbours import CpuTimes, busy_neighbours, cpu_times, num_cpus


def test_limits_on_one_and_on_all_threads():
    torch.set_num_threads(2)
    machine = measure_machine(0.02, array_bytes=1 << 20, gemm_sizes=(64, 128))
    for limits, num_threads in ((machine.one_thread, 1), (machine.all_threads, 2)):
        assert limits.num_threads == num_threads
        assert 1e7 < limits.bytes_per_second < 1e14
        assert 1e6 < limits.flops_per_second < 1e15
    assert torch.get_num_threads() == 2
    assert {"torch", "native", "diorama"} <= set(machine.versions)


def test_one_thread_is_measured_once():
    torch.set_num_threads(1)
    machine = measure_machine(0.01, array_bytes=1 << 16, gemm_sizes=(16,))
    assert machine.one_thread is machine.all_threads


def test_the_cpu_has_a_name():
    assert cpu_name().strip()


def test_neighbours_are_what_we_did_not_do(monkeypatch):
    now = CpuTimes(wall=14.0, all_programs=109.0, own=55.0)
    monkeypatch.setattr(neighbours, "cpu_times", lambda: now)
    assert busy_neighbours(CpuTimes(wall=10.0, all_programs=100.0, own=52.0)) == 1.5
    assert busy_neighbours(CpuTimes(wall=10.0, all_programs=108.0, own=52.0)) == 0.0
    assert busy_neighbours(None) is None


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_a_busy_neighbour_is_noticed():
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as neighbour:
        before = cpu_times()
        time.sleep(0.5)
        busy = busy_neighbours(before)
        neighbour.kill()
    assert busy is not None
    assert 0.3 < busy < num_cpus() + 0.3

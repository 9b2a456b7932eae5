# SPDX-License-Identifier: Apache-2.0
"""Memory that a step frees is there for the next one."""

import os
import platform
import subprocess
import sys

import pytest

STEPS = """
import resource
import torch
from diorama.cli.memory import keep_freed_memory

print(keep_freed_memory())

def page_faults(num_steps):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(num_steps):
        arrays = [torch.ones(1 << 20) for _ in range(3)]
        del arrays
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

page_faults(5)
print(page_faults(20) / 20)
"""


def run_steps(**environment: str) -> list[str]:
    inherited = {name: v for name, v in os.environ.items() if not name.startswith("MALLOC_")}
    run = subprocess.run(
        [sys.executable, "-c", STEPS],
        env=inherited | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout.split()


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc alone is asked to keep it")
def test_freed_memory_is_kept():
    was_asked, faults_per_step = run_steps()
    assert was_asked == "True"
    assert float(faults_per_step) < 100  # The three arrays have 3,072 pages.


def test_a_choice_of_the_user_stands():
    was_asked, _ = run_steps(MALLOC_TRIM_THRESHOLD_="131072")
    assert was_asked == "False"

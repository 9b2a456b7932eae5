# SPDX-License-Identifier: Apache-2.0
"""A real method killed without warning and resumed ends with the bits of an undisturbed run."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from diorama.scenes import make_scene

STEPS = 400
SHARED = (
    f"--max-steps {STEPS} --log.save-every 20 --log.keep 100 --log.eval-every 150 --threads 2 "
    "--log.no-tensorboard --quiet"
)
SMALL = {
    "nerf-small": (
        "--data.rays 64 "
        "--model.depth 2 --model.width 32 --model.grid-resolution 24 --model.grid-warmup 30 "
        "--model.sample-budget 2048 --model.march-steps 48 --model.march-warmup-steps 16"
    ),
    "ngp-fast": (
        "--data.rays 64 "
        "--model.levels 4 --model.log2-table 12 --model.max-resolution 64 --model.width 16 "
        "--model.grid-resolution 24 --model.grid-warmup 30 --model.sample-budget 2048 "
        "--model.march-steps 96 --model.appearance-size 4 --model.refine-poses"
    ),
    "nerfacto": (
        "--data.rays 64 "
        "--model.levels 4 --model.log2-table 12 --model.max-resolution 64 --model.width 16 "
        "--model.samples 12 --model.proposal-samples 24 16 --model.proposal-warmup 100 "
        "--model.proposal-log2-table 10 --model.appearance-size 4 --model.refine-poses True"
    ),
    # Each strategy changes the number of Gaussians between any two checkpoints. Saved every 20
    # steps, a run is resumed at any phase of the harmonics' seven.
    "splat-fast": (
        "--model.init-count 300 --model.max-gaussians 900 --mcmc.start 10 --mcmc.stop 380 "
        "--mcmc.every 7 --model.exposure --model.refine-poses --model.downscale-every 60 "
        "--optim.visible-only --model.rest-every 7 --model.sh-every 50"
    ),
    "splat": (
        "--model.init-count 300 --model.max-gaussians 900 --default.start 10 --default.every 7 "
        "--default.gradient 1e-5 --default.reset-every 110 --model.sh-every 50"
    ),
    "splat-taichi": (
        "--model.init-count 300 --model.max-gaussians 900 --model.sphere-points 20 "
        "--adaptive.warmup 10 --adaptive.every 7 --adaptive.reset-every 110 --model.sh-every 50"
    ),
}


def command(method: str, data: Path, outputs: Path) -> list[str]:
    where = ["--data", str(data), "--output-dir", str(outputs), "--name", "run"]
    flags = (SHARED + " " + SMALL[method]).split()
    return [sys.executable, "-m", "diorama", "train", method, *where, *flags]


def checkpoint(method: str, outputs: Path, step: int) -> Path:
    return outputs / "balls" / method / "run" / "checkpoints" / f"step-{step:09d}.safetensors"


def killed_at(process: subprocess.Popen, path: Path) -> None:
    """SIGKILL the process soon after the checkpoint at `path` has appeared."""
    deadline = time.monotonic() + 120
    while not path.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    time.sleep(random.random() * 0.1)
    process.send_signal(signal.SIGKILL)
    process.wait()


@pytest.mark.parametrize("method", sorted(SMALL))
def test_killed_and_resumed_equals_undisturbed(method, tmp_path):
    data = make_scene("spheres", tmp_path / "balls", size=32, num_train=8, num_val=1, num_test=1)
    subprocess.run(command(method, data, tmp_path / "whole"), check=True, capture_output=True)
    broken = tmp_path / "broken"
    process = subprocess.Popen(
        command(method, data, broken), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    step = 20 * random.randint(1, 12)
    killed_at(process, checkpoint(method, broken, step))
    assert process.returncode == -signal.SIGKILL, "the run ended before it could be killed"
    run = checkpoint(method, broken, 0).parents[1]
    resume = [sys.executable, "-m", "diorama", "resume", str(run), "--quiet"]
    subprocess.run(resume, check=True, capture_output=True)
    whole, resumed = (
        load_file(checkpoint(method, out, STEPS)) for out in (tmp_path / "whole", broken)
    )
    trained = [name for name in whole if name.startswith(("model", "optim"))]
    assert any(name.startswith("optim") for name in trained)
    if method.startswith("splat"):
        first = load_file(checkpoint(method, broken, 0))
        counts = [len(part["model/gaussians.means"]) for part in (first, whole)]
        assert counts[0] != counts[1], "the number of Gaussians never changed"
    for name in trained:
        assert torch.equal(whole[name], resumed[name]), f"{name} differs, killed after {step}"

# SPDX-License-Identifier: Apache-2.0
"""Small but real training runs that several tests look at from different sides."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from diorama.config import TrainerConfig
from diorama.engine.trainer import Trainer
from diorama.methods.registry import method_config
from diorama.scenes import make_scene


@dataclass(frozen=True)
class Small:
    """A method made smaller still: seconds on one core."""

    max_steps: int
    psnr: float
    """What its held-out views must reach, and their SSIM."""
    ssim: float
    model: dict[str, Any]
    optim: dict[str, Any]
    data: dict[str, Any]


SMALL = {
    "nerf-small": Small(
        max_steps=1200, psnr=22.0, ssim=0.74,
        model={"depth": 3, "width": 64, "grid_resolution": 48, "grid_warmup": 64,
               "march_steps": 96, "march_warmup_steps": 24, "sample_budget": 1 << 12},
        optim={"lr": 1e-2, "lr_final": 5e-4, "warmup_steps": 20},
        data={"rays": 256},
    ),
    "ngp-fast": Small(
        max_steps=500, psnr=24.0, ssim=0.8,
        model={"log2_table": 14, "max_resolution": 256, "grid_resolution": 48, "grid_warmup": 32,
               "march_steps": 192, "sample_budget": 1 << 13},
        optim={"warmup_steps": 20},
        data={"rays": 256},
    ),
    "nerfacto": Small(
        max_steps=1000, psnr=25.0, ssim=0.85,
        model={"log2_table": 14, "max_resolution": 256, "anneal_steps": 100,
               "proposal_warmup": 200, "proposal_log2_table": 12},
        optim={"warmup_steps": 20},
        data={"rays": 256},
    ),
    "splat-fast": Small(
        max_steps=1000, psnr=25.5, ssim=0.88,
        model={"init_count": 4000, "max_gaussians": 10_000, "downscale": 1, "sh_every": 150},
        optim={},
        data={},
    ),
}  # fmt: skip


@dataclass(frozen=True)
class TrainedRun:
    """A finished run and what it was trained on."""

    method: str
    folder: Path
    data: Path


def small_config(method: str, data: Path, output_dir: Path) -> TrainerConfig:
    """The method's preset with the sizes above."""
    config, small = method_config(method), SMALL[method]
    return replace(
        config,
        model=replace(config.model, **small.model),
        output_dir=output_dir,
        name="run",
        max_steps=small.max_steps,
        quiet=True,
        data=replace(config.data, path=data, **small.data),
        optim=replace(config.optim, **small.optim),
        log=replace(config.log, tensorboard=False, eval_every=0),
    )


def train_small(method: str, folder: Path) -> TrainedRun:
    """Train on the tabletop in pictures of 64 pixels."""
    data = make_scene("tabletop", folder / "tabletop", size=64, num_train=30, num_test=4)
    return TrainedRun(method, Trainer(small_config(method, data, folder / "outputs")).train(), data)

# SPDX-License-Identifier: Apache-2.0
"""A small but real training run that several tests look at from different sides."""

from dataclasses import dataclass, replace
from pathlib import Path

from diorama.config import TrainerConfig
from diorama.engine.trainer import Trainer
from diorama.methods.nerf.config import NerfConfig
from diorama.methods.registry import method_config
from diorama.scenes import make_scene


@dataclass(frozen=True)
class TrainedRun:
    """A finished run and what it was trained on."""

    folder: Path
    data: Path


def small_config(data: Path, output_dir: Path, max_steps: int) -> TrainerConfig:
    """`nerf-small`, smaller still: seconds on one core."""
    config = method_config("nerf-small")
    assert isinstance(config.model, NerfConfig)
    model = replace(
        config.model,
        depth=3,
        width=64,
        grid_resolution=48,
        grid_warmup=64,
        march_steps=96,
        march_warmup_steps=24,
        sample_budget=1 << 12,
    )
    return replace(
        config,
        model=model,
        output_dir=output_dir,
        name="run",
        max_steps=max_steps,
        quiet=True,
        data=replace(config.data, path=data, rays=256),
        optim=replace(config.optim, lr=1e-2, lr_final=5e-4, warmup_steps=20),
        log=replace(config.log, tensorboard=False, eval_every=0),
    )


def train_small(folder: Path, max_steps: int = 1200) -> TrainedRun:
    """Train on the tabletop in pictures of 64 pixels."""
    data = make_scene("tabletop", folder / "tabletop", size=64, num_train=30, num_test=4)
    run = Trainer(small_config(data, folder / "outputs", max_steps)).train()
    return TrainedRun(run, data)

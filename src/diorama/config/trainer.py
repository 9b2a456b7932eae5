# SPDX-License-Identifier: Apache-2.0
"""The whole of a run: trainer, pipeline and model configs, nested as the objects they build."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar

import tyro

from diorama.config.base import Config
from diorama.config.data import DataConfig, RayDataConfig
from diorama.config.optim import OptimConfig

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class ModelConfig(Config):
    """Base of every method's model config; `setup(scene=...)` builds the Model."""


@dataclass(frozen=True)
class LogConfig(Config):
    """What is written down while training."""

    every: int = 50
    """Steps between lines of the JSONL log and TensorBoard scalars."""
    eval_every: int = 1000
    """Steps between cheap evaluations during training (0: only at the end)."""
    eval_at: tuple[int, ...] = ()
    """Steps after which there is a cheap evaluation in any case."""
    eval_images: int = 1
    """Held-out images per cheap evaluation."""
    save_every: int = 1000
    """Steps between checkpoints."""
    save_minutes: float = 5.0
    """A checkpoint is also written when this many minutes have passed since the last."""
    keep: int = 2
    """Checkpoints kept; the newest ones stay."""
    keep_best: bool = False
    """Also keep the checkpoint of the cheap evaluation with the best PSNR, in RUN/best."""
    tensorboard: bool = True
    """Write TensorBoard scalars and images to the run folder."""
    wandb: bool = False
    """Also log to Weights & Biases (needs the wandb extra)."""


@dataclass(frozen=True)
class PipelineConfig(Config):
    """Data and model joined: what the trainer asks for losses and evaluations."""

    target: ClassVar[str] = "diorama.engine.pipeline:Pipeline"

    data: DataConfig
    model: ModelConfig


@dataclass(frozen=True)
class TrainerConfig(Config):
    """A complete training run."""

    target: ClassVar[str] = "diorama.engine.trainer:Trainer"

    method: tyro.conf.Suppress[str] = ""
    """Name in the method registry."""
    output_dir: Path = Path("outputs")
    """Runs go to OUTPUT_DIR/<scene>/<method>/<time>."""
    name: str | None = None
    """Folder name of the run instead of the time."""
    seed: int = 0
    """Seeds weights, batches and sampling: same seed, same bits."""
    max_steps: int = 30_000
    """Steps to train."""
    max_minutes: float | None = None
    """Time budget: after a warm-up the measured speed fixes the number of steps; it changes
    if the machine becomes slower, or faster in the first half."""
    device: str = "auto"
    """cpu, cuda, cuda:1 ...; auto takes CUDA when there is one."""
    threads: int | None = None
    """CPU threads; unset takes all cores."""
    quiet: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Print nothing but errors and the run folder."""
    data: DataConfig = field(default_factory=RayDataConfig)
    """The data set and its batches."""
    model: ModelConfig = field(default_factory=ModelConfig)
    """The method's model."""
    optim: OptimConfig = field(default_factory=OptimConfig)
    """Optimiser and schedule."""
    log: LogConfig = field(default_factory=LogConfig)
    """Logs, evaluations and checkpoints."""

    @property
    def pipeline(self) -> PipelineConfig:
        """The pipeline's share of this config."""
        return PipelineConfig(data=self.data, model=self.model)

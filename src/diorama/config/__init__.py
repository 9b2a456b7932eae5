# SPDX-License-Identifier: Apache-2.0
"""Typed, frozen, torch-free configs: what a run is, written once and read by every verb."""

from diorama.config.base import Config, from_plain, to_plain
from diorama.config.data import DataConfig, ImageDataConfig, RayDataConfig
from diorama.config.optim import FieldOptimConfig, OptimConfig
from diorama.config.trainer import LogConfig, ModelConfig, PipelineConfig, TrainerConfig

__all__ = [
    "Config",
    "DataConfig",
    "FieldOptimConfig",
    "ImageDataConfig",
    "LogConfig",
    "ModelConfig",
    "OptimConfig",
    "PipelineConfig",
    "RayDataConfig",
    "TrainerConfig",
    "from_plain",
    "to_plain",
]

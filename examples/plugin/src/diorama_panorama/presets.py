# SPDX-License-Identifier: Apache-2.0
"""The named configurations of the panorama; entry points name these functions."""

from diorama.config import OptimConfig, RayDataConfig, TrainerConfig
from diorama_panorama.config import PanoramaConfig


def panorama() -> TrainerConfig:
    """A minute of training at most."""
    return TrainerConfig(
        max_steps=500,
        data=RayDataConfig(rays=4096),
        model=PanoramaConfig(),
        optim=OptimConfig(lr=0.2, lr_final=0.01),
    )

# SPDX-License-Identifier: Apache-2.0
"""The named NeRF configurations: the paper's two, and one sized for a CPU."""

from diorama.config import LogConfig, OptimConfig, RayDataConfig, TrainerConfig
from diorama.methods.nerf.config import NerfConfig


def nerf() -> TrainerConfig:
    """The paper's NeRF for objects, as nerf-pytorch's Blender configurations run it."""
    return TrainerConfig(
        method="nerf",
        max_steps=200_000,
        data=RayDataConfig(rays=1024, sampling="per-image", precrop_steps=500),
        model=NerfConfig(),
        optim=OptimConfig(lr=5e-4, lr_final=5e-5, schedule="exponential", decay_steps=500_000),
        log=LogConfig(eval_every=2500),
    )


def nerf_llff() -> TrainerConfig:
    """The paper's NeRF for forward-facing captures: NDC, 64 + 64 samples, density noise."""
    return TrainerConfig(
        method="nerf-llff",
        max_steps=200_000,
        data=RayDataConfig(rays=1024),
        model=NerfConfig(importance=64, raw_noise_std=1.0),
        optim=OptimConfig(lr=5e-4, lr_final=5e-5, schedule="exponential", decay_steps=250_000),
        log=LogConfig(eval_every=2500),
    )


def nerf_small() -> TrainerConfig:
    """A NeRF that a CPU trains while you wait: narrow trunk, occupancy grid, many small steps."""
    return TrainerConfig(
        method="nerf-small",
        max_steps=40_000,
        data=RayDataConfig(rays=256, max_side=800),
        model=NerfConfig(
            depth=4,
            width=128,
            skip=-1,
            density="softplus",
            init="glorot",
            sampler="occupancy",
            grid_warmup=128,
            march_steps=256,
            march_warmup_steps=32,
            sample_budget=1 << 13,
        ),
        optim=OptimConfig(lr=5e-3, lr_final=1e-4, warmup_steps=100),
        log=LogConfig(eval_every=2500, save_every=2500),
    )

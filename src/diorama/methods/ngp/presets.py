# SPDX-License-Identifier: Apache-2.0
"""The named configurations of the hash-grid method: the published one, and one for a CPU."""

from diorama.config import FieldOptimConfig, LogConfig, RayDataConfig, TrainerConfig
from diorama.methods.ngp.config import NgpConfig


def ngp() -> TrainerConfig:
    """Instant-NGP as nerfacc's published recipe trains it: 2^18 samples a step, 20,000 steps."""
    return TrainerConfig(
        method="ngp",
        max_steps=20_000,
        data=RayDataConfig(rays=1024),
        model=NgpConfig(),
        optim=FieldOptimConfig(
            lr=1e-2,
            schedule="multi-step",
            warmup_steps=100,
            eps=1e-15,
            weight_decay=1e-6,
        ),
        log=LogConfig(eval_every=1000),
    )


def ngp_fast() -> TrainerConfig:
    """Sized for a CPU: fewer, wider levels, longer steps, a small sample budget."""
    return TrainerConfig(
        method="ngp-fast",
        max_steps=30_000,
        data=RayDataConfig(rays=512, max_side=800, adjust_cameras=True),
        model=NgpConfig(
            levels=8,
            features=4,
            log2_table=17,
            max_resolution=1024,
            color_layers=1,
            march_steps=512,
            grid_warmup=64,
            grid_share=32,
            sample_budget=1 << 15,
            loss="mse",
        ),
        optim=FieldOptimConfig(
            lr=1e-2,
            lr_final=2e-4,
            schedule="cosine",
            warmup_steps=50,
            beta2=0.99,
            eps=1e-15,
            weight_decay=1e-6,
        ),
        log=LogConfig(eval_every=1000),
    )

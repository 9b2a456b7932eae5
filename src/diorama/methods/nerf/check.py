# SPDX-License-Identifier: Apache-2.0
"""Model options that no network can be built or sampled with, refused by the flag's name."""

from diorama.config.limits import check_limits
from diorama.errors import UserError
from diorama.methods.nerf.config import NerfConfig

LIMITS = {
    "depth": (1, 64),
    "width": (2, 8192),
    "position_octaves": (0, 30),
    "direction_octaves": (0, 30),
    "samples": (1, 1 << 16),
    "importance": (0, 1 << 16),
    "raw_noise_std": (0, 1e6),
    "render_chunk": (1, 1 << 30),
    "grid_resolution": (1, 512),
    "grid_every": (1, 1 << 30),
    "grid_warmup": (0, 1 << 30),
    "march_steps": (1, 1 << 16),
    "march_warmup_steps": (1, 1 << 16),
    "sample_budget": (1, 1 << 30),
}
MIN_COARSE_SAMPLES = 3
"""Importance sampling needs an interval between midpoints, which two samples do not have."""


def check_nerf_config(config: NerfConfig) -> None:
    """Raise a `UserError` for the first option out of range."""
    check_limits(config, LIMITS)
    is_hierarchical = config.sampler == "paper" and config.importance > 0
    if is_hierarchical and config.samples < MIN_COARSE_SAMPLES:
        raise UserError(
            f"--model.samples must be at least {MIN_COARSE_SAMPLES} with importance samples, got "
            f"{config.samples}; or give --model.importance 0."
        )

# SPDX-License-Identifier: Apache-2.0
"""Model options that no field can be built or sampled with, refused by the flag's name."""

from diorama.config.limits import check_limits
from diorama.errors import UserError
from diorama.methods.ngp.config import NgpConfig

LIMITS = {
    "levels": (1, 32),
    "log2_table": (4, 26),
    "base_resolution": (2, 1 << 16),
    "max_resolution": (2, 1 << 20),
    "width": (1, 256),
    "color_layers": (1, 7),
    "sh_bands": (1, 5),
    "appearance_size": (0, 256),
    "grid_resolution": (2, 512),
    "grid_levels": (1, 16),
    "grid_every": (1, 1 << 30),
    "grid_warmup": (0, 1 << 30),
    "grid_share": (1, 1 << 20),
    "march_steps": (1, 1 << 16),
    "cone": (0, 1),
    "sample_budget": (1, 1 << 30),
    "max_rays": (1, 1 << 24),
    "distortion": (0, 1e6),
    "opacity": (0, 1e6),
    "render_steps": (1, 64),
    "render_chunk": (1, 1 << 30),
}
FEATURES = (1, 2, 4, 8)


def check_ngp_config(config: NgpConfig) -> None:
    """Raise a `UserError` for the first option that cannot be."""
    check_limits(config, LIMITS)
    if config.features not in FEATURES:
        raise UserError(f"--model.features must be 1, 2, 4 or 8, got {config.features}.")
    if config.max_resolution < config.base_resolution:
        raise UserError(
            f"--model.max-resolution {config.max_resolution} must not be below "
            f"--model.base-resolution {config.base_resolution}."
        )

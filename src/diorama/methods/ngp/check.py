# SPDX-License-Identifier: Apache-2.0
"""Model options that no field can be built or sampled with, refused by the flag's name."""

from diorama.config.limits import check_limits
from diorama.methods.ngp.config import NgpConfig
from diorama.nn.radiance_field_check import check_radiance_field

LIMITS = {
    "grid_resolution": (2, 512),
    "grid_levels": (1, 16),
    "grid_every": (1, 1 << 30),
    "grid_warmup": (0, 1 << 30),
    "grid_share": (1, 1 << 20),
    "march_steps": (1, 1 << 16),
    "cone": (0, 1),
    "min_alpha": (0, 0.5),
    "sample_budget": (1, 1 << 30),
    "max_rays": (1, 1 << 24),
    "distortion": (0, 1e6),
    "opacity": (0, 1e6),
    "render_steps": (1, 64),
    "render_chunk": (1, 1 << 30),
}


def check_ngp_config(config: NgpConfig) -> None:
    """Raise a `UserError` for the first option that cannot be."""
    check_radiance_field(config)
    check_limits(config, LIMITS)

# SPDX-License-Identifier: Apache-2.0
"""Model options that no field can be built or sampled with, refused by the flag's name."""

from diorama.config.limits import check_limits
from diorama.errors import UserError
from diorama.methods.nerfacto.config import NerfactoConfig
from diorama.nn.radiance_field_check import check_radiance_field

LIMITS = {
    "samples": (1, 1 << 16),
    "proposal_levels": (1, 32),
    "proposal_log2_table": (4, 26),
    "proposal_width": (1, 256),
    "proposal_every": (0, 1 << 30),
    "proposal_warmup": (0, 1 << 30),
    "anneal_steps": (0, 1 << 30),
    "far": (1, 1e9),
    "initial_density": (1e-9, 1e6),
    "interlevel": (0, 1e6),
    "min_views": (0, 250),
    "point_loss": (0, 1e6),
    "point_rays": (1, 1 << 20),
    "plainness": (0, 1e6),
    "plain_patches": (1, 1 << 14),
    "photo_plainness": (0, 1e6),
    "distortion": (0, 1e6),
    "render_chunk": (1, 1 << 30),
}
MOST_SAMPLES = 1 << 16


def check_nerfacto_config(config: NerfactoConfig) -> None:
    """Raise a `UserError` for the first option that cannot be."""
    check_radiance_field(config)
    check_limits(config, LIMITS)
    if len(config.proposal_samples) != len(config.proposal_resolutions):
        raise UserError(
            "--model.proposal-samples and --model.proposal-resolutions must name as many networks "
            f"as each other, got {len(config.proposal_samples)} and "
            f"{len(config.proposal_resolutions)}."
        )
    for count in config.proposal_samples:
        if not 1 <= count <= MOST_SAMPLES:
            raise UserError(f"--model.proposal-samples must be from 1 to {MOST_SAMPLES}.")
    for resolution in config.proposal_resolutions:
        if resolution < config.base_resolution:
            raise UserError(
                f"--model.proposal-resolutions {resolution} must not be below "
                f"--model.base-resolution {config.base_resolution}."
            )

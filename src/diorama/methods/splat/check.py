# SPDX-License-Identifier: Apache-2.0
"""Options that no Gaussians can be trained with, refused by the flag's name."""

from diorama.config.limits import check_limits
from diorama.errors import UserError
from diorama.methods.splat.config import SplatConfig

LIMITS = {
    "max_gaussians": (1, 1 << 28),
    "init_count": (1, 1 << 28),
    "init_opacity": (1e-4, 0.9999),
    "init_scale": (1e-6, 1e6),
    "max_init_scale": (1e-7, 1e9),
    "sphere_points": (0, 1 << 24),
    "sphere_factor": (0, 1e6),
    "sh_degree": (0, 3),
    "sh_every": (0, 1 << 30),
    "rest_every": (1, 1 << 30),
    "max_alpha": (0.5, 0.9999),
    "near": (1e-9, 1e9),
    "far": (1e-6, 1e30),
    "length_unit": (1e-9, 1e9),
    "downscale": (1, 64),
    "downscale_every": (1, 1 << 30),
    "ssim": (0, 1),
    "scale_loss": (0, 1e6),
    "opacity_loss": (0, 1e6),
    "alpha_loss": (0, 1e6),
    "depth_loss": (0, 1e6),
    "image_every": (0, 1 << 30),
    "histogram_every": (0, 1 << 30),
}
DENSITY_LIMITS = {
    "every": (1, 1 << 30),
    "start": (0, 1 << 30),
    "stop": (0, 1 << 30),
    "warmup": (0, 1 << 30),
    "reset_every": (0, 1 << 30),
    "split_factor": (1, 100),
    "growth": (0, 100),
    "min_opacity": (0, 0.99),
    "prune_opacity": (0, 0.99),
}


def check_splat_config(config: SplatConfig) -> None:
    """Raise a `UserError` for the first option that cannot be."""
    check_limits(config, LIMITS)
    for section in ("default", "adaptive", "mcmc"):
        part = getattr(config, section)
        limits = {name: span for name, span in DENSITY_LIMITS.items() if hasattr(part, name)}
        check_limits(part, limits, section)
    if config.init == "file" and config.init_file is None:
        raise UserError("--model.init file needs a file: add --model.init-file PATH.")
    if config.downscale & (config.downscale - 1):
        raise UserError(f"--model.downscale must be a power of two, got {config.downscale}.")
    if config.far <= config.near:
        raise UserError(f"--model.far {config.far} must be beyond --model.near {config.near}.")
    if config.adaptive.reset_every < 1:
        raise UserError("--adaptive.reset-every must be at least 1.")

# SPDX-License-Identifier: Apache-2.0
"""Options that no Gaussians can be trained with, refused by the flag's name."""

from diorama.config.limits import check_limits
from diorama.data.scene import Scene
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
ANY = (-1e30, 1e30)
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
    "gradient": (0, 1e30),
    "gradient_per_pixel": (0, 1e30),
    "mean_gradient": (0, 1e30),
    "mean_gradient_per_pixel": (0, 1e30),
    "mean_position_gradient": (0, 1e30),
    "grow_scale": (0, 1e30),
    "prune_scale": (0, 1e30),
    "transparent": ANY,
    "reset_to": ANY,
    "floater_pixels": (0, 1 << 30),
    "floater_depth": (0, 1e30),
    "floater_start": (0, 1 << 30),
    "split_pixels": (0, 1 << 30),
    "move_factor": ANY,
    "plot_every": (0, 1 << 30),
    "noise": (0, 1e30),
    "gate": (0, 1e30),
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
    room = min(config.max_gaussians, config.init_count)
    if config.sphere_points >= room:
        raise UserError(
            f"--model.sphere-points {config.sphere_points} leaves no Gaussian for the scene; it"
            f" must be below --model.init-count and --model.max-gaussians, {room} here."
        )


def check_splat_scene(config: SplatConfig, scene: Scene) -> None:
    """Raise a `UserError` for an option that this scene has no data for."""
    has_depth = any(scene.frames[i].depth_path is not None for i in scene.splits["train"])
    if config.depth_loss > 0 and scene.has_files and not has_depth:
        raise UserError(
            f"--model.depth-loss {config.depth_loss:g}: no training image of {scene.root} has a"
            " depth file; leave the flag out."
        )

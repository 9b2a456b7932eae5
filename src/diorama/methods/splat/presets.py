# SPDX-License-Identifier: Apache-2.0
"""The named configurations of Gaussian splatting: balanced, CPU-sized, and the taichi system's."""

from diorama.config import ImageDataConfig, LogConfig, TrainerConfig
from diorama.methods.splat.config import SplatConfig, SplatOptimConfig
from diorama.methods.splat.density_config import AdaptiveConfig, DefaultConfig, McmcConfig


def splat() -> TrainerConfig:
    """The original's schedule with absolute gradients and a budget."""
    return TrainerConfig(
        method="splat",
        max_steps=30_000,
        data=ImageDataConfig(max_side=1600),
        model=SplatConfig(default=DefaultConfig(absolute=True, gradient=8e-4)),
        optim=SplatOptimConfig(),
        log=LogConfig(eval_every=1000),
    )


def splat_fast() -> TrainerConfig:
    """A small budget, small images first, and a short schedule."""
    return TrainerConfig(
        method="splat-fast",
        max_steps=7000,
        data=ImageDataConfig(max_side=800, adjust_cameras=True),
        model=SplatConfig(
            max_gaussians=100_000,
            init_count=20_000,
            downscale=4,
            downscale_every=250,
            sh_every=500,
            density="mcmc",
            mcmc=McmcConfig(start=200, stop=5500, every=100, budget_curve=True),
            init_opacity=0.5,
            init_scale=0.5,
            opacity_loss=0.001,
            scale_loss=0.001,
        ),
        optim=SplatOptimConfig(),
        log=LogConfig(eval_every=1000),
    )


def splat_taichi() -> TrainerConfig:
    """The settings with which the taichi system's authors got their published figures."""
    return TrainerConfig(
        method="splat-taichi",
        max_steps=30_001,
        # Its thresholds and rates are lengths of the user's frame.
        data=ImageDataConfig(max_side=1600, normalize="none", orientation="none"),
        model=SplatConfig(
            length_unit=1.0,
            color="sigmoid",
            gate_bands=False,
            antialiased=True,
            gradients="faithful",
            near=0.4,
            far=2000.0,
            background="black",
            clamp_image=True,
            downscale=4,
            downscale_every=250,
            ssim_padding="valid",
            random_rotations=True,
            init_distance="mean",
            init_scale=0.1,
            init_opacity=0.5125,  # the logit 0.05
            max_init_scale=3000.0,
            sphere_points=10_000,
            density="adaptive",
            adaptive=AdaptiveConfig(
                transparent=-2.0, reset_every=4000, reset_to=-1.9,
                floater_pixels=300_000, split_pixels=32,
            ),
        ),
        optim=SplatOptimConfig(
            eps=1e-8, lr=5e-5, lr_final=1e-5, dc_lr=5e-3, rest_lr=5e-3, opacity_lr=5e-3,
            scale_lr=5e-3, rotation_lr=5e-3,
        ),
        log=LogConfig(eval_every=3000, eval_at=(5000, 7000), eval_images=8, keep_best=True),
    )  # fmt: skip

# SPDX-License-Identifier: Apache-2.0
"""Settings of Gaussian splatting; the defaults are those of the original paper's code."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import tyro

from diorama.config import ModelConfig, OptimConfig
from diorama.methods.splat.density_config import AdaptiveConfig, DefaultConfig, McmcConfig

_TOP_LEVEL = tyro.conf.arg(prefix_name=False)
"""Flags stay two words deep: --mcmc.noise, not --model.mcmc.noise."""


@dataclass(frozen=True)
class SplatConfig(ModelConfig):
    """Gaussians, how they begin, how they are drawn, what they are taught and how they multiply."""

    target: ClassVar[str] = "diorama.methods.splat.model:SplatModel"

    max_gaussians: int = 1_000_000
    """No more Gaussians than this, ever."""
    init: Literal["auto", "points", "file", "hull", "sweep", "random"] = "auto"
    """Where Gaussians begin: the data set's sparse points, a file, the hull of the objects'
    masks, where neighbouring images agree, or random places; auto takes what the data allows."""
    init_file: Path | None = None
    """With init file: a trained scene (.ply, .splat, .spz, .glb, .parquet) or a point cloud."""
    init_count: int = 100_000
    """Gaussians to begin with where there are no points (hull, sweep, random), and at most as many
    of the points."""
    init_opacity: float = 0.1
    """Opacity of the first Gaussians."""
    init_scale: float = 1.0
    """Standard deviation of the first Gaussians, in mean distances to their three neighbours."""
    init_distance: Literal["rms", "mean"] = "rms"
    """Which mean of those distances is taken."""
    max_init_scale: float | None = None
    """Upper limit of that standard deviation, in scene units."""
    random_rotations: bool = False
    """Begin with random rotations instead of none (the taichi system and gsplat)."""
    sphere_points: int = 0
    """Grey Gaussians on a sphere around the scene, for what is far away."""
    sphere_factor: float = 4.0
    """Radius of that sphere, in half sides of the points' box."""
    sh_degree: int = 3
    """Bands of spherical harmonics beyond the constant one: 0 to 3."""
    sh_every: int = 1000
    """Steps after which each band joins."""
    color: Literal["shifted", "sigmoid"] = "shifted"
    """Colour from harmonics: max(0, SH + 0.5), or sigmoid(SH) as in the taichi system."""
    rest_every: int = 1
    """Steps between updates of the harmonics beyond the constant one; between them they are drawn
    and not taught."""
    gate_bands: bool = True
    """A band that has not joined is not drawn; otherwise only its gradients are masked."""
    antialiased: bool = False
    """Keep a splat's energy when it is blurred to a pixel (Mip-Splatting's 2-D filter)."""
    max_alpha: float = 0.99
    """Opacity of a splat at a pixel is cut off here."""
    gradients: Literal["exact", "faithful"] = "exact"
    """Exact derivatives, or those of the taichi system with the terms it leaves out."""
    near: float = 0.01
    """Nearest depth that is drawn, in scene units."""
    far: float = 1e10
    """Farthest depth that is drawn, in scene units."""
    background: Literal["auto", "random", "white", "black"] = "auto"
    """Behind the Gaussians while training; auto takes random for images with alpha, else black."""
    downscale: int = 1
    """Images are this many times smaller at the start (a power of two)."""
    downscale_every: int = 250
    """Steps after which that factor is halved."""
    ssim: float = 0.2
    """Share of 1 - SSIM in the loss; the rest is the absolute difference."""
    ssim_padding: Literal["same", "valid"] = "same"
    """Windows around every pixel, or only those that lie inside the image (taichi)."""
    clamp_image: bool = False
    """Colours beyond 0..1 are cut off before the loss, and so teach nothing (taichi)."""
    scale_loss: float = 0.0
    """Weight of the mean length of the Gaussians' standard deviations."""
    opacity_loss: float = 0.0
    """Weight of the mean opacity."""
    alpha_loss: float = 0.0
    """Weight of the absolute difference of alpha, for images that have one."""
    depth_loss: float = 0.0
    """Weight of the absolute difference of expected depth, for images that have one."""
    length_unit: float | None = None
    """Length in scene units by which learning rates and size rules of positions are multiplied;
    unset: the radius of the training cameras around their mean."""
    exposure: bool = False
    """Learn an affine colour map per training image."""
    refine_poses: bool = False
    """Correct the training cameras' poses along with the scene; other views are corrected as the
    training cameras around them."""
    density: Literal["default", "adaptive", "mcmc"] = "default"
    """How Gaussians multiply and die: the original rules, the taichi system's, or MCMC."""
    default: Annotated[DefaultConfig, _TOP_LEVEL] = field(default_factory=DefaultConfig)
    """The original rules."""
    adaptive: Annotated[AdaptiveConfig, _TOP_LEVEL] = field(default_factory=AdaptiveConfig)
    """The taichi system's rules."""
    mcmc: Annotated[McmcConfig, _TOP_LEVEL] = field(default_factory=McmcConfig)
    """Relocation and noise."""
    image_every: int = 1000
    """Steps between image grids in the log (0: never)."""
    histogram_every: int = 1000
    """Steps between histograms of values and gradients in the log (0: never)."""


@dataclass(frozen=True)
class SplatOptimConfig(OptimConfig):
    """Adam with a rate for each kind of parameter; that of the means is in scene extents."""

    eps: float = 1e-15
    """Added to the root of the second moment; gradients are tiny, so this matters."""
    lr: float = 1.6e-4
    """Learning rate of the means at the start, times the radius of the cameras."""
    lr_final: float = 1.6e-6
    """Learning rate of the means at the end, times the radius of the cameras."""
    dc_lr: float = 2.5e-3
    """Learning rate of the constant colour."""
    rest_lr: float = 2.5e-3 / 20
    """Learning rate of the other harmonics."""
    opacity_lr: float = 5e-2
    """Learning rate of opacity logits."""
    scale_lr: float = 5e-3
    """Learning rate of log-scales."""
    rotation_lr: float = 1e-3
    """Learning rate of quaternions."""
    exposure_lr: float = 1e-3
    """Learning rate of the images' colour maps; it falls to a tenth."""
    pose_lr: float = 1e-4
    """Learning rate of pose corrections; it falls to a tenth."""
    visible_only: bool = False
    """Gaussians outside the image keep still with their moments, and Adam's correction of its
    bias counts, for each Gaussian, the steps that it took part in."""

    @property
    def by_rows(self) -> bool:
        """Rows are Gaussians, and those of a step the visible ones."""
        return self.visible_only

    def group(self, name: str) -> OptimConfig:
        """Only means, colour maps and poses have a decay."""
        constant = {
            "quaternions": self.rotation_lr,
            "log_scales": self.scale_lr,
            "opacity_logits": self.opacity_lr,
            "sh_dc": self.dc_lr,
            "sh_rest": self.rest_lr,
        }
        if name in constant:
            return replace(self, lr=constant[name], schedule="constant")
        falling = {"exposure": self.exposure_lr, "poses": self.pose_lr}
        if name in falling:
            final = falling[name] / 10
            return replace(self, lr=falling[name], lr_final=final, visible_only=False)
        return self

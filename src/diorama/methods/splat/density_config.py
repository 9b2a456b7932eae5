# SPDX-License-Identifier: Apache-2.0
"""Settings of the three ways in which Gaussians multiply and die."""

from dataclasses import dataclass

from diorama.config import Config


@dataclass(frozen=True)
class DefaultConfig(Config):
    """The original rules, as gsplat has them: clone, split, prune, reset."""

    start: int = 500
    """Nothing happens up to this step."""
    stop: int = 15_000
    """Nothing happens from this step on."""
    every: int = 100
    """Steps between refinements."""
    reset_every: int = 3000
    """Steps between resets of all opacities (0: never)."""
    gradient: float = 2e-4
    """A Gaussian whose mean image gradient (in half images) exceeds this multiplies."""
    absolute: bool = False
    """Take absolute gradients per pixel (AbsGS); the threshold is then about 8e-4."""
    grow_scale: float = 0.01
    """Larger ones (in scene extents) are split in two, smaller ones cloned."""
    prune_opacity: float = 0.005
    """Less opaque ones die."""
    prune_scale: float = 0.1
    """Larger ones (in scene extents) die, once opacities have been reset."""
    split_factor: float = 1.6
    """Halves are this many times smaller than what was split."""
    growth: float = 1.0
    """At most this share of the Gaussians is added at once."""
    budget_curve: bool = False
    """The number follows a curve from its start to --model.max-gaussians at the stop: the most
    pulled about multiply, whatever the threshold."""


@dataclass(frozen=True)
class AdaptiveConfig(Config):
    """The taichi system's controller; opacities are logits, as there."""

    warmup: int = 500
    """Steps before anything happens."""
    every: int = 100
    """Steps between refinements."""
    stop: int | None = None
    """Nothing is added from this step on; unset never stops, as published."""
    transparent: float = -0.5
    """Gaussians whose opacity logit is below this die."""
    gradient: float = 6e-6
    """A sum of per-pixel gradient norms (pixels) above this, in the current image, multiplies."""
    gradient_per_pixel: float = 1e3
    """The same divided by the pixels touched; 1e3 switches a threshold off."""
    mean_gradient: float = 1e3
    """Threshold on the mean sum over the images since the last refinement."""
    mean_gradient_per_pixel: float = 1e3
    """Threshold on the mean gradient per pixel over those images."""
    mean_position_gradient: float = 1e3
    """Threshold on the mean length of the position's gradient over those images."""
    split_factor: float = 1.6
    """Split Gaussians shrink by this factor."""
    reset_every: int = 3000
    """Steps between resets of all opacities."""
    reset_to: float = 0.1
    """Opacity logits are cut off here by a reset."""
    floater_pixels: int = 10_000
    """A near Gaussian that covers more pixels than this is a floater, and dies."""
    floater_depth: float = 100.0
    """What counts as near, in scene units."""
    floater_start: int = 2000
    """Floaters are looked for after this step."""
    split_pixels: int = 512
    """Gaussians that touched more pixels since the last refinement are split, others cloned."""
    move_factor: float = 100.0
    """A clone moves by its mean position gradient times this."""
    ellipsoid_offset: bool = False
    """Children begin at a focus of their parent's ellipsoid."""
    sample_children: bool = True
    """Split children are drawn from their parent's distribution."""
    plot_every: int = 200
    """Steps between plots of what was densified (0: never)."""


@dataclass(frozen=True)
class McmcConfig(Config):
    """3DGS-MCMC: the dead are relocated onto the living, positions are shaken, the number grows
    to a cap."""

    start: int = 500
    """Nothing happens up to this step."""
    stop: int = 25_000
    """Nothing is relocated or added from this step on."""
    every: int = 100
    """Steps between relocations."""
    min_opacity: float = 0.005
    """Less opaque ones are dead."""
    growth: float = 1.05
    """The number grows by this factor at each relocation, up to --model.max-gaussians."""
    budget_curve: bool = False
    """The number follows a curve that reaches --model.max-gaussians at the stop instead."""
    noise: float = 5e5
    """Length of the noise on positions, in learning rates."""
    gate: float = 100.0
    """Steepness of the opacity below which noise acts."""

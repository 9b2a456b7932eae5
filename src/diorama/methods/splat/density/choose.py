# SPDX-License-Identifier: Apache-2.0
"""The strategy that a config names."""

from diorama.methods.splat.config import SplatConfig
from diorama.methods.splat.density.adaptive import AdaptiveDensity
from diorama.methods.splat.density.default import DefaultDensity
from diorama.methods.splat.density.mcmc import McmcDensity
from diorama.methods.splat.density.strategy import DensityStrategy
from diorama.methods.splat.gaussians import Gaussians


def density_strategy(config: SplatConfig, gaussians: Gaussians, extent: float) -> DensityStrategy:
    """`extent` is the radius of the cameras around their mean, the unit of the scale rules."""
    limit = config.max_gaussians
    if config.density == "adaptive":
        return AdaptiveDensity(config.adaptive, gaussians, limit, extent)
    if config.density == "mcmc":
        return McmcDensity(config.mcmc, gaussians, limit, extent)
    return DefaultDensity(config.default, gaussians, limit, extent)

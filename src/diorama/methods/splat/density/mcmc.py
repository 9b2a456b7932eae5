# SPDX-License-Identifier: Apache-2.0
"""3DGS as Markov chain Monte Carlo (Kheradmand et al. 2024): relocate the dead, shake, grow."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diorama.methods.splat.density.samples import rotations
from diorama.methods.splat.density.strategy import DensityStrategy
from diorama.methods.splat.density_config import McmcConfig
from diorama.methods.splat.gaussians import Gaussians
from diorama.methods.splat.schedule import budget_at

MAX_COPIES = 51
"""More Gaussians than this never share one place (the sum of equation 9 is cut off here)."""


class McmcDensity(DensityStrategy):
    """No gradients are watched: opacity says who lives, chance who is copied."""

    def __init__(self, config: McmcConfig, gaussians: Gaussians, max_gaussians: int, extent: float):
        super().__init__(gaussians, max_gaussians, extent)
        self.config = config

    @torch.no_grad()
    def refine(self, step: int, generator: torch.Generator) -> dict[str, float]:
        """Relocate and grow every so many steps; shake positions after each."""
        config, done = self.config, step + 1
        at = done / self.squeeze
        facts: dict[str, float] = {}
        if config.start < at < config.stop and done % config.every == 0:
            facts = {
                "relocated": float(self._relocate(generator)),
                "added": float(self._grow(at, generator)),
            }
        self._shake(generator)
        return facts

    def _relocate(self, generator: torch.Generator) -> int:
        """The dead become copies of the living, drawn by opacity; moments of both start anew."""
        gaussians = self.gaussians
        is_dead = gaussians.opacities <= self.config.min_opacity
        dead, living = is_dead.nonzero()[:, 0], (~is_dead).nonzero()[:, 0]
        if len(dead) == 0 or len(living) == 0:
            return 0
        drawn = living[_draw(gaussians.opacities[living], len(dead), generator)]
        self._share(drawn)
        source = torch.arange(len(gaussians), device=dead.device)
        source[dead] = drawn
        gaussians.take(source, is_dead.index_fill(0, drawn, True), self.optimizers)
        return len(dead)

    def _grow(self, at: float, generator: torch.Generator) -> int:
        gaussians, config = self.gaussians, self.config
        target = int(config.growth * len(gaussians))
        if config.budget_curve:
            share = (at - config.start) / (config.stop - config.start)
            target = budget_at(share, self.first_count, self.max_gaussians)
        count = min(self.room, target - len(gaussians))
        if count <= 0:
            return 0
        drawn = _draw(gaussians.opacities, count, generator)
        self._share(drawn)
        rows = torch.arange(len(gaussians) + count, device=drawn.device)
        source = torch.cat((rows[: len(gaussians)], drawn))
        gaussians.take(source, rows >= len(gaussians), self.optimizers)
        return count

    def _share(self, drawn: Int[Tensor, " D"]) -> None:
        """Make each drawn Gaussian one of n equal parts that together look like it (equation 9)."""
        gaussians = self.gaussians
        copies = torch.bincount(drawn, minlength=len(gaussians)) + 1
        rows = (copies > 1).nonzero()[:, 0]
        opacity, factor = shares(gaussians.opacities[rows], copies[rows].clamp(max=MAX_COPIES))
        opacity = opacity.clamp(self.config.min_opacity, 1 - 1e-6)
        gaussians.opacity_logits.data[rows] = torch.logit(opacity)
        gaussians.log_scales.data[rows] += factor.log()[:, None]

    def _shake(self, generator: torch.Generator) -> None:
        """means += Sigma noise, most where opacity is low (equation 8)."""
        gaussians, config = self.gaussians, self.config
        rate = 0.0 if self.optimizers is None else self.optimizers.rate_of(gaussians.means)
        opacity = gaussians.opacities
        gate = torch.sigmoid(-config.gate * (opacity - config.min_opacity))
        # Elsewhere the noise is below a millionth of its length.
        rows = (gate > 1e-6).nonzero()[:, 0]
        noise = torch.randn((len(rows), 3), generator=generator, device=rows.device)
        turn = rotations(gaussians.quaternions[rows])
        local = (turn.transpose(1, 2) @ noise.to(turn)[:, :, None])[:, :, 0]
        shaken = (turn @ (local * gaussians.scales[rows].square())[:, :, None])[:, :, 0]
        gaussians.means.data[rows] += shaken * (gate[rows] * rate * config.noise)[:, None]


def shares(
    opacity: Float[Tensor, " N"], copies: Int[Tensor, " N"]
) -> tuple[Float[Tensor, " N"], Float[Tensor, " N"]]:
    """Opacity of each of n copies that replace one Gaussian, and the factor on their scale.

    o_new = 1 - (1 - o)^(1/n);  factor = o / sum_{i=1..n} sum_{k<i} C(i-1, k) (-1)^k
    o_new^(k+1) / sqrt(k+1). In double precision, because the inner sum alternates.
    """
    old = opacity.double()
    new = 1 - (1 - old) ** (1 / copies.double())
    table = _alternating().to(old.device)
    powers = new[:, None] ** torch.arange(1, MAX_COPIES + 1, device=old.device)
    total = (table[copies - 1] * powers).sum(dim=1)
    return new.to(opacity), (old / total).to(opacity)


def _alternating() -> Float[Tensor, "n k"]:
    """Row n-1: coefficients of o^(k+1), summed over i up to n; sum_{i} C(i-1, k) = C(n, k+1)."""
    return torch.tensor(
        [
            [(-1) ** k * math.comb(n, k + 1) / math.sqrt(k + 1) for k in range(MAX_COPIES)]
            for n in range(1, MAX_COPIES + 1)
        ],
        dtype=torch.float64,
    )


def _draw(
    weights: Float[Tensor, " N"], count: int, generator: torch.Generator
) -> Int[Tensor, " D"]:
    """Indices by weight, with replacement, by inversion: `multinomial` stops at 2^24 weights."""
    edges = weights.double().cumsum(0)
    draws = torch.rand(count, generator=generator, device=weights.device, dtype=torch.float64)
    return torch.searchsorted(edges, draws * edges[-1]).clamp(max=len(weights) - 1)

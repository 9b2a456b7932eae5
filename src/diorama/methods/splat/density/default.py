# SPDX-License-Identifier: Apache-2.0
"""The original rules: clone what is small and pulled about, split what is large, prune, reset."""

import math

import torch
from jaxtyping import Bool
from torch import Tensor

from diorama.methods.splat.density.samples import offsets
from diorama.methods.splat.density.strategy import DensityStrategy, Observation
from diorama.methods.splat.density_config import DefaultConfig
from diorama.methods.splat.gaussians import Gaussians
from diorama.methods.splat.schedule import budget_at, is_due

RESET_FACTOR = 2.0
"""A reset cuts opacities off at this many times the prune threshold, as gsplat does."""


class DefaultDensity(DensityStrategy):
    """3DGS with gsplat's order: duplicate, split, prune, reset."""

    watches_pixels = True
    gradient_sum: Tensor
    count: Tensor

    def __init__(
        self, config: DefaultConfig, gaussians: Gaussians, max_gaussians: int, extent: float
    ):
        super().__init__(gaussians, max_gaussians, extent)
        self.config = config
        self.register_buffer("gradient_sum", torch.zeros(len(gaussians)))
        self.register_buffer("count", torch.zeros(len(gaussians)))

    def observe(self, seen: Observation, step: int) -> None:
        """Sum the lengths of image gradients, measured in half images."""
        if step >= self.config.stop * self.squeeze:
            return
        assert seen.sums is not None, "this strategy watches pixels"
        gradient = seen.sums.abs_gradients if self.config.absolute else seen.center_gradients
        half = gradient.new_tensor([seen.width / 2, seen.height / 2])
        self.gradient_sum += (gradient * half).norm(dim=1)
        self.count += seen.is_visible

    @torch.no_grad()
    def refine(self, step: int, generator: torch.Generator) -> dict[str, float]:
        """Clone, split and prune every so many steps; reset opacities more rarely."""
        config, done = self.config, step + 1
        at = done / self.squeeze
        facts: dict[str, float] = {}
        if config.start < at < config.stop and done % config.every == 0:
            facts = self._grow(at, generator)
            facts["pruned"] = float(self._prune(at))
            self.clear()
        if at < config.stop and is_due(done, config.reset_every * self.squeeze):
            self._reset()
        return facts

    def _grow(self, at: float, generator: torch.Generator) -> dict[str, float]:
        gaussians, config = self.gaussians, self.config
        mean = self.gradient_sum / self.count.clamp(min=1)
        wanted = mean > config.gradient
        allowed = min(self.room, int(config.growth * len(gaussians)))
        if config.budget_curve:
            wanted = mean > 0
            share = (at - config.start) / (config.stop - config.start)
            target = budget_at(share, self.first_count, self.max_gaussians)
            allowed = min(allowed, max(0, target - len(gaussians)))
        if int(wanted.sum()) > allowed:  # the most pulled about come first
            best = torch.topk(mean, allowed, sorted=False).indices
            wanted = torch.zeros_like(wanted).index_fill_(0, best, True) & wanted
        is_large = gaussians.scales.amax(dim=1) > config.grow_scale * self.extent
        self._add(wanted & is_large, wanted & ~is_large, generator)
        return {
            "split": float((wanted & is_large).sum()),
            "cloned": float((wanted & ~is_large).sum()),
        }

    def _add(
        self, split: Bool[Tensor, " N"], clone: Bool[Tensor, " N"], generator: torch.Generator
    ) -> None:
        """Clones follow all Gaussians, then second halves; first halves take their parent's row."""
        gaussians, device = self.gaussians, split.device
        num = len(gaussians)
        parents = split.nonzero()[:, 0]
        source = torch.cat((torch.arange(num, device=device), clone.nonzero()[:, 0], parents))
        is_fresh = torch.arange(len(source), device=device) >= num
        is_fresh[:num] = split
        second = torch.arange(len(source) - len(parents), len(source), device=device)
        halves = torch.cat((parents, second))
        gaussians.take(source, is_fresh, self.optimizers)
        drawn = offsets(gaussians.quaternions[halves], gaussians.scales[halves], generator)
        gaussians.means.data[halves] += drawn
        gaussians.log_scales.data[halves] -= math.log(self.config.split_factor)

    def _prune(self, at: float) -> int:
        gaussians, config = self.gaussians, self.config
        is_dead = gaussians.opacities < config.prune_opacity
        if config.reset_every > 0 and at > config.reset_every:
            is_dead |= gaussians.scales.amax(dim=1) > config.prune_scale * self.extent
        return keep_only(self, ~is_dead)

    def _reset(self) -> None:
        gaussians = self.gaussians
        limit = RESET_FACTOR * self.config.prune_opacity
        gaussians.opacity_logits.data.clamp_(max=math.log(limit / (1 - limit)))
        everything = torch.ones(len(gaussians), dtype=torch.bool, device=gaussians.means.device)
        gaussians.forget_moments("opacity_logits", everything, self.optimizers)


def keep_only(strategy: DensityStrategy, is_kept: Bool[Tensor, " N"]) -> int:
    """Drop all other Gaussians (but never the last one); returns how many went."""
    gaussians = strategy.gaussians
    if not bool(is_kept.any()):
        is_kept = torch.zeros_like(is_kept)
        is_kept[int(gaussians.opacity_logits.argmax())] = True
    kept = is_kept.nonzero()[:, 0]
    dropped = len(gaussians) - len(kept)
    if dropped:
        fresh = torch.zeros(len(kept), dtype=torch.bool, device=kept.device)
        gaussians.take(kept, fresh, strategy.optimizers)
    return dropped

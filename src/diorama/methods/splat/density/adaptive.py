# SPDX-License-Identifier: Apache-2.0
"""The adaptive controller of the taichi system.

Its arrays have a fixed capacity and free slots; here rows come and go instead, and the capacity is
`--model.max-gaussians`. Moments of new rows are zero, where the original reuses a dead slot's.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from diorama.methods.splat.density.samples import offsets, rotations
from diorama.methods.splat.density.strategy import DensityStrategy, Observation
from diorama.methods.splat.density_config import AdaptiveConfig
from diorama.methods.splat.gaussians import Gaussians
from diorama.ops.rasterized import SplatSums


@dataclass(frozen=True)
class Plan:
    """What a refinement will do, found before the optimiser's step and done after it."""

    is_floater: Bool[Tensor, " N"]
    is_transparent: Bool[Tensor, " N"]
    parents: Int[Tensor, " D"]
    """Gaussians to multiply."""
    means: Float[Tensor, "D 3"]
    """Their positions before the step."""
    moves: Float[Tensor, "D 3"]
    """Their mean position gradients since the last refinement."""
    is_split: Bool[Tensor, " D"]
    """Over-reconstructed: split; the others are under-reconstructed: cloned."""
    centers: Float[Tensor, "N 2"]
    """Where all Gaussians are in the image, for the plot."""


class AdaptiveDensity(DensityStrategy):
    """Floaters and the transparent die; what pulls hard in the current image multiplies."""

    watches_pixels = True
    times: Tensor
    pixels: Tensor
    magnitude: Tensor
    magnitude_per_pixel: Tensor
    position_gradient: Tensor
    position_gradient_norm: Tensor

    def __init__(
        self, config: AdaptiveConfig, gaussians: Gaussians, max_gaussians: int, extent: float
    ):
        super().__init__(gaussians, max_gaussians, extent)
        self.config = config
        num = len(gaussians)
        for name in ("times", "pixels", "magnitude", "magnitude_per_pixel"):
            self.register_buffer(name, torch.zeros(num))
        self.register_buffer("position_gradient", torch.zeros(num, 3))
        self.register_buffer("position_gradient_norm", torch.zeros(num))
        self.plan: Plan | None = None
        """Of the step at hand; read by the plot, gone after `refine`."""

    def is_refining(self, step: int) -> bool:
        """Whether the controller acts at this step."""
        return step >= self.config.warmup and step % self.config.every == 0

    @torch.no_grad()
    def observe(self, seen: Observation, step: int) -> None:
        """Sum the statistics; at a refining step, decide who multiplies and who dies."""
        gradient = self.gaussians.means.grad
        assert gradient is not None, "observed after the backward pass"
        sums = seen.sums
        assert sums is not None, "this strategy watches pixels"
        self.times += seen.is_visible
        self.pixels += sums.pixels
        self.magnitude += sums.gradient_norms
        self.magnitude_per_pixel += sums.gradient_norms / sums.pixels.clamp(min=1)
        self.position_gradient += gradient
        self.position_gradient_norm += gradient.norm(dim=1)
        if self.is_refining(step):
            self.plan = self._find(seen, sums, step)

    def _find(self, seen: Observation, sums: SplatSums, step: int) -> Plan:
        config, gaussians = self.config, self.gaussians
        is_floater = torch.zeros_like(seen.is_visible)
        if step > config.floater_start:
            is_near = seen.depths < config.floater_depth
            is_floater = seen.is_visible & (sums.pixels > config.floater_pixels) & is_near
        is_transparent = gaussians.opacity_logits < config.transparent
        for parameter in gaussians.named_tensors().values():
            is_transparent |= ~parameter.isfinite().view(len(gaussians), -1).all(dim=1)
        is_transparent &= ~is_floater
        wanted = self._is_wanted(seen.is_visible, sums) & ~is_floater & ~is_transparent
        if config.stop is not None and step >= config.stop * self.squeeze:
            wanted = torch.zeros_like(wanted)
        parents = wanted.nonzero()[:, 0]
        return Plan(
            is_floater, is_transparent, parents,
            means=gaussians.means.data[parents].clone(),
            moves=self.position_gradient[parents] / self.times[parents].clamp(min=1)[:, None],
            is_split=self.pixels[parents] > config.split_pixels,
            centers=seen.centers,
        )  # fmt: skip

    def _is_wanted(self, is_visible: Bool[Tensor, " N"], sums: SplatSums) -> Bool[Tensor, " N"]:
        config = self.config
        times = self.times.clamp(min=1)
        current = (sums.gradient_norms > config.gradient) | (
            sums.gradient_norms / sums.pixels.clamp(min=1) > config.gradient_per_pixel
        )
        several = (
            (self.magnitude / times > config.mean_gradient)
            | (self.magnitude_per_pixel / times > config.mean_gradient_per_pixel)
            | (self.position_gradient_norm / times > config.mean_position_gradient)
        )
        return (current & is_visible) | several

    @torch.no_grad()
    def refine(self, step: int, generator: torch.Generator) -> dict[str, float]:
        """Carry out the plan of this step; cut opacities off more rarely."""
        config, facts = self.config, {}
        if step < config.warmup:
            return {}
        if self.plan is not None:
            facts = self._carry_out(self.plan, generator)
            self.plan = None
            self.clear()
        if step % config.reset_every == 0:
            self.gaussians.opacity_logits.data.clamp_(max=config.reset_to)
        return facts

    def _carry_out(self, plan: Plan, generator: torch.Generator) -> dict[str, float]:
        """Remove, then add copies; both halves of a split shrink and are drawn anew."""
        gaussians = self.gaussians
        is_kept = ~(plan.is_floater | plan.is_transparent)
        kept = is_kept.nonzero()[:, 0]
        if len(kept) == 0:
            kept = gaussians.opacity_logits.argmax()[None]
        # The first ones come first, as free slots are given away there.
        room = max(0, self.max_gaussians - len(kept))
        parents, is_split = plan.parents[:room], plan.is_split[:room]
        source = torch.cat((kept, parents))
        is_fresh = torch.arange(len(source), device=kept.device) >= len(kept)
        gaussians.take(source, is_fresh, self.optimizers)
        row_of = torch.cumsum(is_kept, dim=0) - 1
        self._place(row_of[parents], len(kept), is_split, plan, generator)
        return {
            "floaters": float(plan.is_floater.sum()),
            "transparent": float(plan.is_transparent.sum()),
            "split": float(is_split.sum()),
            "cloned": float((~is_split).sum()),
        }

    def _place(
        self,
        parents: Int[Tensor, " D"],
        first_child: int,
        is_split: Bool[Tensor, " D"],
        plan: Plan,
        generator: torch.Generator,
    ) -> None:
        gaussians, config = self.gaussians, self.config
        children = torch.arange(len(parents), device=parents.device) + first_child
        means = gaussians.means.data
        means[children] = plan.means[: len(parents)]
        shrink = torch.where(is_split, math.log(config.split_factor), 0.0)[:, None].to(means)
        gaussians.log_scales.data[children] -= shrink
        gaussians.log_scales.data[parents] -= shrink
        if config.ellipsoid_offset:
            focus = foci(gaussians.quaternions[parents], gaussians.scales[parents])
            means[children] += focus
            means[parents] -= focus
        split = is_split.nonzero()[:, 0]
        if config.sample_children:
            around = plan.means[: len(parents)][split]
            for rows in (children[split], parents[split]):
                drawn = offsets(gaussians.quaternions[rows], gaussians.scales[rows], generator)
                means[rows] = around + drawn
        clones = (~is_split).nonzero()[:, 0]
        means[children[clones]] += config.move_factor * plan.moves[: len(parents)][clones]


def foci(quaternions: Float[Tensor, "N 4"], scales: Float[Tensor, "N 3"]) -> Float[Tensor, "N 3"]:
    """From the centre to a focus: sqrt(max^2 - min^2) along the longest axis."""
    longest = scales.argmax(dim=1)
    length = (scales.amax(dim=1).square() - scales.amin(dim=1).square()).sqrt()
    axis = rotations(quaternions)[torch.arange(len(scales), device=scales.device), :, longest]
    return length[:, None] * axis

# SPDX-License-Identifier: Apache-2.0
"""Rays beside those of pixels, which say roughly where matter is: to sparse points, of new views.

What matter looks like exactly, pixels know better. So these losses fall to a share until training
ends, and after its first part, when matter has found its place, their rays are drawn rarely.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from diorama.cameras import Rays
from diorama.data.scene import Scene
from diorama.methods.nerfacto.config import NerfactoConfig
from diorama.methods.nerfacto.new_views import NewViews, plainness_loss
from diorama.methods.nerfacto.point_rays import PointRays, point_loss
from diorama.methods.nerfacto.samples import RaySamples

FALL = 0.1
"""The losses fall to this share until training ends."""
FIRST_SHARE = 0.25
"""In this first share of training their rays are drawn in every step."""
EVERY, AT = 4, 2
"""After that in every so many steps, at this one of them, weighing as much more: they cost a third
of a step. It is not the steps in which poses are corrected: poses then learn from pixels alone."""
COST = 1.5
"""Time of a step with their rays, relative to one without; measured with the preset's numbers."""


@dataclass(frozen=True)
class GuidingRays:
    """Such rays of one step, those to points first, and how much their losses count."""

    share: float
    to_points: Rays | None = None
    distances: Float[Tensor, " P"] | None = None
    """Of the points, along their rays."""
    patches: Rays | None = None
    """Of new views."""

    @property
    def rays(self) -> list[Rays]:
        """Whatever there is, in order."""
        return [rays for rays in (self.to_points, self.patches) if rays is not None]

    def losses(
        self, samples: RaySamples, weights: Float[Tensor, "R S"], step: int, unit: float
    ) -> dict[str, Tensor]:
        """What samples and weights of exactly these rays cost; `unit` is the scene's length."""
        losses, num = {}, 0
        if self.distances is not None:
            num = len(self.distances)
            loss = point_loss(samples[:num], weights[:num], self.distances, step)
            losses["points"] = self.share * loss
        if self.patches is not None:
            loss = plainness_loss(self.patches, samples[num:], weights[num:], unit)
            losses["plainness"] = self.share * loss
        return losses


class Guidance(nn.Module):
    """Where such rays come from, and the steps that have them."""

    def __init__(self, config: NerfactoConfig, scene: Scene):
        super().__init__()
        self.config = config
        points = PointRays(scene) if config.point_loss > 0 else None
        self.points = points if points is not None and len(points) else None
        self.new_views = NewViews(scene) if config.plainness > 0 else None

    def draw(self, step: int, max_steps: int, generator: torch.Generator) -> GuidingRays:
        """The rays of a step; most steps have none."""
        share = self._share(step, max_steps)
        to_points = distances = patches = None
        if share > 0 and self.points is not None:
            to_points, distances = self.points.draw(self.config.point_rays, generator)
        if share > 0 and self.new_views is not None:
            patches = self.new_views.draw(self.config.plain_patches, generator)
        return GuidingRays(share, to_points, distances, patches)

    def step_cost(self, step: int, max_steps: int) -> float:
        """Time of a step relative to one without; after the first part the mean of both kinds."""
        if self.points is None and self.new_views is None:
            return 1.0
        share = 1.0 if step < FIRST_SHARE * max_steps else 1 / EVERY
        return 1.0 + share * (COST - 1.0)

    def _share(self, step: int, max_steps: int) -> float:
        """How much the losses count in a step; 0: their rays are not drawn."""
        fading = FALL ** (step / max_steps)
        if step < FIRST_SHARE * max_steps:
            return fading
        return fading * EVERY if step % EVERY == AT else 0.0

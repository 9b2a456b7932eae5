# SPDX-License-Identifier: Apache-2.0
"""Distances along rays as numbers from 0 to 1, in which samples are spread and compared."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from diorama.cameras import Rays
from diorama.methods.nerfacto.settings import NerfactoSettings


@dataclass(frozen=True)
class Spacing:
    """Each ray's own map between distances t and s in 0..1.

        uniform:    s = (t - near) / (far - near)
        piecewise:  s = (h(t / unit) - h(near / unit)) / (h(far / unit) - h(near / unit)),
                    h(x) = x / 2 for x < 1, 1 - 1 / (2 x) beyond

    The piecewise map is even up to `unit`, the scene's distance, and in disparity beyond.
    """

    low: Float[Tensor, "R 1"]
    """h (or t itself) at the near end."""
    high: Float[Tensor, "R 1"]
    """The same at the far end."""
    unit: Float[Tensor, "R 1"] | None
    """None if uniform."""

    @staticmethod
    def of(settings: NerfactoSettings, rays: Rays) -> "Spacing":
        """The spacing of rays in a scene; a ray that misses the box gets an empty interval."""
        origins, directions = rays.origins.detach(), rays.directions.detach()
        if settings.is_uniform:
            near, far = settings.frame.span(origins, directions)
            near = near.clamp(min=settings.near)
            far = torch.maximum(far.clamp(max=settings.far), near)
            return Spacing(near[:, None], far[:, None], None)
        unit = settings.frame.distance_to_center(origins)[:, None]
        return Spacing(_bend(settings.near / unit), _bend(settings.far / unit), unit)

    def distances(self, s: Float[Tensor, "R E"]) -> Float[Tensor, "R E"]:
        """t of s."""
        bent = torch.lerp(self.low, self.high, s)
        return bent if self.unit is None else _unbend(bent) * self.unit


def _bend(x: Tensor) -> Tensor:
    return torch.where(x < 1.0, 0.5 * x, 1.0 - 0.5 / x.clamp(min=1.0))


def _unbend(h: Tensor) -> Tensor:
    return torch.where(h < 0.5, 2.0 * h, 0.5 / (1.0 - h).clamp(max=0.5))

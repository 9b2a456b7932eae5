# SPDX-License-Identifier: Apache-2.0
"""Rasterising of Gaussians as a trained scene has them: many small ones, few large ones."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from diorama.bench.case import Case, Work
from diorama.ops.rasterize import rasterize, rasterize_reference
from diorama.ops.rasterized import Rasterized
from diorama.ops.tile_lists import TileLists, tile_lists

# Operations per pixel that is drawn to with three channels: forward 5 for log2 alpha, 14 for alpha,
# 8 to blend; backward the same alpha, 3 for the reciprocal, 16 for the gradients of what was
# blended, 13 to sum up.
FORWARD_FLOPS = 27
BACKWARD_FLOPS = 51


@dataclass(frozen=True)
class SyntheticSplats:
    """N Gaussians on an image plane, as a projection gives them, and their colours."""

    centers: Float[Tensor, "N 2"]
    conics: Float[Tensor, "N 3"]
    opacities: Float[Tensor, " N"]
    half_extents: Float[Tensor, "N 2"]
    depths: Float[Tensor, " N"]
    features: Float[Tensor, "N 3"]
    width: int
    height: int

    def lists(self) -> TileLists:
        return tile_lists(*self.projected, self.width, self.height)

    @property
    def projected(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        return self.centers, self.conics, self.opacities, self.half_extents, self.depths

    def num_evaluations(self, lists: TileLists) -> int:
        """How many pairs of a Gaussian and a pixel that it is drawn to an image takes."""
        result = rasterize(
            *(self.centers, self.conics, self.opacities, self.features, torch.zeros(3)),
            *(lists, self.width, self.height),
        )
        return int(result.count.sum())


def synthetic_splats(
    count: int, width: int, height: int, size: float = 2.5, seed: int = 0
) -> SyntheticSplats:
    """Log-normal sizes of this median (pixels), a few times as long as wide, most of them faint."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    centers = torch.rand(count, 2, generator=generator) * torch.tensor([width, height])
    length = (math.log(size) + 0.7 * normal(count)).exp()
    variances = torch.stack([length, length * (-normal(count).abs()).exp()], dim=1) ** 2 + 0.3
    angle = math.pi * torch.rand(count, generator=generator)
    cos, sin = angle.cos(), angle.sin()
    long, short = variances.unbind(1)
    xx, yy = cos**2 * long + sin**2 * short, sin**2 * long + cos**2 * short
    xy = cos * sin * (long - short)
    conics = torch.stack([yy, -xy, xx], dim=1) / (long * short)[:, None]
    opacities = (1.5 * normal(count) - 0.5).sigmoid()
    reach = (2 * (255 * opacities).log()).clamp(min=0).sqrt()
    half_extents = reach[:, None] * torch.stack([xx, yy], dim=1).sqrt()
    depths = 1 + torch.rand(count, generator=generator)
    features = torch.rand(count, 3, generator=generator)
    return SyntheticSplats(
        centers, conics, opacities, half_extents, depths, features, width, height
    )


def cases() -> list[Case]:
    """Images of a training run on two cores, and one that it ends with."""
    return [
        _case(count, width, height, with_backward)
        for count, width, height in ((100_000, 490, 272), (100_000, 400, 400))
        for with_backward in (False, True)
    ]


def _case(count: int, width: int, height: int, with_backward: bool) -> Case:
    scene = synthetic_splats(count, width, height)
    lists = scene.lists()
    inputs = [scene.centers, scene.conics, scene.opacities, scene.features, torch.ones(3)]
    if with_backward:
        inputs = [t.clone().requires_grad_() for t in inputs]

    def work(op: Callable[..., Rasterized]) -> Work:
        def forward() -> Tensor:
            return op(*inputs, lists, width, height).image

        if not with_backward:
            return forward
        return lambda: torch.autograd.grad(forward().sum(), inputs)

    num_evaluations = scene.num_evaluations(lists)
    direction = "forward + backward" if with_backward else "forward"
    return Case(
        op="rasterize",
        what=f"{count} Gaussians, {width} x {height} x 3, {direction}",
        kernel=work(rasterize),
        reference=work(rasterize_reference),
        num_items=num_evaluations,
        unit="splat-pixels",
        num_flops=1.0 * num_evaluations * (FORWARD_FLOPS + with_backward * BACKWARD_FLOPS),
    )

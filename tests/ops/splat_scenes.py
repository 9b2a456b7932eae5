# SPDX-License-Identifier: Apache-2.0
"""Gaussians on the image plane for tests, made without any projection."""

import math
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from diorama.ops.tile_lists import TileLists, tile_lists


@dataclass(frozen=True)
class Splats:
    """N Gaussians, and the image that they are for."""

    centers: Tensor
    conics: Tensor
    opacities: Tensor
    half_extents: Tensor
    depths: Tensor
    width: int
    height: int

    @property
    def projected(self) -> tuple[Tensor, ...]:
        return self.centers, self.conics, self.opacities, self.half_extents, self.depths

    @property
    def drawn(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.centers, self.conics, self.opacities

    def to(self, dtype: torch.dtype) -> "Splats":
        return Splats(*(t.to(dtype) for t in self.projected), self.width, self.height)

    def __getitem__(self, index: Tensor) -> "Splats":
        return Splats(*(t[index] for t in self.projected), self.width, self.height)

    def lists(self) -> TileLists:
        return tile_lists(*self.projected, self.width, self.height)


def concatenate(*scenes: Splats) -> Splats:
    names = [f.name for f in fields(Splats)][:5]
    tensors = (torch.cat([getattr(s, name) for s in scenes]) for name in names)
    return Splats(*tensors, scenes[0].width, scenes[0].height)


def splats_of(
    centers: Tensor,
    sizes: Tensor,
    angles: Tensor,
    opacities: Tensor,
    depths: Tensor,
    width: int,
    height: int,
) -> Splats:
    """Gaussians of these standard deviations (N 2) along axes turned by `angles`."""
    cos, sin = angles.cos(), angles.sin()
    first, second = sizes.unbind(1)
    xx = (cos * first) ** 2 + (sin * second) ** 2
    yy = (sin * first) ** 2 + (cos * second) ** 2
    xy = cos * sin * (first**2 - second**2)
    determinant = (first * second) ** 2
    conics = torch.stack([yy, -xy, xx], dim=1) / determinant[:, None]
    reach = (2 * (255 * opacities).log()).clamp(min=0).sqrt()
    half_extents = reach[:, None] * torch.stack([xx, yy], dim=1).sqrt()
    return Splats(centers, conics, opacities, half_extents, depths, width, height)


def random_splats(
    count: int,
    width: int,
    height: int,
    size: float = 4.0,
    stretch: float = 4.0,
    seed: int = 0,
    opaque: float = 0.95,
) -> Splats:
    """Some of them off-screen, or too faint to be seen."""
    generator = torch.Generator().manual_seed(seed)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=generator, dtype=torch.float64)

    centers = (uniform(count, 2) * 1.4 - 0.2) * torch.tensor([width, height])
    sizes = 0.6 + size * uniform(count, 2)
    sizes[:, 1] *= stretch ** uniform(count)
    scene = splats_of(
        centers,
        sizes,
        2 * math.pi * uniform(count),
        opaque * uniform(count),
        1 + uniform(count),
        width,
        height,
    )
    return scene.to(torch.float32)

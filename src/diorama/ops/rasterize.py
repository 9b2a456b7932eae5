# SPDX-License-Identifier: Apache-2.0
"""Gaussians on the image plane, blended front to back.

    power_i = (a dx^2 + c dy^2) / 2 + b dx dy,   d = pixel centre - center_i
    alpha_i = min(max_alpha, opacity_i exp(-power_i)),   T_i = prod_{j<i} (1 - alpha_j)
    image = sum_i feature_i alpha_i T_i + T background,   alpha = 1 - T

Each pixel takes the Gaussians of its tile's list in order, skips those of alpha < 1 / 255, and is
full, that is ends before Gaussian i, if T_i (1 - alpha_i) < 1e-4. A Gaussian whose conic is not
positive definite is not drawn.
"""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from diorama import native
from diorama.ops.once import once_differentiable
from diorama.ops.rasterized import Rasterized, SplatSums
from diorama.ops.tile_lists import TILE_SIZE, TileLists

MIN_ALPHA = 1 / 255
MIN_TRANSMITTANCE = 1e-4
Gradients = Literal["exact", "faithful"]
LARGE_TABLE = 2**22
"""Pairs of a pixel and a Gaussian from which on the reference computes its tables twice, once for
each direction, instead of keeping those of all tiles."""


def rasterize_reference(
    centers: Float[Tensor, "N 2"],
    conics: Float[Tensor, "N 3"],
    opacities: Float[Tensor, " N"],
    features: Float[Tensor, "N C"],
    background: Float[Tensor, " C"],
    tiles: TileLists,
    width: int,
    height: int,
    max_alpha: float = 0.99,
    gradients: Gradients = "exact",
    sums: SplatSums | None = None,
) -> Rasterized:
    """The module's formulas in torch, tile by tile through tables of pixels x Gaussians."""
    if sums is not None:
        for tensor in sums.tensors:
            if tensor is not None:
                tensor.zero_()
    splats = tiles.splats.long()
    lengths = tiles.starts.diff().tolist()
    pairs = torch.cat([centers, conics, opacities[:, None], features], dim=1)[splats]
    is_large = len(splats) * TILE_SIZE**2 > LARGE_TABLE and pairs.requires_grad
    columns = -(-width // TILE_SIZE)
    rows: list[list[tuple[Tensor, ...]]] = [[] for _ in range(-(-height // TILE_SIZE))]
    for tile, (mine, index) in enumerate(
        zip(pairs.split(lengths), splats.split(lengths), strict=True)
    ):
        row, column = divmod(tile, columns)
        area = _Area(column * TILE_SIZE, row * TILE_SIZE, width, height)
        args = mine, index, background, area, max_alpha, gradients, sums
        drawn = checkpoint(_draw, *args, use_reentrant=False) if is_large else _draw(*args)
        assert drawn is not None
        rows[row].append(drawn)
    parts = [[torch.cat(part, dim=1) for part in zip(*row, strict=True)] for row in rows]
    return Rasterized(*(torch.cat(part) for part in zip(*parts, strict=True)))


@dataclass(frozen=True)
class _Area:
    """A tile's pixels, those that lie in the image."""

    left: int
    top: int
    image_width: int
    image_height: int

    @property
    def slices(self) -> tuple[slice, slice]:
        bottom = min(self.top + TILE_SIZE, self.image_height)
        return slice(self.top, bottom), slice(
            self.left, min(self.left + TILE_SIZE, self.image_width)
        )

    def centers(self, like: Tensor) -> Float[Tensor, "h w 2"]:
        y, x = (
            torch.arange(s.start, s.stop, device=like.device, dtype=like.dtype) + 0.5
            for s in self.slices
        )
        return torch.stack(torch.meshgrid(x, y, indexing="xy"), dim=-1)


def _draw(
    pairs: Float[Tensor, "S K"],
    index: Tensor,
    background: Float[Tensor, " C"],
    area: _Area,
    max_alpha: float,
    gradients: Gradients,
    sums: SplatSums | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """One tile: image, alpha, count, median."""
    center, conic, opacity, feature = pairs.split([2, 3, 1, pairs.shape[1] - 6], dim=1)
    pixels = area.centers(pairs)
    offset = pixels[:, :, None] - center  # h w S 2
    (dx, dy), (a, b, c) = offset.unbind(-1), conic.unbind(-1)
    # A power below zero is a rounding error: the conic is positive definite.
    power = (0.5 * (a * dx * dx + c * dy * dy) + b * dx * dy).clamp(min=0)
    free = opacity[:, 0] * torch.exp(-power)
    alpha = free.clamp(max=max_alpha)
    if gradients == "faithful":
        alpha = free + (alpha - free).detach()
    is_drawn = (free >= MIN_ALPHA) & (a > 0) & (a * c - b * b > 0)
    alpha = alpha.where(is_drawn, 0)
    is_drawn = is_drawn & ((1 - alpha).cumprod(-1) >= MIN_TRANSMITTANCE)
    alpha = alpha.where(is_drawn, 0)
    behind = (1 - alpha).cumprod(-1)
    front = functional.pad(behind, (1, 0), value=1.0)
    left = front[..., -1]
    image = (alpha * front[..., :-1]) @ feature + left[..., None] * background
    if sums is not None:
        _watch(sums, offset, is_drawn, index, area)
    is_median = (behind <= 0.5) & is_drawn
    median = torch.full_like(left, -1, dtype=torch.int32)
    if len(index):
        first = index[is_median.int().argmax(-1)].int()
        median = first.where(is_median.any(-1), median)
    return image, 1 - left, is_drawn.sum(-1, dtype=torch.int32), median


def _watch(sums: SplatSums, offset: Tensor, is_drawn: Tensor, index: Tensor, area: _Area) -> None:
    """Have the backward pass add a tile's share to the sums."""

    def add(gradient: Tensor) -> None:
        size = gradient.detach().abs()
        sums.gradient_norms.index_add_(0, index, gradient.detach().norm(dim=-1).sum((0, 1)))
        sums.abs_gradients.index_add_(0, index, size.sum((0, 1)))
        sums.pixels.index_add_(0, index, is_drawn.sum((0, 1), dtype=torch.int32))
        if sums.pixel_gradients is not None:
            sums.pixel_gradients[area.slices] = size.sum(2)

    if offset.requires_grad:
        offset.register_hook(add)


def rasterize(
    centers: Float[Tensor, "N 2"],
    conics: Float[Tensor, "N 3"],
    opacities: Float[Tensor, " N"],
    features: Float[Tensor, "N C"],
    background: Float[Tensor, " C"],
    tiles: TileLists,
    width: int,
    height: int,
    max_alpha: float = 0.99,
    gradients: Gradients = "exact",
    sums: SplatSums | None = None,
) -> Rasterized:
    """Draw Gaussians; once differentiable in centers, conics, opacities, features, background.

    `tiles` must come from `tile_lists` of the same Gaussians and image size. Where alpha was cut at
    `max_alpha` it does not depend on the Gaussian; "faithful" gradients pass all the same, as in
    the taichi system. `sums` is filled by the backward pass.
    """
    for name, tensor, shape in (
        ("centers", centers, (len(centers), 2)),
        ("conics", conics, (len(centers), 3)),
        ("opacities", opacities, (len(centers),)),
        ("features", features, (len(centers), features.shape[-1])),
        ("background", background, (features.shape[1],)),
    ):
        if tensor.shape != shape:
            raise ValueError(f"{name} must have the shape {shape}, got {tuple(tensor.shape)}")
    if gradients not in ("exact", "faithful"):
        raise ValueError(f"gradients must be exact or faithful, got {gradients}")
    if not 0 < max_alpha < 1:
        raise ValueError(f"max_alpha must lie between 0 and 1, got {max_alpha}")
    if sums is not None and len(sums.pixels) != len(centers):
        raise ValueError(f"sums must be for {len(centers)} Gaussians, got {len(sums.pixels)}")
    inputs = centers, conics, opacities, features, background
    if not native.serves(*inputs):
        return rasterize_reference(*inputs, tiles, width, height, max_alpha, gradients, sums)
    settings = _Settings(tiles, width, height, float(max_alpha), gradients == "faithful", sums)
    return Rasterized(*_Rasterize.apply(*inputs, settings))


@dataclass(frozen=True)
class _Settings:
    """The arguments of `rasterize` that have no gradient."""

    tiles: TileLists
    width: int
    height: int
    max_alpha: float
    is_faithful: bool
    sums: SplatSums | None

    @property
    def lists(self) -> list[Any]:
        t = self.tiles
        indices = t.starts, t.splats, t.slots, t.splat_starts
        return [*indices, self.width, self.height, self.max_alpha]


class _Rasterize(torch.autograd.Function):
    """The native kernel; it keeps each pixel's transmittance and stop for the way back."""

    @staticmethod
    def forward(
        ctx: Any,
        centers: Tensor,
        conics: Tensor,
        opacities: Tensor,
        features: Tensor,
        background: Tensor,
        settings: _Settings,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        splats: list[Any] = [
            t.detach().contiguous() for t in (centers, conics, opacities, features, background)
        ]
        size = settings.height, settings.width
        image = features.new_empty(*size, features.shape[1])
        transmittance = image.new_empty(size)
        counts, medians, stops = (torch.empty(size, dtype=torch.int32) for _ in range(3))
        prepared = image.new_empty(len(centers), native.module.RASTER_PREPARED_NUMBERS)
        results = [image, transmittance, counts, medians, stops, prepared]
        arguments: list[Any] = [*splats, *settings.lists, *results, native.num_threads()]
        native.module.rasterize_forward(*arguments)
        ctx.save_for_backward(*splats, transmittance, stops, prepared)
        ctx.settings = settings
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(counts, medians)
        return image, 1 - transmittance, counts, medians

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, grad_image: Tensor | None, grad_alpha: Tensor | None, *_: None
    ) -> tuple[Tensor | None, ...]:
        *splats, transmittance, stops, prepared = ctx.saved_tensors
        settings = ctx.settings
        wanted = [
            torch.empty_like(t) if is_needed else None
            for t, is_needed in zip(splats, ctx.needs_input_grad[:5], strict=True)
        ]
        if grad_image is None:  # only alpha was looked at
            grad_image = torch.zeros(*transmittance.shape, splats[3].shape[1]).to(transmittance)
        sums = (None,) * 4 if settings.sums is None else settings.sums.tensors
        arguments: list[Any] = [
            *splats,
            *settings.lists,
            settings.is_faithful,
            transmittance,
            stops,
            prepared,
            grad_image.contiguous(),
            None if grad_alpha is None else grad_alpha.contiguous(),
            *wanted,
            *sums,
            native.num_threads(),
        ]
        native.module.rasterize_backward(*arguments)
        return *wanted, None

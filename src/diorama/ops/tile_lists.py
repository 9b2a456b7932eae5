# SPDX-License-Identifier: Apache-2.0
"""Which Gaussians each tile of 16 x 16 pixels must draw, nearest first.

    power(d) = (a dx^2 + c dy^2) / 2 + b dx dy,   d = pixel centre - center
    alpha = opacity exp(-power) >= 1 / 255   where   power <= ln(255 opacity)

A tile lists a Gaussian if the box of its half extents meets the tile, and some point between the
tile's pixel centres has such a power (a hair more, so that rounding never costs a pixel). A
Gaussian of zero half extent, of opacity below 1 / 255 or of a conic that is not positive definite
is in no list. Tiles are numbered row by row; those at the right and lower edge may be cut.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int32, Int64
from torch import Tensor
from torch.nn import functional

from diorama import native

TILE_SIZE = 16
POWER_MARGIN = 1e-3
BOX_MARGIN = 1e-4, 0.01
"""Relative, and in pixels."""
MAX_PAIRS = 2**31 - 1


@dataclass(frozen=True)
class TileLists:
    """The M pairs of one of T tiles and one of N Gaussians, in two orders.

    Tile t draws `splats[starts[t]:starts[t + 1]]`, by ascending depth, equals by index. Counted by
    Gaussian first and then by tile, pair m is number `slots[m]`; Gaussian i owns the slots
    `splat_starts[i]:splat_starts[i + 1]`. So what all tiles say about a Gaussian can be put side by
    side and summed in a fixed order.
    """

    starts: Int64[Tensor, " T_plus_1"]
    splats: Int32[Tensor, " M"]
    slots: Int32[Tensor, " M"]
    splat_starts: Int64[Tensor, " N_plus_1"]


@torch.no_grad()
def tile_lists_reference(
    centers: Float[Tensor, "N 2"],
    conics: Float[Tensor, "N 3"],
    opacities: Float[Tensor, " N"],
    half_extents: Float[Tensor, "N 2"],
    depths: Float[Tensor, " N"],
    width: int,
    height: int,
) -> TileLists:
    """The module's definition in torch: all tiles of all boxes are tried."""
    center, (a, b, c), half = centers.double(), conics.double().unbind(1), half_extents.double()
    reach = 255 * opacities.double()
    is_seen = (half_extents > 0).all(1) & (reach >= 1) & (a > 0) & (a * c - b * b > 0)
    half = half * (1 + BOX_MARGIN[0]) + BOX_MARGIN[1]
    size = center.new_tensor([width, height])
    low, high = (center - half).clamp(min=0.5), torch.minimum(center + half, size - 0.5)
    is_seen &= (low <= high).all(1)
    low, high = low.where(is_seen[:, None], 1), high.where(is_seen[:, None], 1)
    first = ((low - (TILE_SIZE - 0.5)) / TILE_SIZE).ceil().long()
    num_tiles = (((high - 0.5) / TILE_SIZE).floor().long() - first + 1) * is_seen[:, None]

    num_tried = num_tiles.prod(1)
    splat = torch.arange(len(centers), device=centers.device).repeat_interleave(num_tried)
    place = torch.arange(len(splat), device=splat.device) - (num_tried.cumsum(0) - num_tried)[splat]
    across = num_tiles[splat, 0]
    tile = first[splat] + torch.stack([place % across, place // across], dim=1)
    top_left = tile * TILE_SIZE + 0.5 - center[splat]
    bottom_right = torch.minimum((tile + 1) * TILE_SIZE, size) - 0.5 - center[splat]
    power = _least_power(top_left, bottom_right, a[splat], b[splat], c[splat])
    is_kept = power <= reach.log()[splat] + POWER_MARGIN

    columns, rows = math.ceil(width / TILE_SIZE), math.ceil(height / TILE_SIZE)
    splat, tile = splat[is_kept], (tile[:, 1] * columns + tile[:, 0])[is_kept]
    order = depths[splat].sort(stable=True).indices
    order = order[tile[order].sort(stable=True).indices]
    counts = torch.bincount(tile, minlength=columns * rows)
    splat_counts = torch.bincount(splat, minlength=len(centers))
    return TileLists(
        functional.pad(counts.cumsum(0), (1, 0)),
        splat[order].int(),
        order.int(),
        functional.pad(splat_counts.cumsum(0), (1, 0)),
    )


def _least_power(
    low: Float[Tensor, "P 2"],
    high: Float[Tensor, "P 2"],
    a: Float[Tensor, " P"],
    b: Float[Tensor, " P"],
    c: Float[Tensor, " P"],
) -> Float[Tensor, " P"]:
    """The least power in the rectangle from `low` to `high`: 0 if it holds the centre, otherwise
    the least on one of its four edges, where power is a parabola."""

    def power(dx: Tensor, dy: Tensor) -> Tensor:
        return 0.5 * (a * dx * dx + c * dy * dy) + b * dx * dy

    (left, top), (right, bottom) = low.unbind(1), high.unbind(1)
    on_edges = [power(x, (-b * x / c).clamp(top, bottom)) for x in (left, right)]
    on_edges += [power((-b * y / a).clamp(left, right), y) for y in (top, bottom)]
    holds_center = ((low <= 0) & (high >= 0)).all(1)
    return torch.stack(on_edges).amin(0).masked_fill(holds_center, 0)


@torch.no_grad()
def tile_lists(
    centers: Float[Tensor, "N 2"],
    conics: Float[Tensor, "N 3"],
    opacities: Float[Tensor, " N"],
    half_extents: Float[Tensor, "N 2"],
    depths: Float[Tensor, " N"],
    width: int,
    height: int,
) -> TileLists:
    """The lists of all tiles of an image; no gradients.

    >>> one = torch.ones(1)
    >>> tile_lists(torch.tensor([[15.0, 3.0]]), torch.tensor([[1.0, 0.0, 1.0]]), one,
    ...            torch.full((1, 2), 3.3), one, width=40, height=16).starts
    tensor([0, 1, 2, 2])
    """
    for name, tensor, shape in (
        ("conics", conics, (len(centers), 3)),
        ("opacities", opacities, (len(centers),)),
        ("half_extents", half_extents, (len(centers), 2)),
        ("depths", depths, (len(centers),)),
    ):
        if tensor.shape != shape:
            raise ValueError(f"{name} must have the shape {shape}, got {tuple(tensor.shape)}")
    if width < 1 or height < 1:
        raise ValueError(f"width and height must be positive, got {width} and {height}")
    splats = centers, conics, opacities, half_extents, depths
    if not native.serves(*splats):
        return tile_lists_reference(*splats, width, height)
    inputs: list[Any] = [*(t.contiguous() for t in splats), width, height]
    threads = native.num_threads()
    splat_starts = torch.empty(len(centers) + 1, dtype=torch.int64)
    masks = torch.empty(len(centers), 2, dtype=torch.int64)
    # One list each: type checkers cannot match an unpacked part of the arguments.
    arguments = [*inputs, splat_starts, masks, threads]
    native.module.tile_lists_count(*arguments)
    num_pairs = int(splat_starts[-1])
    if num_pairs > MAX_PAIRS:
        raise ValueError(f"half_extents are too large: {num_pairs} pairs of tile and Gaussian")
    num_tiles = math.ceil(width / TILE_SIZE) * math.ceil(height / TILE_SIZE)
    starts = torch.empty(num_tiles + 1, dtype=torch.int64)
    indices, slots = torch.empty(2, num_pairs, dtype=torch.int32).unbind()
    arguments = [*inputs, splat_starts, masks, starts, indices, slots, threads]
    native.module.tile_lists_fill(*arguments)
    return TileLists(starts, indices, slots, splat_starts)

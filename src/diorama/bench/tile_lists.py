# SPDX-License-Identifier: Apache-2.0
"""Tile lists of the Gaussians that the benchmark of the rasteriser draws."""

from diorama.bench.case import Case
from diorama.bench.rasterize import synthetic_splats
from diorama.ops.tile_lists import tile_lists, tile_lists_reference


def cases() -> list[Case]:
    """A training image, and a large one with four times as many Gaussians."""
    return [_case(100_000, 490, 272), _case(400_000, 979, 546)]


def _case(count: int, width: int, height: int) -> Case:
    scene = synthetic_splats(count, width, height)
    inputs = *scene.projected, width, height
    num_pairs = len(scene.lists().splats)
    return Case(
        op="tile_lists",
        what=f"{count} Gaussians, {width} x {height}",
        kernel=lambda: tile_lists(*inputs),
        reference=lambda: tile_lists_reference(*inputs),
        num_items=num_pairs,
        unit="pairs",
        # Ten floats of each Gaussian in; splats, slots and both offsets out.
        num_bytes=count * (40.0 + 8) + num_pairs * 8,
    )

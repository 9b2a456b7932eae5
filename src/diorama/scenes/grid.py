# SPDX-License-Identifier: Apache-2.0
"""A coarse grid that says, for every cell, how far the scene is and which solids could be nearest.

With c a cell's centre and h its half diagonal, every point p of the cell has |p - c| <= h.
Distances are 1-Lipschitz, so sdf(p) >= sdf(c) - h, and a solid whose distance at c exceeds the
least by more than 2 h is never the nearest one in the cell. Culling by this rule changes no result,
only the time.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from diorama.scenes.solids import SolidUnion, columnwise

_CHUNK = 1 << 15


@dataclass(frozen=True)
class CandidateGrid:
    """Distance at cell centres and, bit by bit, the solids that matter in each cell."""

    scene: SolidUnion
    low: tuple[float, float, float]
    cell: float
    shape: tuple[int, int, int]
    center_distance: Float[Tensor, " C"]
    candidates: Int[Tensor, " C"]

    @property
    def half_diagonal(self) -> float:
        """Largest distance of a point of a cell from its centre."""
        return self.cell * math.sqrt(3) / 2

    @property
    def high(self) -> tuple[float, float, float]:
        """Upper corner."""
        x, y, z = (a + self.cell * n for a, n in zip(self.low, self.shape, strict=True))
        return x, y, z

    def cell_of(self, points: Float[Tensor, "N 3"]) -> Int[Tensor, " N"]:
        """Flat index of the cell that holds each point (the nearest cell when outside)."""
        axes = []
        for column, low, count in zip(points.unbind(-1), self.low, self.shape, strict=True):
            axes.append(((column - low) * (1 / self.cell)).clamp(0, count - 0.5).int())
        return ((axes[0] * self.shape[1] + axes[1]) * self.shape[2] + axes[2]).long()

    def lower_bound(self, cells: Int[Tensor, " N"]) -> Float[Tensor, " N"]:
        """A distance that is certainly free around any point of the cells."""
        return self.center_distance[cells] - self.half_diagonal

    def sdf(self, points: Float[Tensor, "N 3"], cells: Int[Tensor, " N"]) -> Float[Tensor, " N"]:
        """What the scene's method of this name returns, from the candidates alone."""
        distance = torch.full_like(points[:, 0], math.inf)
        for _, chosen, candidate in self._candidate_distances(points, cells):
            nearest = torch.minimum(distance.index_select(0, chosen), candidate)
            distance.index_copy_(0, chosen, nearest)
        return distance

    def sdf_and_owner(
        self, points: Float[Tensor, "N 3"], cells: Int[Tensor, " N"]
    ) -> tuple[Float[Tensor, " N"], Int[Tensor, " N"]]:
        """What the scene's method of this name returns, from the candidates alone."""
        distance = torch.full_like(points[:, 0], math.inf)
        owner = torch.zeros(len(points), dtype=torch.int64)
        for i, chosen, candidate in self._candidate_distances(points, cells):
            before = distance[chosen]
            is_nearer = candidate < before
            distance[chosen] = torch.where(is_nearer, candidate, before)
            owner[chosen] = torch.where(is_nearer, i, owner[chosen])
        return distance, owner

    def _candidate_distances(
        self, points: Float[Tensor, "N 3"], cells: Int[Tensor, " N"]
    ) -> Iterator[tuple[int, Int[Tensor, " M"], Float[Tensor, " M"]]]:
        bits = self.candidates[cells]
        present = int(np.bitwise_or.reduce(bits.numpy())) if len(bits) else 0
        for i, solid in enumerate(self.scene.solids):
            if present >> i & 1:
                chosen = (bits & (1 << i)).nonzero().squeeze(-1)
                yield i, chosen, solid.sdf(take(points, chosen))


def take(points: Float[Tensor, "N 3"], chosen: Int[Tensor, " M"]) -> Float[Tensor, "M 3"]:
    """points[chosen] with contiguous columns."""
    return points.T.index_select(1, chosen).T


def build_grid(scene: SolidUnion, resolution: int = 72, margin: float = 0.04) -> CandidateGrid:
    """Grid over the scene's box with ``resolution`` cells along the longest side."""
    if len(scene.solids) > 31:
        raise ValueError(f"a grid holds at most 31 solids, got {len(scene.solids)}")
    x, y, z = (a - margin for a in scene.aabb_min)
    low = (x, y, z)
    extent = [b + margin - a for a, b in zip(low, scene.aabb_max, strict=True)]
    cell = max(extent) / resolution
    nx, ny, nz = (max(1, math.ceil(e / cell)) for e in extent)
    shape = (nx, ny, nz)
    axes = [a + cell * (torch.arange(n) + 0.5) for a, n in zip(low, shape, strict=True)]
    centers = columnwise(torch.stack(torch.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3))
    reach = cell * math.sqrt(3) * 1.001
    distances, bits = [], []
    for part in centers.split(_CHUNK):
        each = torch.stack([solid.sdf(part) for solid in scene.solids])
        nearest = each.amin(0)
        weights = (1 << torch.arange(len(scene.solids)))[:, None]
        bits.append(((each <= nearest + reach) * weights).sum(0).int())
        distances.append(nearest)
    return CandidateGrid(scene, low, cell, shape, torch.cat(distances), torch.cat(bits))

# SPDX-License-Identifier: Apache-2.0
"""How scene positions map to the unit cube in which grids live, bounded or not."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from diorama.data.scene import Scene, Vector, vector

OUTERMOST = 1.999  # of a contracted half side of 2; the outer face itself is infinity


@dataclass(frozen=True)
class SceneFrame:
    """A box of the scene, and its map to the unit cube.

    Not contracted: the box fills the cube. Contracted: the contraction of mip-NeRF 360 in the
    maximum norm; the box fills the middle half of the cube and the rest of space the shell:

        y = x for |x| <= 1, else (2 - 1/|x|) x/|x|;   unit = (y + 2) / 4,   x in half sides
    """

    low: Vector
    high: Vector
    is_contracted: bool

    @staticmethod
    def cube_of(scene: Scene, is_contracted: bool) -> "SceneFrame":
        """The cube around the scene's box: cells with unequal sides cost quality."""
        box = SceneFrame(scene.bounds.aabb_min, scene.bounds.aabb_max, is_contracted)
        half = box.half_side
        x, y, z = box.center
        return SceneFrame(
            (x - half, y - half, z - half), (x + half, y + half, z + half), is_contracted
        )

    @property
    def center(self) -> Vector:
        """The middle of the box."""
        x, y, z = (0.5 * (low + high) for low, high in zip(self.low, self.high, strict=True))
        return x, y, z

    @property
    def half_side(self) -> float:
        """Half the longest side of the box."""
        return 0.5 * max(high - low for low, high in zip(self.low, self.high, strict=True))

    def grown(self, factor: float) -> "SceneFrame":
        """The box `factor` times as large about the same centre."""
        low, high = (
            tuple(c + factor * (x - c) for c, x in zip(self.center, corner, strict=True))
            for corner in (self.low, self.high)
        )
        return SceneFrame(vector(low), vector(high), self.is_contracted)

    def span(
        self, origins: Float[Tensor, "R 3"], directions: Float[Tensor, "R 3"]
    ) -> tuple[Float[Tensor, " R"], Float[Tensor, " R"]]:
        """Distances at which rays enter and leave the box; near > far: never."""
        low, high = origins.new_tensor(self.low), origins.new_tensor(self.high)
        inverse = 1.0 / torch.where(directions.abs() < 1e-12, 1e-12, directions)
        a, b = (low - origins) * inverse, (high - origins) * inverse
        return torch.minimum(a, b).amax(dim=1), torch.maximum(a, b).amin(dim=1)

    def to_unit(self, positions: Float[Tensor, "N 3"]) -> Float[Tensor, "N 3"]:
        """Positions in the unit cube; without contraction those outside the box leave it."""
        low, high = positions.new_tensor(self.low), positions.new_tensor(self.high)
        if not self.is_contracted:
            return (positions - low) / (high - low)
        x = (positions - 0.5 * (low + high)) / (0.5 * (high - low))
        norm = x.abs().amax(dim=1, keepdim=True).clamp(min=1.0)
        return ((2.0 - 1.0 / norm) * (x / norm) + 2.0) / 4.0

    def from_unit(self, unit: Float[Tensor, "N 3"]) -> Float[Tensor, "N 3"]:
        """The inverse of `to_unit`; the shell's outer face, infinity, is kept finite."""
        low, high = unit.new_tensor(self.low), unit.new_tensor(self.high)
        if not self.is_contracted:
            return low + unit * (high - low)
        y = 4.0 * unit - 2.0
        norm = y.abs().amax(dim=1, keepdim=True).clamp(1.0, OUTERMOST)
        x = y / norm / (2.0 - norm)
        return 0.5 * (low + high) + x * 0.5 * (high - low)

    def distance_to_center(self, positions: Float[Tensor, "N 3"]) -> Float[Tensor, " N"]:
        """Distance to the box's centre, but at least the box's half side: a camera's at the rim."""
        low, high = positions.new_tensor(self.low), positions.new_tensor(self.high)
        return (positions - 0.5 * (low + high)).norm(dim=1).clamp(min=self.half_side)

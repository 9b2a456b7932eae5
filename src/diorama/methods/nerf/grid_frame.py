# SPDX-License-Identifier: Apache-2.0
"""How scene positions map to the occupancy grid's unit cube."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from diorama.data.scene import Scene

NDC_MARGIN = 1.2  # rays of outer cameras leave the first camera's frustum a little


@dataclass(frozen=True)
class GridFrame:
    """How scene positions map to the grid's unit cube.

    Bounded scenes: the scene's box. Unbounded ones: the contraction of mip-NeRF 360 in the
    maximum norm, which keeps the box of the scene's sphere and folds the rest into a shell.
    """

    low: tuple[float, float, float]
    high: tuple[float, float, float]
    is_contracted: bool

    @staticmethod
    def of(scene: Scene, is_ndc: bool) -> "GridFrame":
        """The frame that suits the scene's kind."""
        if is_ndc:
            return GridFrame((-NDC_MARGIN, -NDC_MARGIN, -1.0), (NDC_MARGIN, NDC_MARGIN, 1.0), False)
        if scene.kind == "object":
            return GridFrame(scene.bounds.aabb_min, scene.bounds.aabb_max, False)
        center, radius = scene.bounds.center, scene.bounds.radius
        low, high = (tuple(c + side * radius for c in center) for side in (-1.0, 1.0))
        return GridFrame(low, high, True)  # type: ignore[arg-type]

    def to_unit(self, positions: Float[Tensor, "N 3"]) -> Float[Tensor, "N 3"]:
        """Positions in the grid's unit cube."""
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
        norm = y.abs().amax(dim=1, keepdim=True).clamp(1.0, 1.999)
        x = y / norm / (2.0 - norm)
        return 0.5 * (low + high) + x * 0.5 * (high - low)

    def distance_to_center(self, positions: Float[Tensor, "N 3"]) -> Float[Tensor, " N"]:
        """Distance to the box's centre, but at least the box's half side: a camera's at the rim."""
        low, high = positions.new_tensor(self.low), positions.new_tensor(self.high)
        reach = (0.5 * (high - low)).amax()
        return (positions - 0.5 * (low + high)).norm(dim=1).clamp(min=reach)

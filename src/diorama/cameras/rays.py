# SPDX-License-Identifier: Apache-2.0
"""A batch of rays, as every ray method receives them."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

RayIndex = int | slice | Int[Tensor, " K"] | Bool[Tensor, " R"]


@dataclass(frozen=True, eq=False)
class Rays:
    """R rays with unit directions: the point at distance t is origins + t * directions."""

    origins: Float[Tensor, "R 3"]
    """Camera centres in the world."""

    directions: Float[Tensor, "R 3"]
    """Unit directions in the world."""

    z_scale: Float[Tensor, " R"]
    """Depth per unit distance: depth = distance * z_scale, with `Cameras.project`'s depth.

    It is the camera-frame z of the direction, so near 0 for a fisheye ray at 90 degrees and
    negative beyond; and 1 for equirectangular cameras, whose depth is the distance.
    """

    radii: Float[Tensor, " R"]
    """Cone radius per unit *distance*: the cone's radius at distance t is radii * t.

    mip-NeRF gives the radius per unit z-depth, rho = 2 / sqrt(12) times the distance between
    neighbouring pixels' directions on the plane z = 1 (the mean over the two image axes). Since
    z-depth = t * z_scale, we store rho * z_scale. Fisheye and equirectangular cameras measure
    that distance on the unit sphere instead, where it is per unit distance already.
    """

    camera_index: Int[Tensor, " R"]
    """Which camera of the `Cameras` that made the ray it belongs to."""

    def __len__(self) -> int:
        return self.origins.shape[0]

    def __getitem__(self, index: RayIndex) -> "Rays":
        """A subset, again as Rays; an integer gives a batch of one."""
        if isinstance(index, int):
            if not -len(self) <= index < len(self):
                raise IndexError(f"ray {index} of {len(self)}")
            index = slice(index, index + 1 if index != -1 else None)
        return Rays(*(getattr(self, field.name)[index] for field in fields(self)))

    def to(self, target: torch.device | torch.dtype | str) -> "Rays":
        """The same rays on another device or with another floating-point type."""
        moved = (getattr(self, field.name) for field in fields(self))
        if isinstance(target, torch.dtype):
            return Rays(*(x.to(target) if x.is_floating_point() else x for x in moved))
        return Rays(*(x.to(target) for x in moved))

    @staticmethod
    def cat(parts: Sequence["Rays"]) -> "Rays":
        """The rays of all parts, one after the other."""
        if not parts:
            raise ValueError("Rays.cat needs at least one part")
        names = [field.name for field in fields(Rays)]
        return Rays(*(torch.cat([getattr(part, name) for part in parts]) for name in names))

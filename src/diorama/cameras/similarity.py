# SPDX-License-Identifier: Apache-2.0
"""The similarity transform that normalises a scene, and its inverse that every exporter applies."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from diorama.cameras.number import Number


@dataclass(frozen=True, eq=False)
class Similarity:
    """x -> scale * rotation @ x + translation. Named like poses: `scene_from_user`."""

    scale: Number
    """Positive."""

    rotation: Float[Tensor, "3 3"]
    """Orthonormal with determinant +1."""

    translation: Float[Tensor, " 3"]

    def __post_init__(self) -> None:
        if not (math.isfinite(self.scale) and self.scale > 0):
            raise ValueError(f"scale must be positive and finite, got {self.scale}")

    @staticmethod
    def identity(dtype: torch.dtype = torch.float64) -> "Similarity":
        """The transform that changes nothing."""
        return Similarity(1.0, torch.eye(3, dtype=dtype), torch.zeros(3, dtype=dtype))

    def apply(self, points: Float[Tensor, "*B 3"]) -> Float[Tensor, "*B 3"]:
        """The points' images, in the points' own data type and on their device."""
        rotation, translation = self.rotation.to(points), self.translation.to(points)
        return self.scale * (points @ rotation.T) + translation

    def apply_to_poses(self, world_from_camera: Float[Tensor, "*B 3 4"]) -> Float[Tensor, "*B 3 4"]:
        """Poses in the new world: centres move as points, axes only rotate and stay orthonormal."""
        axes = self.rotation.to(world_from_camera) @ world_from_camera[..., :3]
        centers = self.apply(world_from_camera[..., 3])
        return torch.cat([axes, centers.unsqueeze(-1)], dim=-1)

    def inverse(self) -> "Similarity":
        """`similarity.inverse().apply(similarity.apply(x)) == x`."""
        back = self.rotation.T
        return Similarity(1 / self.scale, back, -(back @ self.translation) / self.scale)

    def compose(self, other: "Similarity") -> "Similarity":
        """First `other`, then `self`: `a_from_b.compose(b_from_c)` is `a_from_c`."""
        rotation = self.rotation @ other.rotation.to(self.rotation)
        return Similarity(
            self.scale * other.scale, rotation, self.apply(other.translation.to(rotation))
        )

    def matrix(self) -> Float[Tensor, "4 4"]:
        """The homogeneous matrix, scale included."""
        result = torch.eye(4, dtype=self.rotation.dtype, device=self.rotation.device)
        result[:3, :3] = self.scale * self.rotation
        result[:3, 3] = self.translation
        return result

    def to_plain(self) -> dict[str, Any]:
        """Numbers and lists only, for JSON."""
        return {
            "scale": self.scale,
            "rotation": self.rotation.tolist(),
            "translation": self.translation.tolist(),
        }

    @staticmethod
    def from_plain(plain: Mapping[str, Any], dtype: torch.dtype = torch.float64) -> "Similarity":
        """The inverse of `to_plain`; raises ValueError for anything else."""
        try:
            rotation = torch.tensor(plain["rotation"], dtype=dtype)
            translation = torch.tensor(plain["translation"], dtype=dtype)
            scale = float(plain["scale"])
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise ValueError(f"not a similarity (scale, rotation, translation): {error}") from error
        if rotation.shape != (3, 3) or translation.shape != (3,):
            raise ValueError("a similarity has a 3 x 3 rotation and a translation of 3 numbers")
        if not (bool(rotation.isfinite().all()) and bool(translation.isfinite().all())):
            raise ValueError("a similarity must be finite")
        return Similarity(scale, rotation, translation)

# SPDX-License-Identifier: Apache-2.0
"""What a COLMAP sparse model holds, whichever of its two encodings it came in."""

from dataclasses import dataclass, field

import numpy as np
import torch

from diorama.cameras import matrix_from_quaternion
from diorama.data.draft import Lens
from diorama.data.pose_check import MAX_COORDINATE
from diorama.errors import UserError


@dataclass(frozen=True)
class ColmapImage:
    """A registered image: camera_from_world as a quaternion (wxyz) and a translation."""

    id: int
    name: str
    quaternion: tuple[float, float, float, float]
    translation: tuple[float, float, float]
    camera_id: int
    xy: np.ndarray = field(default_factory=lambda: np.zeros((0, 2)))
    """M x 2 keypoints in pixels."""
    point_ids: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """M ids of the keypoints' 3-D points, -1 for none."""


@dataclass(frozen=True)
class ColmapPoints:
    """The sparse points."""

    ids: np.ndarray
    xyz: np.ndarray
    rgb: np.ndarray

    @staticmethod
    def of(
        ids: list[int], xyz: list[tuple[float, ...]], rgb: list[tuple[int, ...]]
    ) -> "ColmapPoints":
        """From one row per point; none is fine."""
        return ColmapPoints(
            np.array(ids, dtype=np.int64),
            np.array(xyz, dtype=np.float64).reshape(-1, 3),
            np.array(rgb, dtype=np.uint8).reshape(-1, 3),
        )

    def where(self, is_kept: np.ndarray) -> "ColmapPoints":
        """Those of a mask."""
        return ColmapPoints(self.ids[is_kept], self.xyz[is_kept], self.rgb[is_kept])

    def places(self, seen_by: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Lists of point ids, one per image, as: which image, which row here, is there a row."""
        images = np.repeat(np.arange(len(seen_by)), [len(seen) for seen in seen_by])
        seen = np.concatenate([*seen_by, np.zeros(0, dtype=np.int64)])
        if not len(self.ids):
            return images, np.zeros_like(images), np.zeros(len(images), dtype=bool)
        by_id = np.argsort(self.ids, kind="stable")
        rows = by_id[np.searchsorted(self.ids, seen, sorter=by_id).clip(max=len(self.ids) - 1)]
        return images, rows, self.ids[rows] == seen


@dataclass(frozen=True)
class ColmapModel:
    """One reconstruction."""

    lenses: dict[int, Lens]
    images: list[ColmapImage]
    points: ColmapPoints


def world_from_camera(image: ColmapImage, where: str) -> np.ndarray:
    """The 3 x 4 pose; COLMAP stores its inverse."""
    quaternion, translation = np.array(image.quaternion), np.array(image.translation)
    is_sane = np.isfinite(translation).all() and np.abs(translation).max() < MAX_COORDINATE
    is_sane = is_sane and np.isfinite(quaternion).all() and np.abs(quaternion).max() < 2
    if not (is_sane and 0.5 < np.linalg.norm(quaternion) < 2):
        raise UserError(
            f"{where}: the pose of image {image.name!r:.60} is not a pose; run the mapper again."
        )
    rotation = matrix_from_quaternion(torch.from_numpy(quaternion)).numpy().T
    return np.concatenate([rotation, (-rotation @ translation)[:, None]], axis=1)

# SPDX-License-Identifier: Apache-2.0
"""What a COLMAP sparse model holds, whichever of its two encodings it came in."""

from dataclasses import dataclass, field

import numpy as np

from diorama.data.draft import Lens


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


@dataclass(frozen=True)
class ColmapModel:
    """One reconstruction."""

    lenses: dict[int, Lens]
    images: list[ColmapImage]
    points: ColmapPoints

# SPDX-License-Identifier: Apache-2.0
"""What bundle adjustment moves: I images, C cameras and P points that M observations tie together.

An observation says at which pixel an image shows a point. A camera is the optics that one or more
images share; an image is a pose. Poses are camera_from_world: x_camera = R x + t.
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int
from scipy.spatial.transform import Rotation

POSE, LENS = 6, 4
"""Unknowns of an image (turn, shift) and of a camera (see `Bundle.lenses`)."""


@dataclass(frozen=True)
class Observations:
    """Which image shows which point, and where; sorted by image."""

    image: Int[np.ndarray, " M"]
    point: Int[np.ndarray, " M"]
    xy: Float[np.ndarray, "M 2"]

    def __len__(self) -> int:
        return len(self.image)

    def where(self, is_kept: np.ndarray | slice) -> "Observations":
        """Those of a mask, of an order or of a slice."""
        return Observations(self.image[is_kept], self.point[is_kept], self.xy[is_kept])


@dataclass(frozen=True)
class Bundle:
    """Poses, optics and points."""

    rotation: Float[np.ndarray, "I 3 3"]
    translation: Float[np.ndarray, "I 3"]
    camera_of: Int[np.ndarray, " I"]
    """Each image's camera."""
    intrinsics: Float[np.ndarray, "C 4"]
    """fx fy cx cy in pixels."""
    distortion: Float[np.ndarray, "C 9"]
    """As in `cameras.distortion`; k1 is the only one that moves."""
    side: Float[np.ndarray, " C"]
    """The longer side of each camera's images, in pixels; the unit of its lens."""
    xyz: Float[np.ndarray, "P 3"]

    @property
    def lenses(self) -> Float[np.ndarray, "C 4"]:
        """log focal length, centre x and y, all in sides, and k1: what `moved` adds to."""
        focal = np.log(self.intrinsics[:, 0] / self.side)
        center = self.intrinsics[:, 2:] / self.side[:, None]
        return np.column_stack((focal, center, self.distortion[:, 0]))

    @property
    def num_unknowns(self) -> int:
        """Unknowns of all images and cameras; points are eliminated."""
        return POSE * len(self.rotation) + LENS * len(self.intrinsics)

    def moved(self, step: Float[np.ndarray, " N"], points: Float[np.ndarray, "P 3"]) -> "Bundle":
        """This bundle after a step in all unknowns; turns are applied from the camera's side."""
        split = POSE * len(self.rotation)
        pose, lens = step[:split].reshape(-1, POSE), step[split:].reshape(-1, LENS)
        intrinsics, distortion = self.intrinsics.copy(), self.distortion.copy()
        intrinsics[:, :2] *= np.exp(lens[:, :1])
        intrinsics[:, 2:] += lens[:, 1:3] * self.side[:, None]
        distortion[:, 0] += lens[:, 3]
        turn = Rotation.from_rotvec(pose[:, :3]).as_matrix()
        return replace(
            self,
            rotation=turn @ self.rotation,
            translation=self.translation + pose[:, 3:],
            intrinsics=intrinsics,
            distortion=distortion,
            xyz=self.xyz + points,
        )

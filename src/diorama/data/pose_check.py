# SPDX-License-Identifier: Apache-2.0
"""Pose matrices from files: accepted, repaired when only noisy, refused when they are no pose."""

import numpy as np

from diorama.errors import UserError

EXACT = 1e-4
"""Axes this close to orthonormal are rounding; they are made exact without a word."""
NOISY = 0.1
"""Axes whose lengths differ by more than this share are not a rotation."""
MAX_COORDINATE = 1e8
FLIP = np.array([1.0, -1.0, -1.0, 1.0])
"""Columns from OpenGL camera axes (right, up, back) to OpenCV's (right, down, forward)."""


def checked_pose(matrix: np.ndarray, where: str) -> tuple[np.ndarray, bool]:
    """The 3 x 4 pose with exactly orthonormal axes, and whether that was a visible repair.

    A uniform scale between 1/4 and 4 is dropped (exporters leave the camera object's scale in);
    skew, mirroring and infinite or gigantic numbers are refused.
    """
    if matrix.shape not in ((3, 4), (4, 4)):
        raise UserError(f"{where}: a pose is a 3x4 or 4x4 matrix, got {matrix.shape}.")
    if not np.isfinite(matrix).all() or np.abs(matrix).max() > MAX_COORDINATE:
        raise UserError(f"{where}: the pose holds infinite or absurdly large numbers.")
    if matrix.shape == (4, 4) and not np.allclose(matrix[3], (0, 0, 0, 1), atol=1e-3):
        raise UserError(f"{where}: the pose's last row must be 0 0 0 1; is it transposed?")
    axes, lengths, turn = np.linalg.svd(matrix[:3, :3])
    is_sane = lengths[2] > 0.25 and lengths[0] < 4 and lengths[0] - lengths[2] < NOISY * lengths[0]
    if not is_sane:
        raise UserError(
            f"{where}: the pose's axes have lengths {lengths.round(3).tolist()} instead of 1;"
            " it is not a rotation and a translation."
        )
    rotation = axes @ turn
    if np.linalg.det(rotation) < 0:
        raise UserError(f"{where}: the pose mirrors the scene; one of its axes has the wrong sign.")
    repaired = bool(np.abs(lengths - 1).max() > EXACT)
    return np.concatenate([rotation, matrix[:3, 3:]], axis=1), repaired


def sane_points(xyz: np.ndarray) -> np.ndarray:
    """Which rows of N x 3 points are finite and not absurdly far away."""
    # Comparisons with NaN are false, so one test says both.
    return np.all(np.abs(xyz) < MAX_COORDINATE, axis=-1)


def repair_note(count: int) -> list[str]:
    """The sentence about poses that had to be repaired, if any."""
    if not count:
        return []
    return [f"{count} poses had axes that were scaled or not quite orthogonal; they were repaired."]


def opencv_from_opengl(pose: np.ndarray) -> np.ndarray:
    """A 3 x 4 or 4 x 4 pose with its camera axes changed; its own inverse."""
    return pose * FLIP

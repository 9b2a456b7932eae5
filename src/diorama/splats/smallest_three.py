# SPDX-License-Identifier: Apache-2.0
"""Unit quaternions without their largest component, which the other three determine."""

import numpy as np


def drop_largest(unit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which component is largest in size (N) and the other three in their order (N 3).

    The quaternions have length 1, in any order of components. They are negated where the largest
    is negative: q and -q are the same rotation. The three then lie within +-sqrt(1/2).
    """
    largest = np.abs(unit).argmax(axis=1)
    unit = unit * np.where(np.take_along_axis(unit, largest[:, None], axis=1) < 0, -1, 1)
    return largest, unit[np.arange(4) != largest[:, None]].reshape(-1, 3)


def restore_largest(largest: np.ndarray, three: np.ndarray) -> np.ndarray:
    """The quaternions (N 4); the missing component is what makes their length 1."""
    quaternions = np.empty((len(three), 4))
    is_largest = np.arange(4) == largest[:, None]
    quaternions[~is_largest] = three.reshape(-1)
    quaternions[is_largest] = np.sqrt(np.maximum(0, 1 - (three**2).sum(axis=1)))
    return quaternions

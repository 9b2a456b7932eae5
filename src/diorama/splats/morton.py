# SPDX-License-Identifier: Apache-2.0
"""Points in Morton order: neighbours in the list are neighbours in space."""

import numpy as np

_BITS = 21


def morton_order(points: np.ndarray) -> np.ndarray:
    """Indices that sort points (N 3) along a Z-shaped curve through 2^63 cells of their box."""
    low, high = points.min(axis=0), points.max(axis=0)
    size = np.where(high > low, high - low, 1)
    cells = ((points - low.astype(np.float64)) / size * ((1 << _BITS) - 1)).astype(np.int64)
    spread = np.zeros_like(cells)
    for bit in range(_BITS):
        spread |= ((cells >> bit) & 1) << (3 * bit)
    return np.argsort(spread[:, 0] | spread[:, 1] << 1 | spread[:, 2] << 2, kind="stable")

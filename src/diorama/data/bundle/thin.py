# SPDX-License-Identifier: Apache-2.0
"""Which observations adjust the cameras, and which are held back to judge the outcome."""

import numpy as np

from diorama.data.bundle.model import Observations

MAX_OBSERVATIONS = 60_000
"""About so many are enough; more cost time in proportion."""
LEAST_PER_IMAGE = 100
HOLD_BACK_EVERY = 10
LONG_TRACK = 4
"""Only points that so many images see can spare an observation."""


def thinned(seen: Observations, num_images: int) -> Observations:
    """All observations of the points with the longest tracks in each image."""
    length = np.bincount(seen.point)[seen.point]
    order = np.lexsort((seen.point, -length, seen.image))
    first = np.searchsorted(seen.image[order], np.arange(num_images))
    rank = np.arange(len(seen)) - first[seen.image[order]]
    per_image = max(LEAST_PER_IMAGE, MAX_OBSERVATIONS // num_images)
    is_chosen = np.zeros(int(seen.point.max()) + 1, dtype=bool)
    is_chosen[seen.point[order[rank < per_image]]] = True
    return seen.where(is_chosen[seen.point])


def held_back(seen: Observations) -> np.ndarray:
    """A mask: each tenth observation of points that can spare one."""
    length = np.bincount(seen.point)[seen.point]
    can_spare = np.flatnonzero(length >= LONG_TRACK)
    is_held = np.zeros(len(seen), dtype=bool)
    is_held[can_spare[::HOLD_BACK_EVERY]] = True
    return is_held

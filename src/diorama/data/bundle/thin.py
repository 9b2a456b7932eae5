# SPDX-License-Identifier: Apache-2.0
"""Which observations are believed, which adjust cameras, and which are held back to judge."""

import numpy as np

from diorama.data.bundle.model import Bundle, Observations
from diorama.data.bundle.projection import project

MAX_OBSERVATIONS = 60_000
"""About so many are enough; more cost time in proportion."""
LEAST_PER_IMAGE = 100
HOLD_BACK_EVERY = 10
LONG_TRACK = 4
"""Only points that so many images see can spare an observation."""
FARTHEST = 50.0
"""Observations that the model itself misses by more pixels are mistakes."""
PART = 1 << 18
"""So many are looked at at once: models of millions need no more memory."""


def believable(bundle: Bundle, seen: Observations) -> Observations:
    """Those in front of their cameras and not far off, of points that two or more are left of."""
    is_near = [np.zeros(0, dtype=bool)]
    for first in range(0, len(seen), PART):
        found = project(bundle, seen.where(slice(first, first + PART)))
        is_near.append(found.is_in_front & (np.abs(found.error).max(1) < FARTHEST))
    seen = seen.where(np.concatenate(is_near))
    is_tied = np.bincount(seen.point, minlength=len(bundle.xyz)) >= 2
    return seen.where(is_tied[seen.point])


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

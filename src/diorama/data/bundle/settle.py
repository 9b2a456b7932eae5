# SPDX-License-Identifier: Apache-2.0
"""Points that follow cameras which have moved; each is a problem of its own."""

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from diorama.data.bundle.adjust import (
    FIRST_DAMPING,
    LEAST_DAMPING,
    MOST_DAMPING,
    robust_losses,
    robust_weights,
)
from diorama.data.bundle.model import Bundle, Observations
from diorama.data.bundle.normal_equations import inverse_of_points
from diorama.data.bundle.projection import project, slopes_by_place, slopes_by_point

STEPS = 12
PART = 1 << 18
"""About so many observations at once: models of millions need no more memory."""


def settled(bundle: Bundle, seen: Observations) -> Bundle:
    """The bundle with its points where their observations are met best; cameras stay."""
    seen = seen.where(np.argsort(seen.point, kind="stable"))
    xyz, start = bundle.xyz.copy(), 0
    while start < len(seen):
        first, last = seen.point[start], seen.point[min(start + PART, len(seen)) - 1]
        end = int(np.searchsorted(seen.point, last, side="right"))
        part = seen.where(slice(start, end))
        part = replace(part, point=part.point - first)
        few = replace(bundle, xyz=xyz[first : last + 1])
        xyz[first : last + 1] = _settled(few, part).xyz
        start = end
    return replace(bundle, xyz=xyz)


def _settled(bundle: Bundle, seen: Observations) -> Bundle:
    num = len(bundle.xyz)
    damping = np.full((num, 1), FIRST_DAMPING)
    losses = _losses(bundle, seen)
    for _ in range(STEPS):
        found = project(bundle, seen)
        root = np.sqrt(robust_weights(found.error))[:, None]
        by_place = slopes_by_place(bundle, seen, found)
        rows = slopes_by_point(bundle, seen, by_place) * root[:, None]
        pull = np.einsum("mri,mr->mi", rows, found.error * root)
        side = np.stack([np.bincount(seen.point, column, num) for column in pull.T], axis=1)
        step = np.einsum("pij,pj->pi", inverse_of_points(rows, seen.point, num, damping), side)
        trial = replace(bundle, xyz=bundle.xyz - step)
        trial_losses = _losses(trial, seen)
        is_better = trial_losses < losses
        bundle = replace(bundle, xyz=np.where(is_better[:, None], trial.xyz, bundle.xyz))
        losses = np.where(is_better, trial_losses, losses)
        damping = np.where(is_better[:, None], damping / 4, damping * 8)
        damping = damping.clip(LEAST_DAMPING, MOST_DAMPING)
    return bundle


def _losses(bundle: Bundle, seen: Observations) -> Float[np.ndarray, " P"]:
    """Each point's robust loss."""
    return np.bincount(seen.point, robust_losses(project(bundle, seen).error), len(bundle.xyz))

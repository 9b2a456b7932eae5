# SPDX-License-Identifier: Apache-2.0
"""Cameras that a mapper has torn apart: most captures hold few kinds of lenses, maybe cropped.

Lenses are adjusted freely first. Then each is expected near the middle of those that came out like
it, which is found by mean shift, and all are adjusted again: an image that few points hold in place
learns its lens from its family.
"""

import numpy as np
from jaxtyping import Float

from diorama.data.bundle.adjust import LensPrior, adjust
from diorama.data.bundle.model import Bundle, Observations

FREE_SIGMA = np.array([0.1, 0.08, 0.08, 0.1])
"""How far a lens may well be from what the file says, in the units of `Bundle.lenses`."""
FAMILY_SIGMA = np.array([0.01, 0.0075, 0.0075, 0.01])
"""How far it may well be from its family's middle: stabilised phones do move their lenses."""
KINSHIP = np.array([0.01, 0.011, 0.011, 0.015])
"""Width of the kernel that tells kin from strangers."""
MAX_SHIFTS = 100
STRANGERS = 40.0
"""Lenses so many widths apart have no kinship that a float could hold."""
STILL = 1e-4
"""A shift by less than this share of the kernel's width is the last."""


def adjust_in_families(start: Bundle, seen: Observations) -> Bundle:
    """`adjust` with free lenses, then with those of each family held together."""
    free = adjust(start, seen, LensPrior(start.lenses, FREE_SIGMA))
    return adjust(free, seen, LensPrior(family_middles(free.lenses), FAMILY_SIGMA))


def family_middles(lenses: Float[np.ndarray, "C 4"]) -> Float[np.ndarray, "C 4"]:
    """For each lens the nearest place where lenses gather."""
    middles = lenses
    for _ in range(MAX_SHIFTS):
        apart = np.zeros((len(lenses), len(lenses)))
        # Column by column, because thousands of cameras squared are many numbers already.
        for at, of, width in zip(middles.T, lenses.T, KINSHIP, strict=True):
            apart += np.minimum(np.abs(at[:, None] - of) / width, STRANGERS) ** 2
        kinship = np.exp(-0.5 * apart)
        moved = np.einsum("cd,dk->ck", kinship, lenses) / kinship.sum(1, keepdims=True)
        if np.abs((moved - middles) / KINSHIP).max() < STILL:
            return moved
        middles = moved
    return middles

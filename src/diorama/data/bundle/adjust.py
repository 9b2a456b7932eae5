# SPDX-License-Identifier: Apache-2.0
"""Bundle adjustment: cameras and points that explain best where points were seen."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from diorama.data.bundle.model import POSE, Bundle, Observations
from diorama.data.bundle.normal_equations import NormalEquations
from diorama.data.bundle.projection import project

ROBUST_PIXELS = 1.0
"""Cauchy's scale: an error of this many pixels has half the weight of a small one."""
MAX_STEPS = 50
FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-4, 1e-9, 1e6
DONE = 3e-4
"""A step that lowers the cost by less than this share is the last."""


@dataclass(frozen=True)
class LensPrior:
    """Where lenses are expected, as in `Bundle.lenses`, and how far they may well lie from it."""

    center: Float[np.ndarray, "C 4"]
    sigma: Float[np.ndarray, " 4"]

    def surprise(self, bundle: Bundle) -> Float[np.ndarray, "C 4"]:
        """How many sigmas each lens is off."""
        return (bundle.lenses - self.center) / self.sigma


def adjust(start: Bundle, seen: Observations, prior: LensPrior) -> Bundle:
    """The bundle of least robust cost near `start`, by Levenberg's and Marquardt's method."""
    bundle, cost, damping = start, robust_cost(start, seen, prior), FIRST_DAMPING
    for _ in range(MAX_STEPS):
        equations = _equations(bundle, seen, prior)
        while True:
            trial = bundle.moved(*equations.step(damping))
            trial_cost = robust_cost(trial, seen, prior)
            if trial_cost < cost:
                break
            damping *= 8
            if damping > MOST_DAMPING:
                return bundle
        gain = 1 - trial_cost / cost
        bundle, cost, damping = trial, trial_cost, max(damping / 4, LEAST_DAMPING)
        if gain < DONE:
            break
    return bundle


def robust_cost(bundle: Bundle, seen: Observations, prior: LensPrior) -> float:
    """The robust losses of all errors, and half the squared surprise of the lenses."""
    losses = robust_losses(project(bundle, seen).error)
    return float(losses.sum() + 0.5 * (prior.surprise(bundle) ** 2).sum())


def robust_losses(error: Float[np.ndarray, "M 2"]) -> Float[np.ndarray, " M"]:
    """Cauchy's loss c^2 / 2 log(1 + e^2 / c^2) of each error."""
    return 0.5 * ROBUST_PIXELS**2 * np.log1p((error**2).sum(1) / ROBUST_PIXELS**2)


def robust_weights(error: Float[np.ndarray, "M 2"]) -> Float[np.ndarray, " M"]:
    """The weights with which squared errors have the slope of their robust losses."""
    return 1 / (1 + (error**2).sum(1) / ROBUST_PIXELS**2)


def _equations(bundle: Bundle, seen: Observations, prior: LensPrior) -> NormalEquations:
    found = project(bundle, seen)
    weight = robust_weights(found.error)
    curvature, slope = np.zeros(bundle.num_unknowns), np.zeros(bundle.num_unknowns)
    first_lens = POSE * len(bundle.rotation)
    curvature[first_lens:] = np.tile(prior.sigma**-2, len(bundle.intrinsics))
    slope[first_lens:] = (prior.surprise(bundle) / prior.sigma).reshape(-1)
    return NormalEquations.of(bundle, seen, found, weight, (curvature, slope))

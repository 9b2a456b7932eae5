# SPDX-License-Identifier: Apache-2.0
"""Whether a planned run keeps to its time budget, and what is left of the plan if it does not.

A plan is made from the first steps. Machines slow down and steps may grow longer, so the clock is
looked at a few times on the way, and a plan that would take too long is cut: schedules then end
earlier, as they would have, had it been known.
"""

from diorama.engine.time_budget import StepCost, mean_cost

LOOKS = (0.5, 0.75, 0.9)
"""Shares of the plan after which the clock is looked at."""
TOLERANCE = 0.02
"""A run may end late by this share of its budget."""
LEAST_LEFT = 0.05
"""This share of the plan is always left for the ends of the schedules, late or not."""


class Pace:
    """Compares a run with its budget; `step` and `elapsed` are those at which it was planned."""

    def __init__(self, max_minutes: float, step: int, elapsed: float):
        self.seconds = 60.0 * max_minutes
        self._step, self._elapsed = step, elapsed

    def is_due(self, step: int, end: int) -> bool:
        """Whether this is a step to look at the clock after."""
        return self._step < step < end and step in [int(share * end) for share in LOOKS]

    def steps_that_fit(self, step: int, end: int, elapsed: float, step_cost: StepCost) -> int:
        """`end`, or fewer if the steps since the last look say that it would be too late.

        They count with the evaluations and checkpoints between them. `step_cost` is as in
        `TimeBudget.plan`.
        """
        before = mean_cost(step_cost, self._step, step, end)
        to_come = mean_cost(step_cost, step, end, end)
        seconds = (elapsed - self._elapsed) / (step - self._step) * to_come / before
        self._step, self._elapsed = step, elapsed
        left = self.seconds - elapsed
        if (end - step) * seconds <= left + TOLERANCE * self.seconds:
            return end
        return min(end, step + max(int(left / seconds), int(LEAST_LEFT * end), 1))

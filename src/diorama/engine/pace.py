# SPDX-License-Identifier: Apache-2.0
"""Whether a planned run keeps to its time budget, and how its plan is changed if it does not.

A plan is made from the first steps. Machines slow down, or were busy at first, and steps may grow
longer. So the clock is looked at a few times on the way. A plan that would take too long is cut;
one that would leave much time unused is lengthened while it is young. Schedules then end earlier
or later, as they would have, had it been known.
"""

from diorama.engine.time_budget import StepCost, mean_cost

LOOKS = (0.2, 0.5, 0.75, 0.9)
"""Shares of the plan after which the clock is looked at."""
YOUNG = 0.5
"""After this share of a plan no steps are added: schedules have gone too far to turn back."""
LEAST_GAIN = 0.1
"""A plan is lengthened by no less than this share: the clock alone wobbles by a little."""
TOLERANCE = 0.02
"""A run may end late by this share of its budget."""
LEAST_LEFT = 0.05
"""This share of the plan is always left for the ends of the schedules, late or not."""


class Pace:
    """Compares a run with its budget; `step` and `elapsed` are those at which it was planned.

    No plan has more than `max_steps`.
    """

    def __init__(self, max_minutes: float, step: int, elapsed: float, max_steps: int):
        self.seconds, self._max_steps = 60.0 * max_minutes, max_steps
        self._step, self._elapsed = step, elapsed

    def is_due(self, step: int, end: int) -> bool:
        """Whether this is a step to look at the clock after."""
        return self._step < step < end and step in [int(share * end) for share in LOOKS]

    def steps_that_fit(self, step: int, end: int, elapsed: float, step_cost: StepCost) -> int:
        """`end`, or as many as fit if the steps since the last look say that it would be too late
        or, in a young plan, far too early.

        They count with the evaluations and checkpoints between them. `step_cost` is as in
        `TimeBudget.plan`.
        """
        before = mean_cost(step_cost, self._step, step, end)
        to_come = mean_cost(step_cost, step, end, end)
        seconds = (elapsed - self._elapsed) / (step - self._step) * to_come / before
        self._step, self._elapsed = step, elapsed
        left = self.seconds - elapsed
        fitting = step + int(left / seconds)
        if step <= YOUNG * end and fitting >= (1 + LEAST_GAIN) * end:
            return max(end, min(fitting, self._max_steps))
        if (end - step) * seconds <= left + TOLERANCE * self.seconds:
            return end
        return min(end, max(fitting, step + max(int(LEAST_LEFT * end), 1)))

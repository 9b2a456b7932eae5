# SPDX-License-Identifier: Apache-2.0
"""A time budget turned, once, into a number of steps.

The first steps are skipped, then steps are timed until a share of the budget is spent. The later
half of them, which caches and warm-ups trouble least, gives the seconds per step, without a single
step that took many times as long as the others (a warm-up that ends does not recur); from it, and
from what evaluations and checkpoints will take, follows how many steps still fit.
"""

from collections.abc import Callable
from dataclasses import dataclass

SKIPPED_STEPS = 3
PROBE_SHARE = 0.06
MIN_PROBE_STEPS = 8
MAX_PROBE_SHARE = 0.25
LONE_FACTOR = 10.0
"""A single step longer than this many medians is not expected again."""
EVAL_SHARE = 0.1
"""Evaluations during training get at most this share of what remains."""


StepCost = Callable[[int, int], float]


@dataclass(frozen=True)
class Plan:
    """The fixed number of steps, and the interval of evaluations that fits the budget."""

    steps: int
    eval_every: int


@dataclass(frozen=True)
class Costs:
    """Seconds of one evaluation and one checkpoint, and how often they are made."""

    eval_seconds: float
    eval_every: int
    save_seconds: float
    save_every: int
    save_minutes: float


class TimeBudget:
    """Collects step times until they suffice for a `Plan`."""

    def __init__(self, max_minutes: float, start_seconds: float = 0.0):
        self.seconds = 60.0 * max_minutes
        self._start = start_seconds
        self._times: list[float] = []

    def note_step(self, seconds: float) -> None:
        """Remember how long one training step took."""
        self._times.append(seconds)

    def is_ready(self, elapsed: float) -> bool:
        """Whether the speed is known, given the seconds trained so far."""
        counted = len(self._times) - SKIPPED_STEPS
        spent = elapsed - self._start
        if spent >= MAX_PROBE_SHARE * self.seconds or elapsed >= self.seconds:
            return bool(self._times)
        return counted >= MIN_PROBE_STEPS and spent >= PROBE_SHARE * self.seconds

    @property
    def step_seconds(self) -> float:
        """Mean of the later half of the timed steps, without a lone one that is far longer."""
        timed = self._times[SKIPPED_STEPS:] or self._times[-1:]
        later = sorted(timed[len(timed) // 2 :])
        median = later[len(later) // 2]
        if len(later) > 2 and later[-1] > LONE_FACTOR * median >= later[-2]:
            later.pop()
        return sum(later) / len(later)

    def plan(
        self,
        step: int,
        max_steps: int,
        elapsed: float,
        costs: Costs,
        step_cost: StepCost = lambda step, end: 1.0,
    ) -> Plan:
        """The steps that fit, at most `max_steps`; `step` are done after `elapsed` seconds.

        `step_cost(step, end)` is the relative time of a step of a run of `end` steps. It corrects
        the measured time where steps grow longer: the timed ones ran as part of a run of
        `max_steps`, those to come will be part of a shorter one.
        """
        remaining = max(self.seconds - elapsed, 0.0)
        eval_every = costs.eval_every
        if eval_every > 0 and costs.eval_seconds > 0:
            affordable = EVAL_SHARE * remaining / costs.eval_seconds
            possible = remaining / self.step_seconds
            if possible / eval_every > affordable:
                eval_every = int(possible / affordable) if affordable >= 1 else 0
        saving = costs.save_seconds / max(60.0 * costs.save_minutes, costs.save_seconds, 1e-9)
        beside = costs.save_seconds / max(costs.save_every, 1)
        beside += costs.eval_seconds / eval_every if eval_every > 0 else 0.0
        available = remaining * (1 - min(saving, 0.5))
        measured = _mean_cost(step_cost, max(0, step - len(self._times) // 2), step, max_steps)

        def is_fitting(end: int) -> bool:
            factor = _mean_cost(step_cost, step, end, end) / measured
            return (end - step) * (self.step_seconds * factor + beside) <= available

        low, high = step, max(step, max_steps) + 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if is_fitting(middle) else (low, middle)
        return Plan(min(max_steps, low), eval_every)


def _mean_cost(step_cost: StepCost, first: int, last: int, end: int) -> float:
    """The mean over a range of steps, from a few of them."""
    samples = [first + (last - first) * (2 * i + 1) // 64 for i in range(32)]
    return sum(step_cost(step, end) for step in samples) / len(samples)

# SPDX-License-Identifier: Apache-2.0
"""A time budget turned into a number of steps (which `Pace` may cut later).

The first steps are skipped, then steps are timed until a share of the budget is spent. The later
half of them, which caches and warm-ups trouble least, gives the seconds per step, without a single
step that took many times as long as the others (a warm-up that ends does not recur); from it, and
from what evaluations and checkpoints will take, follows how many steps still fit.

Where first steps are far shorter than most (small images, few Gaussians), their times say little:
what is the same in every step weighs too much in them. Then steps are timed for longer, until
typical ones have come, and only these count.
"""

from collections.abc import Callable
from dataclasses import dataclass

SKIPPED_STEPS = 3
PROBE_SHARE = 0.06
MIN_PROBE_STEPS = 8
MAX_PROBE_SHARE = 0.25
LONG_PROBE_SHARE = 0.2
"""No longer than this share of the budget is waited for typical steps."""
TYPICAL = 0.5
"""A step is typical if it takes at least this much of the run's mean step."""
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


@dataclass(frozen=True)
class _Timed:
    """A step's seconds, and what it should take, relative to the run's mean step."""

    seconds: float
    cost: float


class TimeBudget:
    """Collects step times until they suffice for a `Plan`."""

    def __init__(self, max_minutes: float, start_seconds: float = 0.0):
        self.seconds = 60.0 * max_minutes
        self._start = start_seconds
        self._timed: list[_Timed] = []

    def note_step(self, seconds: float, cost: float = 1.0) -> None:
        """Remember how long a step took; `cost` is what it should, relative to the mean step."""
        self._timed.append(_Timed(seconds, cost))

    def is_ready(self, elapsed: float) -> bool:
        """Whether the speed is known, given the seconds trained so far."""
        counted = len(self._timed) - SKIPPED_STEPS
        spent = elapsed - self._start
        if spent >= MAX_PROBE_SHARE * self.seconds or elapsed >= self.seconds:
            return bool(self._timed)
        if counted < MIN_PROBE_STEPS or spent < PROBE_SHARE * self.seconds:
            return False
        typical = self._typical()
        if len(typical) == counted or spent >= LONG_PROBE_SHARE * self.seconds:
            return True
        enough = 0.5 * PROBE_SHARE * self.seconds
        return len(typical) >= MIN_PROBE_STEPS and sum(x.seconds for x in typical) >= enough

    @property
    def step_seconds(self) -> float:
        """Mean of the steps that count."""
        counting = self._counting()
        return sum(x.seconds for x in counting) / len(counting)

    def _typical(self) -> list[_Timed]:
        return [x for x in self._timed[SKIPPED_STEPS:] if x.cost >= TYPICAL]

    def _counting(self) -> list[_Timed]:
        """The later half of the typical steps (or of all), without a lone far longer one."""
        typical = self._typical()
        timed = self._timed[SKIPPED_STEPS:] or self._timed[-1:]
        timed = typical if len(typical) >= MIN_PROBE_STEPS else timed
        later = sorted(timed[len(timed) // 2 :], key=lambda x: x.seconds)
        median = later[len(later) // 2].seconds
        if len(later) > 2 and later[-1].seconds > LONE_FACTOR * median >= later[-2].seconds:
            later.pop()
        return later

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
        counting = self._counting()
        measured = sum(x.cost for x in counting) / len(counting)
        measured *= mean_cost(step_cost, 0, max_steps, max_steps)

        def is_fitting(end: int) -> bool:
            factor = mean_cost(step_cost, step, end, end) / measured
            return (end - step) * (self.step_seconds * factor + beside) <= available

        low, high = step, max(step, max_steps) + 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if is_fitting(middle) else (low, middle)
        return Plan(min(max_steps, low), eval_every)


def mean_cost(step_cost: StepCost, first: int, last: int, end: int) -> float:
    """The mean over a range of steps, from a few of them."""
    samples = [first + (last - first) * (2 * i + 1) // 64 for i in range(32)]
    return sum(step_cost(step, end) for step in samples) / len(samples)

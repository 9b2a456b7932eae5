# SPDX-License-Identifier: Apache-2.0
"""Decides how many steps of a run fit its time budget: early on, and again if its speed changes."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from diorama.config import TrainerConfig
from diorama.engine.pace import Pace
from diorama.engine.state import RunState
from diorama.engine.time_budget import Costs, StepCost, TimeBudget, mean_cost


@dataclass(frozen=True)
class Decision:
    """So many steps, with an evaluation after each `eval_every` of them."""

    steps: int
    eval_every: int
    sentence: str
    """For the user."""
    facts: dict[str, float] = field(default_factory=dict)
    """For the log."""


class Planner:
    """Watches the clock of a run with `--max-minutes`.

    A run that is resumed after it was planned keeps its plan: it ends where it would have ended.
    """

    def __init__(
        self, config: TrainerConfig, max_minutes: float, state: RunState, step_cost: StepCost
    ):
        self.minutes, self._max_steps, self._step_cost = max_minutes, config.max_steps, step_cost
        self._pace: Pace | None = None
        is_planned = state.planned_steps is not None
        self._budget = None if is_planned else TimeBudget(max_minutes, state.seconds)

    def note_step(self, step: int, seconds: float) -> None:
        """Remember how long a step took."""
        if self._budget is not None:
            end = self._max_steps
            usual = mean_cost(self._step_cost, 0, end, end)
            self._budget.note_step(seconds, self._step_cost(step, end) / usual)

    def seconds_left(self, elapsed: float) -> float:
        """Of the budget, as long as there is no plan, which knows better."""
        return math.inf if self._budget is None else self._budget.seconds - elapsed

    def decide(self, state: RunState, measure: Callable[[], Costs]) -> Decision | None:
        """What is to be changed after this step, if anything.

        `measure` is called when the first plan is due; what it takes counts as training time.
        """
        if self._budget is not None:
            is_ready = self._budget.is_ready(state.seconds)
            return self._plan(self._budget, state, measure()) if is_ready else None
        planned = state.planned_steps
        if self._pace is None or planned is None or not self._pace.is_due(state.step, planned):
            return None
        steps = self._pace.steps_that_fit(state.step, planned, state.seconds, self._step_cost)
        if steps == planned:
            return None
        change = "slower" if steps < planned else "faster"
        sentence = (
            f"steps became {change} than they were: {steps} instead of {planned} steps fit the "
            f"{self.minutes:g} minutes"
        )
        return Decision(steps, state.eval_every, sentence)

    def _plan(self, budget: TimeBudget, state: RunState, costs: Costs) -> Decision:
        plan = budget.plan(state.step, self._max_steps, state.seconds, costs, self._step_cost)
        self._budget = None
        self._pace = Pace(self.minutes, state.step, state.seconds, self._max_steps)
        per_step = budget.step_seconds
        sentence = (
            f"{1000 * per_step:.1f} ms per step: {plan.steps} steps fit the "
            f"{self.minutes:g} minutes"
        )
        return Decision(plan.steps, plan.eval_every, sentence, {"seconds_per_step": per_step})

# SPDX-License-Identifier: Apache-2.0
"""The arithmetic that turns minutes into steps."""

from dataclasses import replace

import pytest

from diorama.engine.time_budget import SKIPPED_STEPS, Costs, TimeBudget

FREE = Costs(0.0, 0, 0.0, 1000, 5.0)


def measured(seconds_per_step: float, minutes: float = 1.0, slow_start: int = 3) -> TimeBudget:
    budget = TimeBudget(minutes)
    for _ in range(slow_start):
        budget.note_step(10 * seconds_per_step)
    for _ in range(20):
        budget.note_step(seconds_per_step)
    return budget


def test_steps_fill_what_remains():
    plan = measured(0.5).plan(step=23, max_steps=10**6, elapsed=10.0, costs=FREE)
    assert plan.steps == 23 + 100


def test_slow_first_steps_do_not_count():
    assert measured(0.5, slow_start=SKIPPED_STEPS).step_seconds == pytest.approx(0.5)
    assert measured(0.5, slow_start=6).step_seconds == pytest.approx(0.5)


def test_max_steps_stays_a_limit():
    assert measured(0.5).plan(23, 50, 10.0, FREE).steps == 50


def test_evaluations_and_checkpoints_take_their_share():
    costs = replace(FREE, save_seconds=2.0, save_every=10)
    assert measured(0.5).plan(0, 10**6, 0.0, costs).steps == pytest.approx(60 / 0.7, rel=0.03)
    costs = replace(FREE, eval_seconds=1.0, eval_every=50)
    plan = measured(0.5).plan(0, 10**6, 0.0, costs)
    assert plan.eval_every == 50
    assert plan.steps == pytest.approx(60 / 0.52, rel=0.02)


def test_evaluations_that_cost_too_much_become_rare_or_none():
    often = replace(FREE, eval_seconds=1.0, eval_every=2)
    assert measured(0.5).plan(0, 10**6, 0.0, often).eval_every == 20
    huge = replace(FREE, eval_seconds=50.0, eval_every=100)
    plan = measured(0.5).plan(0, 10**6, 0.0, huge)
    assert (plan.eval_every, plan.steps) == (0, 120)


def test_the_speed_is_known_after_a_small_share_of_the_budget():
    budget = measured(0.01)
    assert not budget.is_ready(elapsed=1.0)
    assert budget.is_ready(elapsed=4.0)
    slow = TimeBudget(1.0)
    slow.note_step(14.0)
    assert not slow.is_ready(elapsed=14.0)
    slow.note_step(14.0)
    assert slow.is_ready(elapsed=28.0)


def test_an_exhausted_budget_ends_at_once():
    budget = measured(0.5)
    assert budget.is_ready(elapsed=61.0)
    assert budget.plan(7, 100, 61.0, FREE).steps == 7


def test_a_lone_long_step_does_not_count_but_a_recurring_one_does():
    lone, recurring = TimeBudget(1.0), TimeBudget(1.0)
    for step in range(100):
        lone.note_step(3.0 if step == 80 else 0.1)
        recurring.note_step(3.0 if step % 20 == 0 else 0.1)
    assert lone.step_seconds == pytest.approx(0.1)
    assert recurring.step_seconds > 0.2


def growing(minutes: float) -> TimeBudget:
    """300 short steps, then long ones that should take five times as long and take three times."""
    budget = TimeBudget(minutes)
    for _ in range(300):
        budget.note_step(0.01, cost=0.2)
    return budget


def test_short_first_steps_are_waited_out():
    budget = growing(minutes=0.5)
    assert not budget.is_ready(elapsed=3.0)  # a tenth of the budget
    for _ in range(40):
        budget.note_step(0.03, cost=1.0)
    assert budget.is_ready(elapsed=4.2)
    assert budget.step_seconds == pytest.approx(0.03)
    plan = budget.plan(340, 10**6, 4.2, FREE)
    assert plan.steps == pytest.approx(340 + (30 - 4.2) / 0.03, abs=1)


def test_typical_steps_are_not_waited_for_forever():
    budget = growing(minutes=0.25)
    assert budget.is_ready(elapsed=3.0)  # a fifth of the budget
    assert budget.step_seconds == pytest.approx(0.01)
    plan = budget.plan(300, 10**6, 3.0, FREE)  # what the costs say is all there is
    assert plan.steps == pytest.approx(300 + 12 / 0.05, abs=1)

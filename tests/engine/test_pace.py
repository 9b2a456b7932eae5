# SPDX-License-Identifier: Apache-2.0
"""What is left of a plan when the clock is looked at again."""

from diorama.engine.pace import Pace


def pace_of(step: int = 0, elapsed: float = 0.0, max_steps: int = 1100) -> Pace:
    return Pace(max_minutes=10.0, step=step, elapsed=elapsed, max_steps=max_steps)


def even(step: int, end: int) -> float:
    return 1.0


def growing(step: int, end: int) -> float:
    return 1.0 + step / end


def test_a_run_in_time_keeps_its_plan():
    pace = pace_of(step=100, elapsed=36.0)
    # 600 s for 1,100 steps: 0.56 s each, of which 450 are done.
    assert pace.steps_that_fit(550, 1100, 36.0 + 450 * 0.56, even) == 1100
    assert pace.steps_that_fit(825, 1100, 36.0 + 725 * 0.56, even) == 1100


def test_a_little_late_is_in_time():
    assert pace_of().steps_that_fit(500, 1000, 303.0, even) == 1000
    assert pace_of().steps_that_fit(500, 1000, 310.0, even) < 1000


def test_a_slower_run_is_cut_to_what_fits():
    assert pace_of().steps_that_fit(500, 1000, 400.0, even) == 500 + 250


def test_only_the_steps_since_the_last_look_count():
    pace = pace_of(max_steps=1000)
    assert pace.steps_that_fit(500, 1000, 200.0, even) == 1000
    # 250 steps in 250 s: 150 of the 250 to come fit the other 150 s.
    assert pace.steps_that_fit(750, 1000, 450.0, even) == 900


def test_steps_that_are_known_to_grow_are_expected_to():
    assert pace_of().steps_that_fit(500, 1000, 290.0, even) == 1000
    # 0.58 s at a mean cost of 1.25 become 0.81 s at 1.75.
    assert pace_of().steps_that_fit(500, 1000, 290.0, growing) == 500 + 381


def test_schedules_end_even_if_there_is_no_time_left():
    assert pace_of().steps_that_fit(500, 1000, 900.0, even) == 550
    assert pace_of().steps_that_fit(9, 10, 900.0, even) == 10


def test_the_clock_is_looked_at_a_few_times():
    pace = pace_of(step=60, elapsed=30.0)
    assert [step for step in range(1000) if pace.is_due(step, 1000)] == [200, 500, 750, 900]
    assert not pace.is_due(50, 100)  # before the plan was made
    assert not pace.is_due(100, 100)


def test_a_run_that_was_slow_only_at_first_gets_the_steps_that_fit():
    pace = pace_of(max_steps=10_000)
    # 200 steps in 60 s: another 1,800 fit the 540 s that are left.
    assert pace.steps_that_fit(200, 1000, 60.0, even) == 2000
    assert [step for step in range(201, 2000) if pace.is_due(step, 2000)] == [400, 1000, 1500, 1800]


def test_no_plan_becomes_longer_than_the_run_may_be_nor_shorter_by_that():
    assert pace_of(max_steps=1500).steps_that_fit(200, 1000, 60.0, even) == 1500
    assert pace_of(max_steps=1000).steps_that_fit(200, 1000, 60.0, even) == 1000


def test_a_little_early_is_in_time():
    assert pace_of(max_steps=9999).steps_that_fit(200, 1000, 111.0, even) == 1000
    assert pace_of(max_steps=9999).steps_that_fit(200, 1000, 100.0, even) == 1200


def test_late_in_a_plan_no_steps_are_added():
    assert pace_of(max_steps=9999).steps_that_fit(500, 1000, 150.0, even) == 2000
    assert pace_of(max_steps=9999).steps_that_fit(501, 1000, 150.0, even) == 1000

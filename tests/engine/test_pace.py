# SPDX-License-Identifier: Apache-2.0
"""What is left of a plan when the clock is looked at again."""

from diorama.engine.pace import Pace


def even(step: int, end: int) -> float:
    return 1.0


def growing(step: int, end: int) -> float:
    return 1.0 + step / end


def test_a_run_in_time_keeps_its_plan():
    pace = Pace(max_minutes=10.0, step=100, elapsed=36.0)
    # 600 s for 1,100 steps: 0.56 s each, of which 450 are done.
    assert pace.steps_that_fit(550, 1100, 36.0 + 450 * 0.56, even) == 1100
    assert pace.steps_that_fit(825, 1100, 36.0 + 725 * 0.56, even) == 1100


def test_a_little_late_is_in_time():
    assert Pace(10.0, 0, 0.0).steps_that_fit(500, 1000, 303.0, even) == 1000
    assert Pace(10.0, 0, 0.0).steps_that_fit(500, 1000, 310.0, even) < 1000


def test_a_slower_run_is_cut_to_what_fits():
    assert Pace(10.0, 0, 0.0).steps_that_fit(500, 1000, 400.0, even) == 500 + 250


def test_only_the_steps_since_the_last_look_count():
    pace = Pace(10.0, 0, 0.0)
    assert pace.steps_that_fit(500, 1000, 200.0, even) == 1000
    # 250 steps in 250 s: 150 of the 250 to come fit the other 150 s.
    assert pace.steps_that_fit(750, 1000, 450.0, even) == 900


def test_steps_that_are_known_to_grow_are_expected_to():
    assert Pace(10.0, 0, 0.0).steps_that_fit(500, 1000, 290.0, even) == 1000
    # 0.58 s at a mean cost of 1.25 become 0.81 s at 1.75.
    assert Pace(10.0, 0, 0.0).steps_that_fit(500, 1000, 290.0, growing) == 500 + 381


def test_schedules_end_even_if_there_is_no_time_left():
    assert Pace(10.0, 0, 0.0).steps_that_fit(500, 1000, 900.0, even) == 550
    assert Pace(10.0, 0, 0.0).steps_that_fit(9, 10, 900.0, even) == 10


def test_the_clock_is_looked_at_a_few_times():
    pace = Pace(10.0, step=60, elapsed=30.0)
    assert [step for step in range(1000) if pace.is_due(step, 1000)] == [500, 750, 900]
    assert not pace.is_due(50, 100)  # before the plan was made
    assert not pace.is_due(100, 100)

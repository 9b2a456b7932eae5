# SPDX-License-Identifier: Apache-2.0
"""Learning rates against published numbers and closed forms."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diorama.config import OptimConfig
from diorama.engine.schedules import learning_rate
from diorama.errors import UserError


@pytest.mark.parametrize(
    ("step", "decay", "expected"),
    [
        (100_000, 250, 1.99054e-4),
        (200_000, 250, 7.92447e-5),
        (200_000, 500, 1.99054e-4),
        (500_000, 500, 5e-5),
    ],
)
def test_exponential_has_the_golden_rates_of_nerf(step, decay, expected):
    config = OptimConfig(schedule="exponential", lr=5e-4, lr_final=5e-5, decay_steps=1000 * decay)
    assert learning_rate(config, step, 200_000) == pytest.approx(expected, rel=1e-5)


def test_log_linear_with_delay_is_that_of_mip_nerf():
    config = OptimConfig(
        schedule="log-linear", lr=5e-4, lr_final=5e-6, warmup="sine", warmup_steps=2500,
        warmup_factor=0.01,
    )  # fmt: skip
    for step in (0, 1, 1250, 2500, 10_000, 1_000_000, 1_200_000):
        delay = 0.01 + 0.99 * math.sin(0.5 * math.pi * min(step / 2500, 1))
        t = min(step / 1_000_000, 1)
        expected = delay * math.exp((1 - t) * math.log(5e-4) + t * math.log(5e-6))
        assert learning_rate(config, step, 1_000_000) == pytest.approx(expected, rel=1e-12)


def test_multi_step_drops_at_its_milestones():
    config = OptimConfig(schedule="multi-step", lr=1.0, gamma=0.1, milestones=(0.5, 0.9))
    rates = [learning_rate(config, step, 30_000) for step in (0, 14_999, 15_000, 26_999, 27_000)]
    assert rates == pytest.approx([1, 1, 0.1, 0.1, 0.01])


def test_cosine_ends_at_its_final_rate():
    config = OptimConfig(schedule="cosine", lr=1.0, lr_final=0.0)
    rates = [learning_rate(config, step, 100) for step in (0, 50, 100, 150)]
    assert rates == pytest.approx([1, 0.5, 0, 0])


def test_linear_warm_up_starts_at_its_factor():
    config = OptimConfig(schedule="constant", lr=1.0, warmup_steps=100, warmup_factor=0.2)
    rates = [learning_rate(config, step, 1000) for step in (0, 50, 100, 101)]
    assert rates == pytest.approx([0.2, 0.6, 1.0, 1.0])


@given(
    st.sampled_from(["constant", "log-linear", "exponential", "multi-step", "cosine"]),
    st.integers(1, 1000), st.integers(0, 500), st.sampled_from([0.25, 0.5, 2.0]),
)  # fmt: skip
def test_squeezing_a_schedule_only_rescales_its_steps(schedule, step, warmup, squeeze):
    config = OptimConfig(schedule=schedule, decay_steps=800, warmup_steps=warmup)
    whole = learning_rate(config, step, 1000)
    assert learning_rate(config, step * 4, 4000, 4.0) == pytest.approx(whole)
    free = OptimConfig(schedule=schedule, decay_steps=None, warmup_steps=warmup)
    steps = round(1000 * squeeze)
    final = learning_rate(free, steps, steps, squeeze)
    assert final == pytest.approx(learning_rate(free, 1000, 1000))


def test_a_log_schedule_to_zero_is_refused():
    with pytest.raises(UserError, match=r"--optim.lr-final must be above 0"):
        learning_rate(OptimConfig(schedule="log-linear", lr_final=0.0), 0, 10)

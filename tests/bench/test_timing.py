# SPDX-License-Identifier: Apache-2.0
"""Turns, shares and minima by a clock that only works move; threads that come back."""

from collections.abc import Callable, Iterator
from itertools import repeat
from types import SimpleNamespace

import pytest
import torch

from diorama.bench import timing
from diorama.bench.timing import best_seconds, threads


class Clock:
    """A clock that stands still but for the works made here, and a diary of their calls."""

    def __init__(self) -> None:
        self.now, self.diary = 0.0, ""

    def perf_counter(self) -> float:
        return self.now

    def work(self, letter: str, durations: Iterator[float]) -> Callable[[], None]:
        def call() -> None:
            self.diary += letter
            self.now += next(durations)

        return call


@pytest.fixture
def clock(monkeypatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(timing, "time", SimpleNamespace(perf_counter=made.perf_counter))
    return made


def test_works_of_one_speed_take_turns(clock):
    works = [clock.work(letter, repeat(0.25)) for letter in "abc"]
    assert best_seconds(works, 1.5) == [0.25, 0.25, 0.25]
    assert clock.diary == "abc" + "abcabc"


def test_a_quick_work_is_called_often_and_a_slow_one_twice(clock):
    works = [clock.work("q", repeat(0.125)), clock.work("s", repeat(4.0))]
    assert best_seconds(works, 1.0) == [0.125, 4.0]
    assert clock.diary == "qs" + "qsqqq"


def test_the_shortest_time_counts(clock):
    work = clock.work("w", iter([8.0, 2.0, 0.5, 1.0, 9.0]))
    assert best_seconds([work], 3.5) == [0.5]
    assert clock.diary == "wwww"


def test_threads_are_as_before_even_after_an_error():
    before = torch.get_num_threads()
    with threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before
    with pytest.raises(ZeroDivisionError), threads(before + 1):
        _ = 1 / 0
    assert torch.get_num_threads() == before

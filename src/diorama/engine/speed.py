# SPDX-License-Identifier: Apache-2.0
"""How long a run has trained and how fast it goes."""

import time
from collections.abc import Callable

from diorama.engine.state import RunState

REPORT_SECONDS = 0.2


class Stopwatch:
    """Adds the time since `start` to the seconds the run has trained before."""

    def __init__(self, state: RunState):
        self._state = state
        self._last: float | None = None

    def start(self) -> None:
        """Begin to count."""
        self._last = time.perf_counter()

    def note(self) -> None:
        """Bring the run's seconds up to date."""
        now = time.perf_counter()
        if self._last is not None:
            self._state.seconds += now - self._last
            self._last = now


class Speed:
    """Smoothed seconds and rays per step, and when to show them."""

    def __init__(self) -> None:
        self.step_seconds = 0.0
        self._rays = 0.0
        self._count = 0
        self._last_report = -float("inf")

    @property
    def rays_per_second(self) -> float:
        """Training rays per second of training steps."""
        return self._rays / max(self.step_seconds, 1e-9)

    def note(self, seconds: float, num_rays: int) -> None:
        """Take one step into account."""
        self._count += 1
        share = max(1 / self._count, 0.05)
        self.step_seconds += share * (seconds - self.step_seconds)
        self._rays += share * (num_rays - self._rays)

    def is_time_to_report(self) -> bool:
        """True at most once per `REPORT_SECONDS`."""
        now = time.monotonic()
        if now - self._last_report < REPORT_SECONDS:
            return False
        self._last_report = now
        return True


def seconds_of(call: Callable[[], None]) -> float:
    """How long a call takes."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started

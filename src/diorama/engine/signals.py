# SPDX-License-Identifier: Apache-2.0
"""SIGINT and SIGTERM as a request to stop at the next safe place."""

import contextlib
import shlex
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType


class Interrupted(Exception):
    """Training stopped on a signal with everything saved; `run` can be resumed."""

    def __init__(self, run: Path, signal_number: int, step: int):
        super().__init__(
            f"stopped at step {step}; go on with: diorama resume {shlex.quote(str(run))}"
        )
        self.run = run
        self.signal_number = signal_number
        self.step = step

    @property
    def exit_code(self) -> int:
        """130 after SIGINT, 143 after SIGTERM: what shells expect."""
        return 128 + self.signal_number


class StopRequest:
    """Whether a signal asked to stop, and which."""

    def __init__(self) -> None:
        self.signal_number: int | None = None

    def __bool__(self) -> bool:
        return self.signal_number is not None

    def note(self, number: int, frame: FrameType | None) -> None:
        """Signal handler: remember the first; a second one does not wait any longer."""
        del frame
        if self.signal_number is not None:
            raise KeyboardInterrupt
        self.signal_number = number


@contextlib.contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    """A `StopRequest` fed by SIGINT and SIGTERM; elsewhere than in the main thread, by nothing."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    former = {n: signal.signal(n, request.note) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield request
    finally:
        for number, handler in former.items():
            # None is a handler that Python did not install and cannot put back.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

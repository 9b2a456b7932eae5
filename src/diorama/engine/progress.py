# SPDX-License-Identifier: Apache-2.0
"""What a person sees while training: a bar on a terminal, plain lines elsewhere, or nothing."""

import contextlib
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Protocol, cast, runtime_checkable

if TYPE_CHECKING:
    from rich.progress import TaskID


@runtime_checkable
class Stream(Protocol):
    """Something to print to: a terminal, a file, a notebook's cell."""

    def write(self, text: str, /) -> object:
        """Take the text."""
        ...

    def flush(self) -> object:
        """Show what was written."""
        ...

    def isatty(self) -> bool:
        """Whether a person is looking."""
        ...


@dataclass(frozen=True)
class StepReport:
    """The state of training after a step."""

    step: int
    total: int
    loss: float
    psnr: float | None
    rays_per_second: float
    seconds_left: float

    def __str__(self) -> str:
        psnr = "" if self.psnr is None else f"  psnr {self.psnr:.2f}"
        return (
            f"step {self.step}/{self.total}  loss {self.loss:.5f}{psnr}  "
            f"{self.rays_per_second:,.0f} rays/s  {_clock(self.seconds_left)} left"
        )


class Reporter:
    """Reports nothing; the base of those that do."""

    def message(self, text: str) -> None:
        """Say one sentence."""

    def update(self, report: StepReport) -> None:
        """Take note of a step."""

    def evaluating(self, done: int, total: int) -> None:
        """Take note of an evaluated image."""

    @contextlib.contextmanager
    def session(self) -> Iterator[None]:
        """Everything that is reported happens inside."""
        yield


class PlainReporter(Reporter):
    """Lines of text, at most one per `seconds` (and always the last)."""

    def __init__(self, stream: Stream, seconds: float = 5.0):
        self._stream = stream
        self._seconds = seconds
        self._last = -float("inf")

    def message(self, text: str) -> None:
        """Print the sentence."""
        self._print(text)

    def update(self, report: StepReport) -> None:
        """Print the step if it is time."""
        self._print_sometimes(str(report), report.step >= report.total)

    def evaluating(self, done: int, total: int) -> None:
        """Print the count if it is time."""
        self._print_sometimes(f"evaluated {done}/{total} images", done == total)

    def _print_sometimes(self, text: str, is_last: bool) -> None:
        now = time.monotonic()
        if is_last or now - self._last >= self._seconds:
            self._last = now
            self._print(text)

    def _print(self, text: str) -> None:
        # A reader that went away, as `| head` does, is no reason to stop training.
        with contextlib.suppress(BrokenPipeError):
            print(text, file=self._stream, flush=True)


class RichReporter(Reporter):
    """A live bar with loss, PSNR, speed and time left."""

    def __init__(self, stream: Stream):
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[text]}"),
            console=Console(file=cast(IO[str], stream)),
        )
        self._tasks: dict[str, TaskID] = {}

    def message(self, text: str) -> None:
        """Print the sentence above the bar."""
        self._progress.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def update(self, report: StepReport) -> None:
        """Move the bar."""
        psnr = "" if report.psnr is None else f"  psnr {report.psnr:.2f}"
        text = (
            f"loss {report.loss:.4f}{psnr}  {report.rays_per_second:,.0f} rays/s  "
            f"{_clock(report.seconds_left)} left"
        )
        self._show("training", report.step, report.total, text)

    def evaluating(self, done: int, total: int) -> None:
        """Move the bar of images."""
        self._show("evaluating", done, total, "images")

    def _show(self, name: str, done: int, total: int, text: str) -> None:
        if name not in self._tasks:
            self._tasks[name] = self._progress.add_task(name, total=total, text=text)
        self._progress.update(self._tasks[name], completed=done, total=total, text=text)

    @contextlib.contextmanager
    def session(self) -> Iterator[None]:
        """Keep the bar alive."""
        with self._progress:
            yield


def make_reporter(quiet: bool, stream: Stream | None = None) -> Reporter:
    """The reporter that suits `stream` (unset: standard error)."""
    target: Stream | None = sys.stderr if stream is None else stream
    if quiet or target is None:  # a program without a console has no stderr
        return Reporter()
    return RichReporter(target) if target.isatty() else PlainReporter(target)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(max(round(seconds), 0), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"

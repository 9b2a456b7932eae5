# SPDX-License-Identifier: Apache-2.0
"""What train, resume and demo share: the run's folder as the last line, signals as exit codes."""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from diorama.engine.signals import Interrupted


def run_to_end(train: Callable[[], Path]) -> Path:
    """Train; a signal ends the process with the resume command printed."""
    try:
        return train()
    except Interrupted as stopped:
        print(f"diorama: {stopped}", file=sys.stderr)
        sys.exit(stopped.exit_code)


def tell(notes: Iterable[str], quiet: bool = False) -> None:
    """Sentences for the user, beside what a verb prints as its result."""
    if not quiet:
        for note in notes:
            print(note, file=sys.stderr)


def shown(path: Path) -> str:
    """The path as a person would type it from here."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)

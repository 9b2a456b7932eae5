# SPDX-License-Identifier: Apache-2.0
"""Where numbers and images of a run are written: the log interface, all logs at once, and JSONL."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jaxtyping import Float
from torch import Tensor

from diorama.engine.disk import finite, write_atomically


class RunLog:
    """Base of every log; steps count finished steps, so a checkpoint's step has been logged."""

    def scalars(self, step: int, kind: str, values: Mapping[str, Any]) -> None:
        """Numbers of one `kind` (train, eval, plan, ...) at a step."""

    def image(self, step: int, name: str, rgb: Float[Tensor, "H W 3"]) -> None:
        """An image at a step."""

    def histogram(self, step: int, name: str, values: Float[Tensor, " N"]) -> None:
        """The distribution of many numbers at a step."""

    def rewind(self, step: int) -> None:
        """Forget everything after `step`: it is going to be done again."""

    def close(self) -> None:
        """Write out what is pending."""


class AllLogs(RunLog):
    """Passes everything on to several logs."""

    def __init__(self, logs: Sequence[RunLog]):
        self._logs = logs

    def scalars(self, step: int, kind: str, values: Mapping[str, Any]) -> None:
        """To each log."""
        for log in self._logs:
            log.scalars(step, kind, values)

    def image(self, step: int, name: str, rgb: Float[Tensor, "H W 3"]) -> None:
        """To each log."""
        for log in self._logs:
            log.image(step, name, rgb)

    def histogram(self, step: int, name: str, values: Float[Tensor, " N"]) -> None:
        """To each log."""
        for log in self._logs:
            log.histogram(step, name, values)

    def rewind(self, step: int) -> None:
        """In each log."""
        for log in self._logs:
            log.rewind(step)

    def close(self) -> None:
        """Each log, even if one of them fails."""
        errors = []
        for log in self._logs:
            try:
                log.close()
            except OSError as error:
                errors.append(error)
        if errors:
            raise errors[0]


class JsonlLog(RunLog):
    """log.jsonl: one JSON object per line, `{"step": ..., "kind": ..., numbers}`.

    Opening it for a run that stands at `step` drops the lines after that step and a torn last
    line, so that a resumed run has each step once.
    """

    def __init__(self, path: Path, step: int):
        self._path = path
        self.rewind(step)

    def scalars(self, step: int, kind: str, values: Mapping[str, Any]) -> None:
        """Append one line; it is in the file when this returns."""
        line = json.dumps(finite({"step": step, "kind": kind, **values}))
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def rewind(self, step: int) -> None:
        """Rewrite the file with the lines up to `step`, if any line goes."""
        if not self._path.exists():
            return
        text = self._path.read_text(encoding="utf-8", errors="replace")
        kept = [line for line in text.split("\n") if _is_until(line, step)]
        content = "".join(line + "\n" for line in kept)
        if content != text:
            write_atomically(self._path, content)


def _is_until(line: str, step: int) -> bool:
    try:
        entry = json.loads(line)
    except json.JSONDecodeError:
        return False
    return isinstance(entry, dict) and isinstance(entry.get("step"), int) and entry["step"] <= step

# SPDX-License-Identifier: Apache-2.0
"""Files that are whole or absent, and the disk's refusals as sentences."""

import contextlib
import errno
import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from diorama.errors import UserError

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}


@contextlib.contextmanager
def disk_errors(where: Path) -> Iterator[None]:
    """Turn a full or forbidden disk into a `UserError` about `where`."""
    try:
        yield
    except OSError as error:
        sentence = disk_sentence(error, where)
        if sentence is None:
            raise
        raise UserError(sentence) from error


def disk_sentence(error: OSError, where: Path, then: str = "") -> str | None:
    """What is wrong with the disk and what to do, or None if the error is of another kind."""
    place = Path(os.fsdecode(error.filename)) if error.filename else where
    if error.errno in FULL:
        trouble, fix = "the disk is full", "Free some space"
    elif error.errno in FORBIDDEN:
        trouble = "writing is not permitted"
        fix = "Change its permissions or choose another --output-dir"
    else:
        return None
    return f"{place}: {trouble}. {fix}{', then ' + then if then else '.'}"


def sync_folder(folder: Path) -> None:
    """Make renames inside `folder` survive a power cut, where the system can."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomically(path: Path, text: str) -> None:
    """Write a text file under a temporary name, sync it, and rename it into place."""
    temporary = path.with_name(f".{path.name}.partial")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def write_json(path: Path, data: Any) -> None:
    """Write plain data as JSON, atomically; numbers that are not finite become null."""
    write_atomically(path, json.dumps(finite(data), indent=2, ensure_ascii=False) + "\n")


def finite(data: Any) -> Any:
    """The data with NaN and infinities, which JSON does not have, replaced by None."""
    if isinstance(data, dict):
        return {key: finite(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def read_json(path: Path) -> dict[str, Any]:
    """An object from a JSON file, or a `UserError` that says what is wrong with the file."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file. Is this a Diorama run folder?") from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise UserError(f"{path}: not readable as JSON ({error}).") from error
    if not isinstance(data, dict):
        raise UserError(f"{path}: expected a JSON object.")
    return data

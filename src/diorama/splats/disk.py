# SPDX-License-Identifier: Apache-2.0
"""Whole files in and out; a disk's refusals and implausible sizes are one sentence each."""

import contextlib
import os
from pathlib import Path

from diorama.errors import UserError

MAX_FILE_BYTES = 16 * 2**30
# gzip cannot do better than 1:1032. Other packers can, on files of a few equal splats only.
_MAX_RATIO = 1032
_ALWAYS_FINE = 64 * 2**20


def read_file(path: Path) -> bytes:
    """The bytes of a regular file."""
    try:
        if not path.is_file():
            what = "a folder, not a file" if path.is_dir() else "no such file"
            raise UserError(f"{path}: {what}; check the name.")
        if path.stat().st_size > MAX_FILE_BYTES:
            raise UserError(f"{path}: larger than the {MAX_FILE_BYTES >> 30} GB that are read.")
        return path.read_bytes()
    except OSError as error:
        raise UserError(
            f"{path}: {error.strerror or error}; check that the file can be read."
        ) from error


def write_file(path: Path, data: bytes) -> None:
    """Write under a temporary name, sync, and rename: the file is whole or as it was before."""
    temporary = path.with_name(f".{path.name}.partial")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise UserError(
            f"{path}: {error.strerror or error}; choose a folder that exists, has space and can"
            " be written."
        ) from error


def check_inflation(path: Path, needed: int, present: int, max_ratio: int = _MAX_RATIO) -> None:
    """Refuse a file of `present` bytes that claims to unpack to an absurd number of bytes."""
    if needed > max(_ALWAYS_FINE, max_ratio * present):
        raise UserError(
            f"{path}: claims to unpack {present} bytes to {needed}, which no scene does; the file"
            " is damaged, so copy or export it again."
        )

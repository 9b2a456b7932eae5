# SPDX-License-Identifier: Apache-2.0
"""File names from a data set stay inside its folder; every disk error is one sentence."""

import errno
import os
import re
from pathlib import Path, PurePosixPath

from diorama.errors import UserError

IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff"})
MAX_NAME = 1024


def relative_name(name: object, where: str) -> str:
    """`name` with forward slashes and no `./`, refused when it could point out of its folder."""
    if not isinstance(name, str) or not name.strip():
        raise UserError(f"{where}: a file name must be a non-empty text, got {name!r:.60}.")
    if len(name) > MAX_NAME or "\0" in name:
        raise UserError(f"{where}: the file name {name!r:.60} is too long or not a file name.")
    clean = name.replace("\\", "/")
    path = PurePosixPath(clean)
    if path.is_absolute() or re.match(r"^[A-Za-z]:", clean) or ".." in path.parts:
        raise UserError(
            f"{where}: the file name {name!r} leads out of the data folder; use a name relative"
            " to that folder, without '..'."
        )
    if not path.parts:
        raise UserError(f"{where}: {name!r} names no file.")
    return path.as_posix()


def inside(root: Path, name: object, where: str) -> Path:
    """The path of `name` under `root`; links that the user put there are followed."""
    return root / relative_name(name, where)


def is_file(path: Path) -> bool:
    """Whether `path` is a regular file; pipes, devices and endless links are not."""
    try:
        return path.is_file()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return False
        raise disk_error(path, error) from error


def is_folder(path: Path) -> bool:
    """Whether `path` is a folder."""
    try:
        return path.is_dir()
    except OSError as error:
        raise disk_error(path, error) from error


def list_folder(folder: Path) -> list[Path]:
    """The entries of `folder`, sorted by name, hidden ones left out."""
    try:
        entries = sorted(os.listdir(folder))
    except OSError as error:
        raise disk_error(folder, error) from error
    return [folder / name for name in entries if not name.startswith(".")]


def list_images(folder: Path) -> list[Path]:
    """The image files directly in `folder`, sorted by name."""
    if not is_folder(folder):
        return []
    return [
        path
        for path in list_folder(folder)
        if path.suffix.lower() in IMAGE_SUFFIXES and is_file(path)
    ]


def read_bytes(path: Path, limit: int) -> bytes:
    """The whole of a regular file of at most `limit` bytes."""
    check_file(path, limit)
    try:
        return path.read_bytes()
    except OSError as error:
        raise disk_error(path, error) from error


def check_file(path: Path, limit: int) -> int:
    """The size of a regular file in bytes; refused when missing or larger than `limit`."""
    try:
        if not path.is_file():
            raise UserError(f"{path}: no such file, or not a regular one.")
        size = path.stat().st_size
    except OSError as error:
        raise disk_error(path, error) from error
    if size > limit:
        raise UserError(
            f"{path}: {size / 1e6:.0f} MB is more than the {limit / 1e6:.0f} MB we read."
        )
    return size


def disk_error(path: Path, error: OSError) -> UserError:
    """The sentence for a file that the system refuses to give."""
    if isinstance(error, PermissionError):
        return UserError(f"{path}: permission denied; make it readable for this user.")
    return UserError(f"{path}: {error.strerror or error}; check that the file is in order.")

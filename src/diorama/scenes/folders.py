# SPDX-License-Identifier: Apache-2.0
"""Folders that are either complete or absent: built aside, then moved into place."""

import errno
import json
import os
import shutil
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from diorama.errors import UserError

MANIFEST = "diorama_scene.json"
_ABANDONED_SECONDS = 24 * 3600


def cache_root() -> Path:
    """Where the user's cache keeps scenes: XDG_CACHE_HOME, else ~/.cache."""
    root = os.environ.get("XDG_CACHE_HOME") or ""
    # The XDG specification says that a relative path is to be ignored.
    base = Path(root) if os.path.isabs(root) else Path("~/.cache").expanduser()
    return base / "diorama" / "scenes"


def cache_folder(name: str, digest: str) -> Path:
    """The cached scene of this name and recipe; runs are filed under the last part, the name."""
    return cache_root() / digest / name


def build_once(target: Path, recipe: dict[str, Any], build: Callable[[Path], None]) -> Path:
    """``target``, filled by ``build`` unless it already holds what the recipe describes, undamaged.

    Two processes may race: both build aside, one moves its folder into place, the other finds it
    complete and drops its own.
    """
    if is_complete(target, recipe):
        return target
    if target.exists() and not _is_ours(target):
        raise UserError(
            f"{target} exists and is not a scene made by Diorama; name a new or empty folder."
        )
    aside = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(target)
        aside = Path(tempfile.mkdtemp(prefix=_aside_prefix(target), dir=target.parent))
        build(aside)
        _write_manifest(aside, recipe)
        aside.chmod(0o755)
        _move_into_place(aside, target, recipe)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(
            f"{target}: the scene could not be written ({reason}); free or choose another place "
            "with XDG_CACHE_HOME or a folder of your own."
        ) from error
    finally:
        if aside is not None:
            shutil.rmtree(aside, ignore_errors=True)
    return target


def is_complete(folder: Path, recipe: dict[str, Any]) -> bool:
    """Whether the manifest is of this recipe and every file it lists is there, bit for bit."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if manifest["recipe"] != recipe:
            return False
        return all(
            zlib.crc32((folder / name).read_bytes()) == crc
            for name, crc in manifest["crc32"].items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _write_manifest(folder: Path, recipe: dict[str, Any]) -> None:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    checks = {path.relative_to(folder).as_posix(): zlib.crc32(path.read_bytes()) for path in files}
    text = json.dumps({"recipe": recipe, "crc32": checks}, indent=1)
    (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")


def _is_ours(target: Path) -> bool:
    """Only a folder that is empty, that we made, or that has our cache name may be replaced."""
    if not target.is_dir() or target.is_symlink():
        return False
    in_cache = target.parent.parent == cache_root()
    return in_cache or (target / MANIFEST).is_file() or not any(target.iterdir())


def _move_into_place(aside: Path, target: Path, recipe: dict[str, Any]) -> None:
    for _ in range(8):
        try:
            aside.rename(target)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        if is_complete(target, recipe):
            return
        _discard(target)
    raise OSError(errno.EBUSY, "another process keeps replacing it")


def _discard(target: Path) -> None:
    """Move a damaged folder out of the way in one step, then delete it."""
    grave = Path(tempfile.mkdtemp(prefix=_aside_prefix(target), dir=target.parent))
    try:
        target.rename(grave / "damaged")
    except FileNotFoundError:
        pass
    finally:
        shutil.rmtree(grave, ignore_errors=True)


def _aside_prefix(target: Path) -> str:
    return f".{target.name}-building-"


def _remove_abandoned(target: Path) -> None:
    """What a killed process left behind, once it is old enough to be nobody's work."""
    for path in target.parent.glob(f"{_aside_prefix(target)}*"):
        if time.time() - path.stat().st_mtime > _ABANDONED_SECONDS:
            shutil.rmtree(path, ignore_errors=True)

# SPDX-License-Identifier: Apache-2.0
"""The checkpoints of a run: newest first, verified on reading, the oldest dropped on writing."""

import re
from pathlib import Path

from diorama.engine.checkpoint import (
    Checkpoint,
    CorruptCheckpoint,
    read_checkpoint,
    write_checkpoint,
)
from diorama.errors import UserError

_NAME = re.compile(r"step-(\d{9,})\.safetensors")


def checkpoint_name(step: int) -> str:
    """The file name of the checkpoint after `step` steps."""
    return f"step-{step:09d}.safetensors"


def list_checkpoints(folder: Path) -> list[Path]:
    """Checkpoint files, newest (most steps) first; files of other names are not looked at."""
    if not folder.is_dir():
        return []
    files = [path for path in folder.iterdir() if _NAME.fullmatch(path.name)]
    return sorted(files, key=step_of, reverse=True)


def step_of(path: Path) -> int:
    """The step in a checkpoint's file name."""
    match = _NAME.fullmatch(path.name)
    if match is None:
        raise UserError(f"{path}: a checkpoint is named {checkpoint_name(1000)}.")
    return int(match[1])


def save_checkpoint(checkpoint: Checkpoint, folder: Path, keep: int) -> Path:
    """Write the checkpoint, then drop all but the newest `keep` (at least the one just written)."""
    path = folder / checkpoint_name(checkpoint.step)
    write_checkpoint(checkpoint, path)
    for old in list_checkpoints(folder)[max(keep, 1) :]:
        if old.name != path.name:
            old.unlink(missing_ok=True)
    return path


def newest_checkpoint(folder: Path) -> tuple[Checkpoint, Path, list[str]]:
    """The newest whole checkpoint, its file, and a sentence for each newer one that is not."""
    broken: list[tuple[Path, CorruptCheckpoint]] = []
    for path in list_checkpoints(folder):
        try:
            checkpoint = read_checkpoint(path)
        except CorruptCheckpoint as error:
            broken.append((path, error))
            continue
        return (
            checkpoint,
            path,
            [f"{bad}: torn or corrupt ({why}); using the one before it." for bad, why in broken],
        )
    if broken:
        newest, why = broken[0]
        raise UserError(
            f"{folder}: none of the {len(broken)} checkpoints is usable, the newest is "
            f"{newest.name}: torn or corrupt ({why}). Train again."
        )
    raise UserError(f"{folder}: there is no checkpoint yet. Train the run first.")


def exact_checkpoint(path: Path) -> Checkpoint:
    """The checkpoint in one given file, or a `UserError` if it is not whole."""
    try:
        return read_checkpoint(path)
    except CorruptCheckpoint as error:
        raise UserError(f"{path}: torn or corrupt ({error}). Name the run folder instead to use "
                        "its newest whole checkpoint.") from error  # fmt: skip


def set_aside_newer(folder: Path, step: int) -> list[Path]:
    """Move checkpoints newer than `step` to set-aside/: a resumed run writes its own."""
    moved = []
    for path in list_checkpoints(folder):
        if step_of(path) > step:
            target = folder / "set-aside" / path.name
            target.parent.mkdir(exist_ok=True)
            moved.append(path.replace(target))
    return moved


def drop_all_but(folder: Path, kept: Path) -> None:
    """Remove every checkpoint except `kept` (after a dead start, which nobody wants back)."""
    for path in list_checkpoints(folder):
        if path.name != kept.name:
            path.unlink(missing_ok=True)

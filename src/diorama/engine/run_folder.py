# SPDX-License-Identifier: Apache-2.0
"""A run's folder: made once, never overwritten, found again wherever it was moved."""

import re
import time
from dataclasses import dataclass
from pathlib import Path

from diorama.engine.checkpoint_folder import list_checkpoints
from diorama.engine.disk import disk_errors
from diorama.errors import UserError


@dataclass(frozen=True)
class RunFolder:
    """Where the parts of a run lie, all relative to `path`."""

    path: Path

    @property
    def config_file(self) -> Path:
        """The method and every option."""
        return self.path / "config.json"

    @property
    def scene_file(self) -> Path:
        """Cameras, splits, bounds and normalisation: enough to render without the data."""
        return self.path / "scene.json"

    @property
    def checkpoints(self) -> Path:
        """The folder of checkpoints."""
        return self.path / "checkpoints"

    @property
    def best(self) -> Path:
        """The folder of the checkpoint that looked best (--log.keep-best)."""
        return self.path / "best"

    @property
    def metrics_file(self) -> Path:
        """The result of the last full evaluation."""
        return self.path / "metrics.json"

    @property
    def eval_images_file(self) -> Path:
        """The names of the held-out images, written before training starts."""
        return self.path / "eval_images.json"

    @property
    def log_file(self) -> Path:
        """The JSONL log."""
        return self.path / "log.jsonl"

    @property
    def tensorboard(self) -> Path:
        """TensorBoard's event files."""
        return self.path / "tensorboard"

    @property
    def renders(self) -> Path:
        """Images and videos rendered from this run."""
        return self.path / "renders"


@dataclass(frozen=True)
class FoundRun:
    """A run that exists: its folder, the checkpoint the user named if any, and what to say."""

    folder: RunFolder
    checkpoint: Path | None = None
    notes: tuple[str, ...] = ()


def create_run(output_dir: Path, scene: str, method: str, name: str | None) -> RunFolder:
    """Make OUTPUT_DIR/<scene>/<method>/<name or time>/; an existing run is never touched."""
    if name is not None and name != _folder_name(name):
        raise UserError(f"--name {name}: use a plain folder name, without separators.")
    parent = output_dir.absolute() / _folder_name(scene) / _folder_name(method)
    with disk_errors(parent):
        try:
            parent.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise UserError(
                f"{parent}: a file is in the way; choose another --output-dir."
            ) from None
        path = _new_folder(parent, name)
        RunFolder(path).checkpoints.mkdir()
    return RunFolder(path)


def _new_folder(parent: Path, name: str | None) -> Path:
    if name is not None:
        path = parent / name
        try:
            path.mkdir()
        except FileExistsError:
            raise UserError(
                f"{path}: this run exists already. Choose another --name, or go on with it: "
                f"diorama resume {path}"
            ) from None
        return path
    stamp = time.strftime("%Y-%m-%d_%H%M%S")
    for attempt in range(1, 1000):
        path = parent / (stamp if attempt == 1 else f"{stamp}-{attempt}")
        try:
            path.mkdir()
            return path
        except FileExistsError:  # two runs started within one second
            continue
    raise UserError(f"{parent}: could not make a new run folder; give the run a --name.")


def _folder_name(text: str) -> str:
    """`text` as one harmless folder name."""
    return re.sub(r'[\x00-\x1f/\\:*?"<>|]', "_", text).strip(". ") or "unnamed"


def find_run(path: Path) -> FoundRun:
    """The run that `path` means: its folder, its config.json, one of its checkpoints, or a
    folder above several runs, of which the one worked on last is taken, with a note."""
    path = path.expanduser().absolute()
    try:
        return _find(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be opened ({error.strerror}).") from error


def _find(path: Path) -> FoundRun:
    if not path.exists():
        raise UserError(f"{path}: no such run folder.")
    if path.is_file():
        if path.name == "config.json":
            return FoundRun(RunFolder(path.parent))
        if path.suffix == ".safetensors":
            for folder in path.parents[:3]:
                if (folder / "config.json").is_file():
                    return FoundRun(RunFolder(folder), path)
        raise UserError(f"{path}: name a run folder, its config.json or one of its checkpoints.")
    for folder in (path, path.parent):
        # The second look is for RUN/checkpoints.
        if (folder / "config.json").is_file() and (folder == path or path.name == "checkpoints"):
            return FoundRun(RunFolder(folder))
    runs = [RunFolder(config.parent) for depth in range(1, 4)
            for config in path.glob("/".join(["*"] * depth) + "/config.json")]  # fmt: skip
    if not runs:
        raise UserError(f"{path}: no run in here (a run folder holds a config.json).")
    newest = max(runs, key=_last_touched)
    note = f"{path} holds {len(runs)} runs; taking the latest, {newest.path}"
    return FoundRun(newest, notes=(note,) if len(runs) > 1 else ())


def _last_touched(run: RunFolder) -> tuple[bool, float, str]:
    checkpoints = list_checkpoints(run.checkpoints)
    newest = max((p.stat().st_mtime for p in [*checkpoints, run.config_file]), default=0.0)
    return bool(checkpoints), newest, run.path.name

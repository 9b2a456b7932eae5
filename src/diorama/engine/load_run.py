# SPDX-License-Identifier: Apache-2.0
"""A trained run opened again: for rendering without its data, or for evaluation with it."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diorama.config import TrainerConfig
from diorama.data.load import load_scene
from diorama.data.scene import Scene
from diorama.engine.checkpoint import Checkpoint, load_model_state
from diorama.engine.checkpoint_folder import exact_checkpoint, newest_checkpoint
from diorama.engine.device import choose_device
from diorama.engine.disk import disk_errors, read_json
from diorama.engine.evaluate import EvaluatedImage, evaluate
from diorama.engine.metrics_file import write_metrics
from diorama.engine.pipeline import Pipeline
from diorama.engine.rng import preserved_rng, seed_everything
from diorama.engine.run_config import DefaultFor, read_config, registered_default
from diorama.engine.run_folder import FoundRun, RunFolder, find_run
from diorama.engine.state import RunState, state_of
from diorama.errors import UserError
from diorama.model import Model


@dataclass(frozen=True)
class LoadedRun:
    """A trained model with what it was trained on; `notes` are sentences for the user."""

    folder: RunFolder
    config: TrainerConfig
    scene: Scene
    model: Model
    step: int
    state: RunState
    notes: tuple[str, ...]


def load_run(
    path: Path, device: str = "auto", default_for: DefaultFor = registered_default
) -> LoadedRun:
    """The run at `path` (folder, config.json, checkpoint, or a folder above), ready to render.

    The scene comes from the run folder: the data set need not be there.
    """
    found, config, checkpoint, source, notes = _open(path, default_for)
    scene = Scene.from_plain(read_json(found.folder.scene_file), str(found.folder.scene_file))
    with preserved_rng():
        seed_everything(config.seed)
        model: Model = config.model.setup(scene=scene).to(choose_device(device))
    state = state_of(checkpoint, config)
    _fill(model, checkpoint, source, config, state)
    return LoadedRun(found.folder, config, scene, model, checkpoint.step, state, notes)


def evaluate_run(
    path: Path,
    data: Path | None = None,
    device: str = "auto",
    split: str | None = None,
    on_image: Callable[[EvaluatedImage], None] | None = None,
    on_note: Callable[[str], None] | None = None,
    scene: Scene | None = None,
    default_for: DefaultFor = registered_default,
) -> dict[str, Any]:
    """Measure a run on its held-out images, write its metrics.json, and return the content.

    `data` says where the data set lies now if it moved alone.
    """
    found, config, checkpoint, source, notes = _open(path, default_for)
    if on_note is not None:
        for note in notes:
            on_note(note)
    if data is not None:
        config = dataclasses.replace(config, data=dataclasses.replace(config.data, path=data))
    scene = load_scene(config.data) if scene is None else scene
    with preserved_rng():
        seed_everything(config.seed)
        pipeline = Pipeline(
            config.pipeline, scene, config.seed, choose_device(device), is_new=False
        )
    state = state_of(checkpoint, config)
    _fill(pipeline.model, checkpoint, source, config, state)
    if split is not None and not pipeline.held_out_names(split):
        raise UserError(f"{scene.root}: the split '{split}' has no images.")
    evaluation = evaluate(pipeline, split, on_image=on_image)
    with disk_errors(found.folder.path):
        return write_metrics(found.folder, config, state.facts(), evaluation)


def _open(
    path: Path, default_for: DefaultFor
) -> tuple[FoundRun, TrainerConfig, Checkpoint, Path, tuple[str, ...]]:
    found = find_run(path)
    config, warnings = read_config(found.folder, default_for)
    if found.checkpoint is not None:
        checkpoint, source, torn = exact_checkpoint(found.checkpoint), found.checkpoint, []
    else:
        checkpoint, source, torn = newest_checkpoint(found.folder.checkpoints)
    return found, config, checkpoint, source, (*found.notes, *warnings, *torn)


def _fill(
    model: Model, checkpoint: Checkpoint, source: Path, config: TrainerConfig, state: RunState
) -> None:
    load_model_state(model, checkpoint.model, source)
    model.max_steps = config.max_steps if state.planned_steps is None else state.planned_steps
    model.squeeze = model.max_steps / config.max_steps
    model.eval()

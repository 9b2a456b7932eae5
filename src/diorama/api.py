# SPDX-License-Identifier: Apache-2.0
"""The small Python API: train a config, open a run, render a camera."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from diorama.cameras import Cameras
from diorama.config import TrainerConfig
from diorama.data.scene import Scene
from diorama.engine.load_run import load_run
from diorama.engine.trainer import Trainer
from diorama.errors import UserError
from diorama.methods.registry import method_config
from diorama.model import Model, RenderOutput
from diorama.scenes.locate import data_folder

__all__ = ["LoadedRun", "load", "method_config", "train"]


@dataclass(frozen=True)
class LoadedRun:
    """A trained run: its model ready to render, its scene, its config."""

    path: Path
    config: TrainerConfig
    scene: Scene
    model: Model
    step: int

    def render(self, camera: Cameras) -> RenderOutput:
        """The view of a camera given in the scene's normalised frame.

        `run.scene.cameras[i]` are such cameras; a camera in the user's own coordinates is
        brought there by `camera.transformed(run.scene.scene_from_user)`.
        """
        return self.model.render(camera)


def load(run: str | Path, device: str = "auto") -> LoadedRun:
    """Open a run folder (or one of its checkpoints); its data set need not be there.

    >>> run = diorama.load("outputs/tabletop/nerf-small/first")
    >>> run.render(run.scene.cameras[0]).rgb.shape
    """
    loaded = load_run(Path(run), device)
    return LoadedRun(loaded.folder.path, loaded.config, loaded.scene, loaded.model, loaded.step)


def train(config: TrainerConfig | str, data: str | Path | None = None) -> LoadedRun:
    """Train a config, or a method by its name, and open the result.

    >>> run = diorama.train("nerf-small", data="scene:tabletop")
    """
    if isinstance(config, str):
        config = method_config(config)
    path = config.data.path if data is None else Path(data)
    if path is None:
        raise UserError("train on what? Give data=..., the data set's folder.")
    config = dataclasses.replace(
        config, data=dataclasses.replace(config.data, path=data_folder(path))
    )
    return load(Trainer(config).train(), config.device)

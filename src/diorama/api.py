# SPDX-License-Identifier: Apache-2.0
"""The small Python API: train a config, open a run or a splat file, render a camera."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from diorama.cameras import Cameras
from diorama.config import TrainerConfig
from diorama.data.scene import Scene
from diorama.engine.device import choose_device
from diorama.engine.load_run import load_run
from diorama.engine.trainer import Trainer
from diorama.errors import UserError
from diorama.methods.registry import method_config
from diorama.model import Model, RenderOutput
from diorama.scenes.locate import data_folder
from diorama.splats import SUFFIXES, read_splats

__all__ = ["LoadedRun", "load", "method_config", "train"]


@dataclass(frozen=True)
class LoadedRun:
    """A trained run: its model ready to render, its scene, its config.

    Of a splat file, `path` is the file and the scene is made up around the splats.
    """

    path: Path
    config: TrainerConfig
    scene: Scene
    model: Model
    step: int
    notes: tuple[str, ...] = ()
    """Sentences for the user: which run was taken, what of a file was left out."""

    def render(self, camera: Cameras) -> RenderOutput:
        """The view of a camera given in the scene's normalised frame.

        `run.scene.cameras[i]` are such cameras; a camera in the user's own coordinates is
        brought there by `camera.transformed(run.scene.scene_from_user)`.
        """
        return self.model.render(camera)


def load(run: str | Path, device: str = "auto", up: str = "-y") -> LoadedRun:
    """Open a run folder (or one of its checkpoints), or a splat file (.ply, .splat, .spz, ...).

    The data set of a run need not be there. `up` is the axis of a splat file that points up.

    >>> run = diorama.load("outputs/tabletop/nerf-small/first")
    >>> run.render(run.scene.cameras[0]).rgb.shape
    """
    if str(run).lower().endswith(SUFFIXES) and not Path(run).is_dir():
        return _load_splats(Path(run).absolute(), device, up)
    loaded = load_run(Path(run), device)
    return LoadedRun(
        loaded.folder.path, loaded.config, loaded.scene, loaded.model, loaded.step, loaded.notes
    )


def _load_splats(path: Path, device: str, up: str) -> LoadedRun:
    from diorama.methods.splat.presets import splat
    from diorama.methods.splat.still import StillSplats
    from diorama.methods.splat.still_scene import scene_of_splats

    splats = read_splats(path)
    scene = scene_of_splats(splats, path, up)
    model = StillSplats(splats, scene).to(choose_device(device)).eval()
    config = dataclasses.replace(splat(), model=model.config)
    return LoadedRun(path, config, scene, model, 0, splats.notes)


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

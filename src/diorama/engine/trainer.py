# SPDX-License-Identifier: Apache-2.0
"""The Trainer: from a config, or a run folder, to a trained and evaluated run folder."""

import time
from collections.abc import Callable
from pathlib import Path

from diorama.config import TrainerConfig, to_plain
from diorama.data.load import load_scene
from diorama.data.scene import Scene
from diorama.engine.check_config import check_config
from diorama.engine.checkpoint import Checkpoint
from diorama.engine.checkpoint_folder import (
    exact_checkpoint,
    list_checkpoints,
    newest_checkpoint,
    set_aside_newer,
)
from diorama.engine.device import choose_device, use_threads
from diorama.engine.disk import disk_errors, read_json, write_json
from diorama.engine.failures import training_errors
from diorama.engine.logs import AllLogs, JsonlLog, RunLog
from diorama.engine.loop import TrainingLoop
from diorama.engine.metrics_file import write_metrics
from diorama.engine.optimizers import Optimizers, optimizers_of
from diorama.engine.pipeline import Pipeline
from diorama.engine.progress import Reporter, make_reporter
from diorama.engine.rng import seed_everything
from diorama.engine.run_config import (
    DefaultFor,
    read_config,
    registered_default,
    with_absolute_data,
    write_config,
)
from diorama.engine.run_folder import FoundRun, RunFolder, create_run, find_run
from diorama.engine.signals import stop_on_signals
from diorama.engine.state import RunState, restore, state_of
from diorama.engine.tensorboard_log import TensorBoardLog
from diorama.engine.wandb_log import WandbLog
from diorama.errors import UserError

Configure = Callable[[TrainerConfig], TrainerConfig]


class Trainer:
    """Trains what a config describes; `resume` goes on with a run that was begun before.

    `scene` spares reading the data set again when the caller has it. Both ways raise `UserError`
    for what the user can mend and `Interrupted` after a signal, with everything saved.
    """

    def __init__(
        self,
        config: TrainerConfig,
        scene: Scene | None = None,
        reporter: Reporter | None = None,
    ):
        check_config(config)
        self.config = with_absolute_data(config)
        self.reporter = make_reporter(config.quiet) if reporter is None else reporter
        self._scene = scene

    def train(self) -> Path:
        """Train a new run to its end, evaluate it, and return its folder."""
        begun = time.perf_counter()
        with training_errors(None):
            pipeline, optimizers = self._build(is_new=True)
        scene = pipeline.scene
        for note in (*scene.notes, *pipeline.model.notes):
            self.reporter.message(note)
        run = create_run(self.config.output_dir, scene.name, self.config.method, self.config.name)
        with disk_errors(run.path):
            write_config(self.config, run)
            write_json(run.scene_file, scene.to_plain())
            split = pipeline.held_out_split()
            names = pipeline.held_out_names(split)
            write_json(run.eval_images_file, {"split": split, "images": names})
        state = RunState.start(self.config)
        # Reading the data and making the first model is time that the user waits for.
        state.seconds = time.perf_counter() - begun
        return self._run(TrainingLoop(self.config, pipeline, optimizers, state, run))

    @staticmethod
    def resume(
        path: Path,
        configure: Configure | None = None,
        scene: Scene | None = None,
        reporter: Reporter | None = None,
        default_for: DefaultFor = registered_default,
    ) -> Path:
        """Go on with the run at `path` exactly where its newest whole checkpoint was taken.

        `configure` may change options first (more steps, moved data, another device); the
        changed config replaces the run's config.json. A checkpoint file as `path` goes on from
        that one, and later ones are set aside.
        """
        found = find_run(path)
        before, warnings = read_config(found.folder, default_for)
        config = before if configure is None else configure(before)
        if (config.seed, config.method) != (before.seed, before.method):
            raise UserError("--seed and the method of a run are fixed; train a new run instead.")
        trainer = Trainer(config, scene, reporter)
        for text in (*found.notes, *warnings):
            trainer.reporter.message(text)
        return trainer._resume(found, before)

    def _resume(self, found: FoundRun, before: TrainerConfig) -> Path:
        run = found.folder
        loaded = self._checkpoint_of(found)
        with training_errors(run):
            pipeline, optimizers = self._build(is_new=loaded is None)
            self._warn_if_data_changed(pipeline.scene, run)
            state = RunState.start(self.config)
            if loaded is not None:
                restore(*loaded, pipeline, optimizers)
                state = state_of(loaded[0], self.config)
                for path in set_aside_newer(run.checkpoints, state.step):
                    self.reporter.message(f"set aside {path}")
            if self.config != before:
                write_config(self.config, run)
        end = "its plan" if state.planned_steps is None else f"step {state.planned_steps}"
        self.reporter.message(f"resuming {run.path} at step {state.step}, up to {end}")
        return self._run(TrainingLoop(self.config, pipeline, optimizers, state, run))

    def _checkpoint_of(self, found: FoundRun) -> tuple[Checkpoint, Path] | None:
        """The checkpoint to go on from; None if the run was killed before it wrote the first."""
        if found.checkpoint is not None:
            return exact_checkpoint(found.checkpoint), found.checkpoint
        if not list_checkpoints(found.folder.checkpoints):
            return None
        checkpoint, path, warnings = newest_checkpoint(found.folder.checkpoints)
        for text in warnings:
            self.reporter.message(text)
        return checkpoint, path

    def _build(self, is_new: bool) -> tuple[Pipeline, Optimizers]:
        config = self.config
        use_threads(config.threads)
        device = choose_device(config.device)
        scene = load_scene(config.data) if self._scene is None else self._scene
        seed_everything(config.seed)
        pipeline = Pipeline(config.pipeline, scene, config.seed, device, is_new)
        return pipeline, optimizers_of(pipeline.model, config.optim)

    def _run(self, loop: TrainingLoop) -> Path:
        run = loop.run
        with training_errors(run), self.reporter.session(), stop_on_signals() as stop:
            loop.reporter, loop.stop = self.reporter, stop
            loop.log = self._open_logs(run, loop.state.step)
            try:
                loop.train()
                evaluation = loop.evaluate_all()
                write_metrics(run, self.config, loop.state.facts(), evaluation)
            finally:
                loop.log.close()
        means = "  ".join(f"{name} {value:.4g}" for name, value in evaluation.means.items())
        count = len(evaluation.images)
        held_out = f"held-out ({count} images) {means}" if count else "no image was held out"
        self.reporter.message(f"trained {loop.state.step} steps; {held_out}")
        return run.path

    def _open_logs(self, run: RunFolder, step: int) -> RunLog:
        logs: list[RunLog] = [JsonlLog(run.log_file, step)]
        if self.config.log.wandb:
            logs.append(WandbLog(run.path, run.path.name, to_plain(self.config)))
        if self.config.log.tensorboard:
            logs.append(TensorBoardLog(run.tensorboard, step))
        return AllLogs(logs)

    def _warn_if_data_changed(self, scene: Scene, run: RunFolder) -> None:
        stored = read_json(run.scene_file)
        plain = scene.to_plain()
        for key in ("frames", "splits", "scene_from_user", "cameras"):
            if plain[key] != stored.get(key):
                if key == "scene_from_user":
                    raise UserError(
                        f"{scene.root}: the data set is normalised differently than when "
                        f"{run.path} was begun; restore the data, or train a new run."
                    )
                self.reporter.message(
                    f"{scene.root}: {key} of the data set changed since this run was begun; "
                    "the result will differ from an uninterrupted run."
                )

# SPDX-License-Identifier: Apache-2.0
"""The training loop: steps, and between them callbacks, logs, evaluations and checkpoints."""

import time

import torch

from diorama.config import TrainerConfig
from diorama.engine.best import keep_if_best
from diorama.engine.checkpoint_folder import drop_all_but, save_checkpoint
from diorama.engine.disk import disk_errors
from diorama.engine.evaluate import EvaluatedImage, Evaluation, evaluate
from diorama.engine.failures import check_finite_state
from diorama.engine.logs import RunLog
from diorama.engine.optimizers import Optimizers, optimizers_of
from diorama.engine.pipeline import Pipeline
from diorama.engine.planner import Decision, Planner
from diorama.engine.progress import Reporter, StepReport
from diorama.engine.rng import derived_seed, preserved_rng
from diorama.engine.run_folder import RunFolder
from diorama.engine.signals import Interrupted, StopRequest
from diorama.engine.speed import Speed, Stopwatch, seconds_of
from diorama.engine.state import RunState, to_checkpoint
from diorama.engine.step import StepResult, train_step
from diorama.engine.time_budget import Costs
from diorama.errors import UserError

MAX_RESTARTS = 5
THUMBNAIL = 8
"""A probe for the time of an evaluation renders an image at this fraction of its size."""


class TrainingLoop:
    """Brings a run from where it stands to its last step."""

    def __init__(
        self,
        config: TrainerConfig,
        pipeline: Pipeline,
        optimizers: Optimizers,
        state: RunState,
        run: RunFolder,
    ):
        self.config = config
        self.pipeline = pipeline
        self.optimizers = optimizers
        self.state = state
        self.run = run
        self.reporter = Reporter()
        self.log = RunLog()
        self.stop = StopRequest()
        self._callbacks = pipeline.model.get_callbacks()
        self._generator = torch.Generator(pipeline.device)
        self._saved_step = -1
        self._last_save = time.perf_counter()
        self._clock = Stopwatch(state)
        self._speed = Speed()
        self._planner = self._new_planner()

    @property
    def end(self) -> int:
        """The step at which every schedule ends."""
        planned = self.state.planned_steps
        return self.config.max_steps if planned is None else planned

    def train(self) -> None:
        """All remaining steps; the last checkpoint is on disk when this returns."""
        state = self.state
        self._clock.start()
        self._tell_model()
        self.pipeline.model.watch(self.log)
        if state.step == 0:
            self.save()
        while state.step < self.end:
            result = self._step()
            if self._restart_if_dead():
                continue
            self._after(result)
            self._raise_if_stopped()
        if not state.is_finished:
            self._call("after-training")
            state.is_finished = True
            self._saved_step = -1  # callbacks may have changed the model
            self.save()

    def save(self) -> None:
        """Write a checkpoint of this step, unless there is one."""
        if self._saved_step == self.state.step:
            return
        self._clock.note()
        checkpoint = to_checkpoint(self.state, self.config, self.pipeline, self.optimizers)
        names = {name for name, _ in self.pipeline.model.named_parameters()}
        check_finite_state(checkpoint, names, self.run)
        save_checkpoint(checkpoint, self.run.checkpoints, self.config.log.keep)
        self._saved_step = self.state.step
        self._last_save = time.perf_counter()

    def _step(self) -> StepResult:
        state, model = self.state, self.pipeline.model
        started = time.perf_counter()
        self._call("before-step")
        result = train_step(
            self.config, self.pipeline, self.optimizers, self.run, self._generator,
            step=state.step, end=self.end, restarts=state.restarts,
            before_update=lambda: self._call("before-update"),
        )  # fmt: skip
        self._call("after-step")
        manager = self.pipeline.datamanager
        manager.num_rays = model.next_num_rays(manager.num_rays)
        state.step += 1
        elapsed = time.perf_counter() - started
        self._speed.note(elapsed, result.num_rays)
        if self._planner is not None:
            self._planner.note_step(state.step - 1, elapsed)
        return result

    def _after(self, result: StepResult) -> None:
        """What is due after a step; logs come first, so that a checkpoint's step is logged."""
        state, log = self.state, self.config.log
        self._clock.note()
        if state.step % log.every == 0 or state.step == self.end:
            speed = {"rays_per_second": self._speed.rays_per_second, "seconds": state.seconds}
            self.log.scalars(state.step, "train", result.scalars() | speed)
        self._report(result)
        if self._planner is not None:
            decision = self._planner.decide(state, self._measured_costs)
            if decision is not None:
                self._carry_out(decision)
        is_regular = state.eval_every > 0 and state.step % state.eval_every == 0
        if (is_regular or state.step in log.eval_at) and state.step < self.end:
            self._evaluate_some()
        minutes = (time.perf_counter() - self._last_save) / 60
        is_due = state.step % log.save_every == 0 or minutes >= log.save_minutes
        if is_due and state.step < self.end:  # the last one is written after the callbacks
            self.save()

    def _report(self, result: StepResult) -> None:
        step, end = self.state.step, self.end
        if step < end and not self._speed.is_time_to_report():
            return
        left = (end - step) * self._speed.step_seconds
        if self._planner is not None:
            left = min(left, self._planner.seconds_left(self.state.seconds))
        report = StepReport(step, end, result.loss, result.psnr, self._speed.rays_per_second, left)
        self.reporter.update(report)

    def _evaluate_some(self) -> None:
        """A cheap look at held-out images, always the same ones; a signal cuts it short."""
        split = self.pipeline.held_out_split()
        if split is None:
            return
        count = len(self.pipeline.held_out_names(split))
        wanted = min(max(self.config.log.eval_images, 0), count)
        positions = [i * count // wanted for i in range(wanted)]

        def show(image: EvaluatedImage) -> None:
            self.log.image(self.state.step, f"eval/{image.name}", image.output.rgb)
            if self.stop:
                raise _CutShort

        try:
            evaluation = evaluate(self.pipeline, split, positions, show)
        except _CutShort:
            return
        if evaluation.images:
            self.log.scalars(self.state.step, "eval", evaluation.means)
            means = "  ".join(f"{k} {v:.4g}" for k, v in evaluation.means.items())
            self.reporter.message(f"step {self.state.step}: held-out {means}")
            if self.config.log.keep_best and "psnr" in evaluation.means:
                self._keep_if_best(evaluation.means["psnr"])

    def _keep_if_best(self, psnr: float) -> None:
        self._clock.note()
        checkpoint = to_checkpoint(self.state, self.config, self.pipeline, self.optimizers)
        with disk_errors(self.run.path):
            keep_if_best(checkpoint, psnr, self.run)

    def evaluate_all(self) -> Evaluation:
        """Every held-out image, after training; a signal ends it, the run stays resumable."""
        total = len(self.pipeline.held_out_names(self.pipeline.held_out_split()))
        done = 0

        def show(image: EvaluatedImage) -> None:
            nonlocal done
            done += 1
            self.reporter.evaluating(done, total)
            if done <= max(self.config.log.eval_images, 1):
                self.log.image(self.state.step, f"eval/{image.name}", image.output.rgb)
            self._raise_if_stopped()

        evaluation = evaluate(self.pipeline, on_image=show)
        if evaluation.images:
            self.log.scalars(self.state.step, "final-eval", evaluation.means)
        return evaluation

    def _raise_if_stopped(self) -> None:
        if self.stop.signal_number is not None:
            self.save()
            raise Interrupted(self.run.path, self.stop.signal_number, self.state.step)

    def _call(self, where: str) -> None:
        for callback in self._callbacks:
            if callback.where == where and (
                where == "after-training" or self.state.step % callback.every == 0
            ):
                callback.call(self.state.step)

    def _tell_model(self) -> None:
        self.pipeline.model.max_steps = self.end
        self.pipeline.model.squeeze = self.end / self.config.max_steps

    def _new_planner(self) -> Planner | None:
        minutes, cost = self.config.max_minutes, self.pipeline.model.step_cost
        return None if minutes is None else Planner(self.config, minutes, self.state, cost)

    def _measured_costs(self) -> Costs:
        """What an evaluation and a checkpoint take, by making them."""
        log = self.config.log
        eval_seconds = seconds_of(self._render_thumbnail) * THUMBNAIL**2
        self._saved_step = -1
        save_seconds = seconds_of(self.save)
        self._clock.note()
        return Costs(
            eval_seconds * log.eval_images, log.eval_every,
            save_seconds, log.save_every, log.save_minutes,
        )  # fmt: skip

    def _carry_out(self, decision: Decision) -> None:
        """Let everything end after so many steps, and make it durable."""
        state = self.state
        state.planned_steps, state.eval_every = decision.steps, decision.eval_every
        self._tell_model()
        self.log.scalars(state.step, "plan", {"planned_steps": decision.steps} | decision.facts)
        self.reporter.message(decision.sentence)
        self._saved_step = -1
        self.save()

    def _render_thumbnail(self) -> None:
        split = self.pipeline.held_out_split()
        if split is None or self.config.log.eval_every <= 0:
            return
        index = self.pipeline.datamanager.eval_indices(split)[0]
        camera = self.pipeline.scene.cameras[index].rescaled(1 / THUMBNAIL)
        with preserved_rng(), torch.no_grad():
            self.pipeline.model.render(camera.to(self.pipeline.device))

    def _restart_if_dead(self) -> bool:
        """Begin anew with other weights if the model says that this start is dead."""
        state, model = self.state, self.pipeline.model
        sentence = model.dead_start(state.step)
        if sentence is None:
            return False
        if state.restarts == MAX_RESTARTS:
            raise UserError(
                f"training started dead {MAX_RESTARTS + 1} times ({sentence}); check near and far "
                "with diorama inspect, or try another --seed."
            )
        state.restarts += 1
        self.reporter.message(f"step {state.step}: {sentence}; starting again with new weights.")
        found_at, state.step = state.step, 0
        self._generator.manual_seed(derived_seed(self.config.seed, "restart", state.restarts))
        model.reinitialize(self._generator)
        self.optimizers = optimizers_of(model, self.config.optim)
        self.pipeline.datamanager.restart()
        if self.config.max_minutes is not None:
            self._clock.note()
            state.planned_steps = None
            self._planner = self._new_planner()
            self._tell_model()
        self._saved_step = -1
        self.save()
        drop_all_but(self.run.checkpoints, self.run.checkpoints / "step-000000000.safetensors")
        self.log.rewind(0)
        facts = {"restarts": state.restarts, "found_at": found_at, "reason": sentence}
        self.log.scalars(0, "restart", facts)
        return True


class _CutShort(Exception):
    """A signal came while evaluating."""

# SPDX-License-Identifier: Apache-2.0
"""The counters of a run, and the passage of a whole run into a checkpoint and back."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from diorama.config import TrainerConfig
from diorama.engine.checkpoint import Checkpoint, load_model_state, model_state
from diorama.engine.metrics_file import RunFacts
from diorama.engine.optimizers import Optimizers
from diorama.engine.pipeline import Pipeline
from diorama.engine.rng import restore_rng, rng_plain, rng_tensors
from diorama.engine.versions import peak_memory_mb, versions


@dataclass
class RunState:
    """Where a run stands; `planned_steps` is None until a time budget has fixed it."""

    step: int
    planned_steps: int | None
    eval_every: int
    restarts: int = 0
    seconds: float = 0.0
    peak_memory_mb: float = 0.0
    is_finished: bool = False
    """Whether the callbacks after training have run."""

    @staticmethod
    def start(config: TrainerConfig) -> "RunState":
        """The state before the first step."""
        planned = config.max_steps if config.max_minutes is None else None
        return RunState(0, planned, config.log.eval_every)

    def facts(self) -> RunFacts:
        """What metrics.json reports of the training."""
        planned = self.step if self.planned_steps is None else self.planned_steps
        return RunFacts(self.step, planned, self.seconds, self.peak_memory_mb, self.restarts)


def to_checkpoint(
    state: RunState, config: TrainerConfig, pipeline: Pipeline, optimizers: Optimizers
) -> Checkpoint:
    """Everything that the next step depends on; tensors are not copied."""
    state.peak_memory_mb = max(state.peak_memory_mb, peak_memory_mb())
    data = pipeline.datamanager.state_dict()
    return Checkpoint(
        step=state.step,
        model=model_state(pipeline.model),
        optimizer=optimizers.state_dict(),
        data={key: value for key, value in data.items() if isinstance(value, Tensor)},
        rng=rng_tensors(),
        plain={
            "method": config.method,
            "plan_for": _plan_for(config),
            "planned_steps": state.planned_steps,
            "eval_every": state.eval_every,
            "is_finished": state.is_finished,
            "restarts": state.restarts,
            "seconds": state.seconds,
            "peak_memory_mb": state.peak_memory_mb,
            "data": {key: value for key, value in data.items() if not isinstance(value, Tensor)},
            "rng": rng_plain(),
            "scene_from_user": pipeline.scene.scene_from_user.to_plain(),
            "versions": versions(),
        },
    )


def _plan_for(config: TrainerConfig) -> list[int | float | None]:
    """The options that a plan holds for; where they change, a new plan is made."""
    return [config.max_steps, config.max_minutes, config.log.eval_every]


def state_of(checkpoint: Checkpoint, config: TrainerConfig) -> RunState:
    """The counters in a checkpoint, with a new plan if `config` now asks for another length."""
    plain: dict[str, Any] = checkpoint.plain
    state = RunState(
        step=checkpoint.step,
        planned_steps=plain["planned_steps"],
        eval_every=plain["eval_every"],
        restarts=plain["restarts"],
        seconds=plain["seconds"],
        peak_memory_mb=plain["peak_memory_mb"],
        is_finished=plain["is_finished"],
    )
    if plain["plan_for"] != _plan_for(config):
        fresh = RunState.start(config)
        state.planned_steps, state.eval_every = fresh.planned_steps, fresh.eval_every
        state.is_finished = False
    return state


def restore(
    checkpoint: Checkpoint, source: Path, pipeline: Pipeline, optimizers: Optimizers
) -> None:
    """Put a run's parts back to where the checkpoint was taken."""
    load_model_state(pipeline.model, checkpoint.model, source)
    optimizers.load_state_dict(checkpoint.optimizer)
    pipeline.datamanager.load_state_dict({**checkpoint.plain["data"], **checkpoint.data})
    restore_rng(checkpoint.rng, checkpoint.plain["rng"])

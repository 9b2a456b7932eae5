# SPDX-License-Identifier: Apache-2.0
"""metrics.json: the result of a run, with all that is needed to compare it with another."""

from dataclasses import dataclass
from typing import Any

from diorama.config import TrainerConfig
from diorama.engine.disk import write_json
from diorama.engine.evaluate import Evaluation
from diorama.engine.run_folder import RunFolder
from diorama.engine.versions import versions


@dataclass(frozen=True)
class RunFacts:
    """What metrics.json says about the training behind the numbers."""

    step: int
    planned_steps: int
    seconds: float
    peak_memory_mb: float
    restarts: int


def metrics_content(
    config: TrainerConfig, facts: RunFacts, evaluation: Evaluation
) -> dict[str, Any]:
    """The content of metrics.json as plain data."""
    return {
        "schema_version": 1,
        "method": config.method,
        "data": None if config.data.path is None else config.data.path.as_posix(),
        "step": facts.step,
        "planned_steps": facts.planned_steps,
        "max_minutes": config.max_minutes,
        "training_seconds": round(facts.seconds, 3),
        "peak_memory_mb": round(facts.peak_memory_mb, 1),
        "restarts": facts.restarts,
        "seed": config.seed,
        **evaluation.to_plain(),
        "versions": versions(),
    }


def write_metrics(
    run: RunFolder, config: TrainerConfig, facts: RunFacts, evaluation: Evaluation
) -> dict[str, Any]:
    """Write metrics.json and return its content."""
    content = metrics_content(config, facts, evaluation)
    write_json(run.metrics_file, content)
    return content

# SPDX-License-Identifier: Apache-2.0
"""One optimiser step: batches, losses, gradients, update."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from diorama.config import TrainerConfig
from diorama.engine.failures import check_finite_loss
from diorama.engine.optimizers import Optimizers
from diorama.engine.pipeline import Pipeline, StepLosses
from diorama.engine.rng import derived_seed
from diorama.engine.run_folder import RunFolder


@dataclass(frozen=True)
class StepResult:
    """What one step gave, averaged over its batches."""

    losses: list[StepLosses]
    rates: dict[str, float]

    @property
    def loss(self) -> float:
        """The minimised sum."""
        return sum(float(part.total) for part in self.losses) / len(self.losses)

    @property
    def psnr(self) -> float | None:
        """PSNR of the batch, if the model tells."""
        return self.mean_metrics().get("psnr")

    @property
    def num_rays(self) -> int:
        """Rays of all batches together."""
        return sum(part.num_rays for part in self.losses)

    def mean_metrics(self) -> dict[str, float]:
        """The model's scalars."""
        return _means([part.metrics for part in self.losses])

    def scalars(self) -> dict[str, float]:
        """Everything worth a line in the log."""
        terms = _means([part.terms for part in self.losses])
        return (
            {"loss": self.loss}
            | {f"loss/{name}": value for name, value in terms.items()}
            | self.mean_metrics()
            | {f"lr/{name}": rate for name, rate in self.rates.items()}
        )


def train_step(
    config: TrainerConfig,
    pipeline: Pipeline,
    optimizers: Optimizers,
    run: RunFolder,
    generator: torch.Generator,
    *,
    step: int,
    end: int,
    restarts: int,
    before_update: Callable[[], None],
) -> StepResult:
    """Average the gradients of `accumulate` batches and update.

    Batch k of a step is number `step * accumulate + k` of the data. The generator is re-seeded
    from (seed, step, restarts), so that a step depends on nothing that came before but the
    weights.
    """
    generator.manual_seed(derived_seed(config.seed, step, restarts))
    optimizers.zero_grad()
    count = config.optim.accumulate
    losses = []
    for k in range(count):
        part = pipeline.get_train_loss_dict(step, generator, step * count + k)
        check_finite_loss(part.terms, step, run)
        (part.total / count).backward()
        detached = {name: term.detach() for name, term in part.terms.items()}
        losses.append(StepLosses(detached, part.metrics, part.num_rays))
    before_update()
    rates = optimizers.step(step, end, squeeze=end / config.max_steps)
    return StepResult(losses, rates)


def _means(parts: list[dict[str, torch.Tensor]]) -> dict[str, float]:
    return {name: sum(float(part[name]) for part in parts) / len(parts) for name in parts[0]}

# SPDX-License-Identifier: Apache-2.0
"""What every method gives the engine, the exporters and the viewer: the Model interface."""

from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from diorama.cameras import Cameras
from diorama.config import ModelConfig
from diorama.data.scene import Scene
from diorama.splats import Splats


@dataclass(frozen=True)
class RenderOutput:
    """One rendered image; `depth` is z-depth in the scene's normalised frame."""

    rgb: Float[Tensor, "H W 3"]
    depth: Float[Tensor, "H W"]
    alpha: Float[Tensor, "H W"]
    normal: Float[Tensor, "H W 3"] | None = None
    extras: dict[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class TrainingCallback:
    """A function the trainer calls around its steps, every `every` steps."""

    where: Literal["before-step", "before-update", "after-step", "after-training"]
    """before-update: gradients are there, and the optimisers have not moved anything yet."""
    call: Callable[[int], None]
    every: int = 1


@runtime_checkable
class OptimizerState(Protocol):
    """The optimisers as a model may see them: the state that must follow its parameters' rows."""

    def rate_of(self, parameter: nn.Parameter) -> float:
        """The learning rate of its last step; 0 before the first."""
        ...

    def touch_only(self, parameter: nn.Parameter, rows: Bool[Tensor, " N"]) -> None:
        """Leave the other rows out of the next step, where the parameter's recipe goes by rows."""
        ...

    def state_of(self, parameter: nn.Parameter) -> MutableMapping[str, Tensor]:
        """The moments of a parameter, by name; empty before its first step."""
        ...


@runtime_checkable
class Watch(Protocol):
    """Where a model writes what it has to tell beside the trainer's scalars."""

    def scalars(self, step: int, kind: str, values: Mapping[str, Any]) -> None:
        """Numbers of one `kind` at a step."""
        ...

    def image(self, step: int, name: str, rgb: Float[Tensor, "H W 3"]) -> None:
        """An image at a step."""
        ...

    def histogram(self, step: int, name: str, values: Float[Tensor, " N"]) -> None:
        """The distribution of many numbers at a step."""
        ...


@runtime_checkable
class SupportsSplats(Protocol):
    """A model that is, or can be turned into, Gaussian splats."""

    def splats(self) -> Splats:
        """The splats in the scene's normalised frame."""
        ...


class Model(nn.Module):
    """Base of every method's model.

    The trainer calls, per step: `forward(batch, step, generator)`, `get_metrics_dict`,
    `get_loss_dict`. Everything else in Diorama sees `render(camera)` only.
    `max_steps` and `squeeze` are set by the trainer before the first step (and again when a time
    budget fixes them) for what the model itself schedules: the number of steps, and its ratio to
    the number that the config's own step numbers are meant for.
    """

    max_steps: int = 1
    squeeze: float = 1.0
    notes: tuple[str, ...] = ()
    """Sentences for the user about how training begins."""

    def __init__(self, config: ModelConfig, scene: Scene):
        super().__init__()
        self.config = config
        self.scene = scene

    def forward(self, batch: Any, step: int, generator: torch.Generator) -> dict[str, Tensor]:
        """Outputs of one training batch; all randomness comes from `generator`."""
        raise NotImplementedError

    def get_loss_dict(self, outputs: dict[str, Tensor], batch: Any) -> dict[str, Tensor]:
        """Named loss terms; the trainer minimises their sum."""
        raise NotImplementedError

    def get_metrics_dict(self, outputs: dict[str, Tensor], batch: Any) -> dict[str, Tensor]:
        """Named scalars to watch; `psnr` (of this batch) is shown in the progress bar."""
        raise NotImplementedError

    def get_param_groups(self) -> dict[str, list[nn.Parameter]]:
        """Parameters by the group name that `OptimConfig.group` knows."""
        return {"all": list(self.parameters())}

    def learning_rate_factors(self) -> Mapping[str, float]:
        """Factors on the groups' learning rates that only the scene can tell (its size)."""
        return {}

    def attach(self, optimizers: OptimizerState) -> None:
        """Called once before the first step, for models whose parameters grow and shrink.

        Such a model gives a parameter new rows through `parameter.data`, so that the optimiser
        goes on knowing it, and brings the moments into the same order.
        """

    def watch(self, log: Watch) -> None:
        """Called once before the first step, with the run's logs."""

    def adopt_shapes(self, state: Mapping[str, Tensor]) -> None:
        """Called before a checkpoint's tensors are loaded: take over shapes that may vary."""

    def get_callbacks(self) -> list[TrainingCallback]:
        """What must happen around steps (grid updates, densification, ...)."""
        return []

    def render(self, camera: Cameras) -> RenderOutput:
        """The view of one camera (a `Cameras` of length 1)."""
        raise NotImplementedError

    @property
    def background(self) -> Float[Tensor, "3"]:
        """The colour behind the scene in `render`; ground truth is blended over it too."""
        return torch.ones(3)

    def next_num_rays(self, num_rays: int) -> int:
        """Rays of the next batch; methods with a sample budget override it."""
        return num_rays

    def step_cost(self, step: int, max_steps: int) -> float:
        """Time of a step of a run of that length, relative to its other steps; for budgets."""
        del step, max_steps
        return 1.0

    def dead_start(self, step: int) -> str | None:
        """A sentence if training got stuck at its start and must be re-seeded, else None."""
        del step
        return None

    def reinitialize(self, generator: torch.Generator) -> None:
        """Draw new initial weights after a dead start (buffers included)."""
        raise NotImplementedError

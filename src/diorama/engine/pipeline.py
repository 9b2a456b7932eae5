# SPDX-License-Identifier: Apache-2.0
"""Data and model joined: what the trainer asks for losses, and evaluation for images."""

from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch import Tensor

from diorama.cameras import Cameras
from diorama.config import PipelineConfig
from diorama.data.scene import Scene
from diorama.model import Model


class DataManager(Protocol):
    """What a data manager gives the engine; batches are a function of (seed, step, num_rays).

    `num_rays` counts the rays, or pixels, of the batch that was drawn last or comes next.
    """

    num_rays: int

    def next_train(self, step: int) -> Any:
        """The batch of data step `step`."""
        ...

    def restart(self) -> None:
        """Forget what training changed: it begins anew."""
        ...

    def eval_indices(self, split: str) -> tuple[int, ...]:
        """Frame indices of a split."""
        ...

    def eval_image(self, split: str, k: int) -> tuple[Cameras, Tensor]:
        """Camera and uint8 RGBA image of the k-th frame of a split."""
        ...

    def eval_weights(self, split: str, k: int) -> Tensor | None:
        """uint8 loss mask of the k-th frame of a split; None: all its pixels count."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Tensors and plain values to go on from."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        ...


@dataclass(frozen=True)
class StepLosses:
    """What one batch gave: differentiable loss terms and the scalars to watch."""

    terms: dict[str, Tensor]
    metrics: dict[str, Tensor]
    num_rays: int

    @property
    def total(self) -> Tensor:
        """The sum that is minimised."""
        return torch.stack([term.reshape(()) for term in self.terms.values()]).sum()


class Pipeline:
    """The data manager and the model of a run on one device.

    The model of a run that is opened again (`is_new` false) is filled from a checkpoint and need
    not look at images to begin with.
    """

    def __init__(
        self,
        config: PipelineConfig,
        scene: Scene,
        seed: int,
        device: torch.device,
        is_new: bool = True,
    ):
        self.config = config
        self.scene = scene
        self.device = device
        self.datamanager: DataManager = config.data.setup(scene=scene, seed=seed, device=device)
        known = scene if is_new else replace(scene, has_files=False)
        self.model: Model = config.model.setup(scene=known).to(device)

    def get_train_loss_dict(
        self, step: int, generator: torch.Generator, data_step: int | None = None
    ) -> StepLosses:
        """Losses of one batch; `data_step` numbers batches when several make one step."""
        batch = self.datamanager.next_train(step if data_step is None else data_step)
        num_rays = self.datamanager.num_rays
        outputs = self.model(batch, step, generator)
        with torch.no_grad():
            metrics = self.model.get_metrics_dict(outputs, batch)
        terms = self.model.get_loss_dict(outputs, batch)
        if not terms:
            raise ValueError(f"{type(self.model).__name__}.get_loss_dict gave no loss term")
        return StepLosses(terms, metrics, num_rays)

    def held_out_split(self) -> str | None:
        """The split that measures: test, else val, else None when nothing was held out."""
        for split in ("test", "val"):
            if self.datamanager.eval_indices(split):
                return split
        return None

    def held_out_names(self, split: str | None) -> list[str]:
        """Names of the images of a split, in its order."""
        indices = () if split is None else self.datamanager.eval_indices(split)
        return [self.scene.frames[i].name for i in indices]

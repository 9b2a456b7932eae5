# SPDX-License-Identifier: Apache-2.0
"""`diorama bench splat`: training steps and pictures of Gaussians, beside the torch references."""

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from diorama import native
from diorama.bench.rasterize import BACKWARD_FLOPS, FORWARD_FLOPS
from diorama.bench.timing import best_seconds
from diorama.config import TrainerConfig
from diorama.data.load import load_scene
from diorama.engine.load_run import load_run
from diorama.engine.optimizers import Optimizers, optimizers_of
from diorama.engine.pipeline import Pipeline
from diorama.errors import UserError
from diorama.methods.registry import method_config
from diorama.ops.rasterize import rasterize
from diorama.scenes.locate import data_folder

FLAT_STEP = 1_000_000
"""A step at which every schedule has reached full size and all bands."""


@dataclass(frozen=True)
class SplatBench:
    """What was measured; seconds are the shortest of several."""

    num_gaussians: int
    width: int
    height: int
    num_pairs: int
    """Pairs of a Gaussian and a tile."""
    num_evaluations: int
    """Pairs of a Gaussian and a pixel that it is drawn to."""
    step: float
    """Draw, loss, backward, optimiser."""
    reference_step: float | None
    """The same with the torch references in place of the kernels."""
    render: float
    """A picture with depth and normals."""
    forward: float
    """Rasterising alone."""
    backward: float
    """Its backward pass alone."""

    @property
    def forward_flops(self) -> float:
        """Operations of the forward pass."""
        return 1.0 * FORWARD_FLOPS * self.num_evaluations

    @property
    def backward_flops(self) -> float:
        """Operations of the backward pass."""
        return 1.0 * BACKWARD_FLOPS * self.num_evaluations


class SplatTraining:
    """A training of Gaussians at full size, ready to step, on a data set's first training view."""

    def __init__(self, data: Path | None, run: Path | None, count: int, size: int):
        config = _config(data, count, size)
        torch.manual_seed(0)
        scene = load_scene(config.data)
        self.pipeline = Pipeline(config.pipeline, scene, 0, torch.device("cpu"))
        self.model: Any = self.pipeline.model
        if run is not None:
            self._take_over(run)
        self.config = config
        self.optimizers: Optimizers = optimizers_of(self.model, config.optim)
        self.batch = self.pipeline.datamanager.next_train(0)
        self.generator = torch.Generator().manual_seed(0)

    def _take_over(self, run: Path) -> None:
        state = load_run(run, "cpu").model.state_dict()
        own = {name: value for name, value in state.items() if name.startswith("gaussians.")}
        if not own:
            raise UserError(f"{run}: its method has no Gaussians; name a run of a splat method.")
        self.model.adopt_shapes(own)
        self.model.load_state_dict(own, strict=False)
        self.model.density.clear()

    def losses(self) -> Tensor:
        """One forward pass and its loss."""
        outputs = self.model(self.batch, FLAT_STEP, self.generator)
        return torch.stack(list(self.model.get_loss_dict(outputs, self.batch).values())).sum()

    def step(self) -> None:
        """A whole training step that leaves the number of Gaussians as it is."""
        self.optimizers.zero_grad()
        self.losses().backward()
        for callback in self.model.get_callbacks():
            if callback.where == "before-update":
                callback.call(FLAT_STEP)
        self.optimizers.step(0, 1, 1.0)

    def drawn(self) -> Any:
        """What the training view is made of."""
        self.model(self.batch, FLAT_STEP, self.generator)
        return self.model.last_drawn

    def render(self) -> None:
        """One picture."""
        self.model.render(self.batch.camera)


def measure_splat(training: SplatTraining, seconds: float, with_reference: bool) -> SplatBench:
    """Time steps, pictures and the rasteriser; the reference, which is slow, is timed once."""
    step, render = best_seconds([training.step, training.render], seconds)
    drawn = training.drawn()
    projected, tiles = drawn.projected, drawn.tiles
    colors = torch.rand(len(projected.centers), 3)
    parts = (projected.centers, projected.conics, projected.opacities, colors)
    centers, conics, opacities, colors = (part.detach().requires_grad_() for part in parts)
    height, width = drawn.alpha.shape

    def forward() -> Tensor:
        ones = torch.ones(3)
        return rasterize(centers, conics, opacities, colors, ones, tiles, width, height).image

    image = forward()
    gradient = torch.rand_like(image)

    def backward() -> None:
        torch.autograd.grad(
            image, [centers, conics, opacities, colors], gradient, retain_graph=True
        )

    forward_seconds, backward_seconds = best_seconds([forward, backward], seconds)
    return SplatBench(
        num_gaussians=len(centers),
        width=width,
        height=height,
        num_pairs=len(tiles.splats),
        num_evaluations=int(drawn.raster.count.sum()),
        step=step,
        reference_step=_reference_seconds(training) if with_reference else None,
        render=render,
        forward=forward_seconds,
        backward=backward_seconds,
    )


def _reference_seconds(training: SplatTraining) -> float:
    with native.switched_off():
        start = time.perf_counter()
        training.step()
        return time.perf_counter() - start


def _config(data: Path | None, count: int, size: int) -> TrainerConfig:
    """splat-fast at full size and number from the first step, without logs."""
    config = method_config("splat-fast")
    folder = data_folder(Path("scene:tabletop") if data is None else data)
    options = {
        "init_count": count, "max_gaussians": count, "downscale": 1, "sh_every": 0,
        "image_every": 0, "histogram_every": 0,
    }  # fmt: skip
    return replace(
        config,
        data=replace(config.data, path=folder, max_side=size),
        model=replace(config.model, **options),
    )

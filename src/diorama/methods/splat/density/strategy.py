# SPDX-License-Identifier: Apache-2.0
"""What a density strategy is told, and what it may do."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from diorama.methods.splat.gaussians import Gaussians
from diorama.model import OptimizerState
from diorama.ops.rasterized import SplatSums


@dataclass(frozen=True)
class Observation:
    """What one backward pass tells of the N Gaussians, before the optimiser moves them."""

    is_visible: Bool[Tensor, " N"]
    """Drawn in this image, be it outside a pixel's reach."""
    center_gradients: Float[Tensor, "N 2"]
    """Derivative of the loss by the projected centres, per pixel of distance."""
    sums: SplatSums | None
    """Per-pixel sums over the image; None unless the strategy watches pixels."""
    depths: Float[Tensor, " N"]
    """Camera z."""
    centers: Float[Tensor, "N 2"]
    """Projected centres in pixels."""
    width: int
    """Of the image, in pixels."""
    height: int
    """Of the image, in pixels."""


class DensityStrategy(nn.Module):
    """Base of all strategies; statistics are buffers of N rows and so part of checkpoints.

    `observe` is called when gradients are there and before the optimiser's step; `refine` after
    it. Both are functions of the step, the Gaussians, the statistics and the generator only.
    """

    watches_pixels: bool = False
    """Whether `Observation.sums` is wanted; it costs time in the backward pass."""
    num_first: Int64[Tensor, ""]
    """Gaussians that the run began with; a run that is opened again knows it from here alone."""

    def __init__(self, gaussians: Gaussians, max_gaussians: int, extent: float):
        super().__init__()
        # A list hides the module: its parameters belong to the model.
        self._gaussians = [gaussians]
        self.max_gaussians = max_gaussians
        self.extent = extent
        self.register_buffer("num_first", torch.tensor(len(gaussians)))
        self.squeeze = 1.0
        """Ratio of the planned steps to those that the config's step numbers are meant for."""
        self.optimizers: OptimizerState | None = None

    @property
    def gaussians(self) -> Gaussians:
        """The Gaussians that are managed."""
        return self._gaussians[0]

    def observe(self, seen: Observation, step: int) -> None:
        """Take note of what a backward pass told."""

    def refine(self, step: int, generator: torch.Generator) -> dict[str, float]:
        """Change the Gaussians after step `step`; returns counts for the log."""
        raise NotImplementedError

    def statistics(self) -> dict[str, Tensor]:
        """The buffers that have one row per Gaussian."""
        return {name: rows for name, rows in self.named_buffers(recurse=False) if rows.ndim > 0}

    def resize_like(self, state: Mapping[str, Tensor]) -> None:
        """Take over the row counts of a checkpoint's statistics, values unspecified."""
        for name, buffer in self.statistics().items():
            if name in state and state[name].shape[1:] == buffer.shape[1:]:
                setattr(self, name, buffer.new_zeros(state[name].shape))

    def clear(self) -> None:
        """Statistics of as many Gaussians as there are now, all zero."""
        for name, buffer in self.statistics().items():
            setattr(self, name, buffer.new_zeros((len(self.gaussians), *buffer.shape[1:])))

    @property
    def first_count(self) -> int:
        """How many Gaussians the run began with."""
        return int(self.num_first)

    @property
    def room(self) -> int:
        """How many Gaussians may still be added."""
        return max(0, self.max_gaussians - len(self.gaussians))

# SPDX-License-Identifier: Apache-2.0
"""Where the rays of training pixels end, by which matter that nobody photographed is told.

A field is free to hold anything behind what its photographs show. New views that look there meet
inventions: stains, flakes, holes. No loss of a photograph can say so, but its rays can: over some
millions of them, every surface that a photograph shows has been met, and inventions never.
"""

import torch
from jaxtyping import Bool, Float, Int16, Int64
from torch import Tensor, nn

from diorama.nn.scene_frame import SceneFrame
from diorama.nn.unit_cells import cell_index

RESOLUTION = 192
"""Cells per side of the unit cube."""
EPOCH = 1 << 16
"""Rays per count of the clock."""
WINDOW = 64
"""What was not met for so many counts, four million rays, has gone or was never there."""
LEAST_SHARE = 0.01
"""A ray meets what makes up more than this share of its colour."""


class PhotographedSpace(nn.Module):
    """When rays of training pixels last met something in each cell of the unit cube."""

    last_met: Int16[Tensor, "X Y Z"]

    def __init__(self, frame: SceneFrame, resolution: int = RESOLUTION):
        super().__init__()
        self.frame = frame
        self.register_buffer("last_met", torch.zeros((resolution,) * 3, dtype=torch.int16))

    def initialize(self) -> None:
        """Nothing was met."""
        self.last_met.zero_()

    def mark(self, positions: Float[Tensor, "N 3"], num_rays: int) -> None:
        """These places of the scene were met when `num_rays` rays had been trained on."""
        now = min(1 + num_rays // EPOCH, torch.iinfo(torch.int16).max)
        self.last_met.view(-1)[self._cells(positions)] = now

    def mask(self) -> Bool[Tensor, "X Y Z"]:
        """Cells that were met of late, and their neighbours; before a whole window, all cells."""
        mask = self.last_met > int(self.last_met.max()) - WINDOW
        for axis in range(3):
            along = mask.movedim(axis, 0)
            grown = along.clone()
            grown[1:] |= along[:-1]
            grown[:-1] |= along[1:]
            mask = grown.movedim(0, axis)
        return mask

    def look_up(
        self, mask: Bool[Tensor, "X Y Z"], positions: Float[Tensor, "N 3"]
    ) -> Bool[Tensor, " N"]:
        """What the mask says of places of the scene."""
        return mask.reshape(-1)[self._cells(positions)]

    def _cells(self, positions: Float[Tensor, "N 3"]) -> Int64[Tensor, " N"]:
        return cell_index(self.frame.to_unit(positions), self.last_met.shape[0])

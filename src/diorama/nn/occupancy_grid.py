# SPDX-License-Identifier: Apache-2.0
"""A voxel grid over the unit cube that remembers where a field is dense, to skip the rest."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

DENSE_SHARE = 4  # one update looks at 1/DENSE_SHARE of the cells at random, and as many occupied


class OccupancyGrid(nn.Module):
    """Running maximum of the optical thickness of a step, per cell, and the bits it implies.

    Instant-NGP's rule: value <- max(decay * value, thickness at a random point of the cell);
    a cell is occupied while value > min(mean value, threshold). Every cell starts occupied.
    All state is in buffers, so checkpoints carry it.
    """

    values: Float[Tensor, " cells"]
    is_occupied: Bool[Tensor, " cells"]
    box: Float[Tensor, "2 3"]
    """Corners of the tightest box around all occupied cells, in unit-cube coordinates."""

    def __init__(self, resolution: int, threshold: float = 0.01, decay: float = 0.95):
        super().__init__()
        self.resolution, self.threshold, self.decay = resolution, threshold, decay
        cells = resolution**3
        self.register_buffer("values", torch.zeros(cells))
        self.register_buffer("is_occupied", torch.ones(cells, dtype=torch.bool))
        self.register_buffer("box", torch.tensor([[0.0] * 3, [1.0] * 3]))

    def reset(self) -> None:
        """Forget everything: all cells are occupied again."""
        self.values.zero_()
        self.is_occupied.fill_(True)
        self.box.copy_(self._occupied_box())

    def cell_of(self, unit_points: Float[Tensor, "N 3"]) -> Int[Tensor, " N"]:
        """Index of the cell that holds each point of the unit cube; outside points are clamped."""
        cell = (unit_points * self.resolution).long().clamp_(0, self.resolution - 1)
        return (cell[:, 0] * self.resolution + cell[:, 1]) * self.resolution + cell[:, 2]

    def contains(self, unit_points: Float[Tensor, "N 3"]) -> Bool[Tensor, " N"]:
        """Whether each point lies in the unit cube and in an occupied cell."""
        is_inside = ((unit_points >= 0) & (unit_points < 1)).all(dim=1)
        return is_inside & self.is_occupied[self.cell_of(unit_points)]

    @torch.no_grad()
    def update(
        self,
        thickness: Callable[[Float[Tensor, "N 3"]], Float[Tensor, " N"]],
        generator: torch.Generator,
        all_cells: bool = False,
        share: int = DENSE_SHARE,
    ) -> None:
        """Look at some cells (or all) again and set the bits anew.

        `thickness` maps unit-cube points to density times step length.
        """
        cells = self._cells_to_visit(generator, all_cells, share)
        points = self._random_points_in(cells, generator)
        seen = torch.cat([thickness(chunk) for chunk in points.split(1 << 17)])
        # A cell can be drawn twice; both draws count, and amax does not depend on their order.
        decayed = self.values.clone()
        decayed[cells] *= self.decay
        self.values.copy_(decayed.scatter_reduce(0, cells, seen.to(decayed), "amax"))
        self.is_occupied.copy_(self.values > min(self.values.mean().item(), self.threshold))
        self.box.copy_(self._occupied_box())

    def _occupied_box(self) -> Float[Tensor, "2 3"]:
        grid = self.is_occupied.view(self.resolution, self.resolution, self.resolution)
        low, high = [], []
        for axis in range(3):
            line = grid.any(dim=(axis + 1) % 3, keepdim=True).any(dim=(axis + 2) % 3, keepdim=True)
            index = line.flatten().nonzero().flatten()
            low.append(index[0].item() if len(index) else 0)
            high.append(index[-1].item() + 1 if len(index) else 0)
        return torch.tensor([low, high], device=self.values.device) / self.resolution

    def _cells_to_visit(
        self, generator: torch.Generator, all_cells: bool, share: int
    ) -> Int[Tensor, " N"]:
        num_cells, device = len(self.values), self.values.device
        if all_cells:
            return torch.arange(num_cells, device=device)
        count = num_cells // share
        anywhere = torch.randint(num_cells, (count,), generator=generator, device=device)
        occupied = self.is_occupied.nonzero().flatten()
        if len(occupied) > count:
            pick = torch.randint(len(occupied), (count,), generator=generator, device=device)
            occupied = occupied[pick]
        return torch.cat((anywhere, occupied))

    def _random_points_in(
        self, cells: Int[Tensor, " N"], generator: torch.Generator
    ) -> Float[Tensor, "N 3"]:
        r = self.resolution
        corner = torch.stack((cells // (r * r), cells // r % r, cells % r), dim=1)
        jitter = torch.rand(corner.shape, generator=generator, device=cells.device)
        return (corner + jitter) / r

# SPDX-License-Identifier: Apache-2.0
"""Nested voxel grids that remember where a field is dense, to skip the rest."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

DENSE_SHARE = 4  # one update looks at 1/DENSE_SHARE of the cells at random, and as many occupied
CHUNK = 1 << 17  # points per call of the field

Thickness = Callable[[Float[Tensor, "N 3"]], Float[Tensor, " N"]]
"""Maps points in unit-cube coordinates to density times step length."""


class OccupancyGrid(nn.Module):
    """Running maximum of the optical thickness of a step, per cell, and the bits it implies.

    Instant-NGP's rule: value <- max(decay * value, thickness at a random point of the cell);
    a cell is occupied while value > min(mean value, threshold). Every cell starts occupied.
    Level 0 covers the unit cube, level g the cube 2^g times as large about the same centre:
    [0.5 - 2^(g-1), 0.5 + 2^(g-1)] along each axis. A point belongs to the finest level that holds
    it. Cells that no camera sees can be marked: they hold -1, are empty and never looked at.
    All state is in buffers, so checkpoints carry it.
    """

    values: Float[Tensor, " cells"]
    """Cell (i, j, k) along x, y, z of level g at ((g r + i) r + j) r + k."""
    is_occupied: Bool[Tensor, " cells"]
    box: Float[Tensor, "2 3"]
    """Corners of the tightest box around all occupied cells, in unit-cube coordinates."""

    def __init__(
        self, resolution: int, threshold: float = 0.01, decay: float = 0.95, levels: int = 1
    ):
        super().__init__()
        self.resolution, self.threshold, self.decay = resolution, threshold, decay
        self.levels = levels
        cells = levels * resolution**3
        self.register_buffer("values", torch.zeros(cells))
        self.register_buffer("is_occupied", torch.ones(cells, dtype=torch.bool))
        self.register_buffer("box", torch.zeros(2, 3))
        self.box.copy_(self._occupied_box())

    @property
    def bits(self) -> Bool[Tensor, "levels r r r"]:
        """A view of `is_occupied` with one axis for each of level, x, y and z, as `march` wants."""
        return self.is_occupied.view(self.levels, *(self.resolution,) * 3)

    def reset(self) -> None:
        """Forget the field: all cells are occupied again, except those that no camera sees."""
        self.values.copy_(torch.where(self.values < 0, -1.0, 0.0))
        torch.ge(self.values, 0, out=self.is_occupied)
        self.box.copy_(self._occupied_box())

    def mark_invisible(self, mask: Bool[Tensor, " cells"]) -> None:
        """Empty these cells for good; the mask is laid out like `values`."""
        if mask.shape != self.values.shape:
            raise ValueError(
                f"mask must have the shape {tuple(self.values.shape)}, got {tuple(mask.shape)}"
            )
        self.values.masked_fill_(mask, -1.0)
        self.is_occupied.masked_fill_(mask, False)
        self.box.copy_(self._occupied_box())

    def cell_of(self, unit_points: Float[Tensor, "N 3"]) -> Int[Tensor, " N"]:
        """Index of the cell that holds each point; those outside all levels are clamped."""
        level = self._level_of(unit_points).clamp_(max=self.levels - 1)
        r = self.resolution
        x, y, z = (self._in_level(unit_points, level) * r).long().clamp_(0, r - 1).unbind(dim=1)
        return ((level * r + x) * r + y) * r + z

    def contains(self, unit_points: Float[Tensor, "N 3"]) -> Bool[Tensor, " N"]:
        """Whether each point lies in some level and there in an occupied cell."""
        is_inside = self._level_of(unit_points) < self.levels
        return is_inside & self.is_occupied[self.cell_of(unit_points)]

    @torch.no_grad()
    def update(
        self,
        thickness: Thickness,
        generator: torch.Generator,
        all_cells: bool = False,
        share: int = DENSE_SHARE,
    ) -> float:
        """Look at some cells (or all) again and set the bits anew; the mean value of all cells.

        In each level these are 1/share of the cells, and as many (or all) of the occupied ones.
        """
        for level in range(self.levels):
            cells = self._cells_to_visit(level, generator, all_cells, share)
            self._look_at(level, cells, thickness, generator)
        mean = self._mean()
        torch.gt(self.values, min(mean, self.threshold), out=self.is_occupied)
        self.box.copy_(self._occupied_box())
        return mean

    def _look_at(
        self,
        level: int,
        cells: Int[Tensor, " N"],
        thickness: Thickness,
        generator: torch.Generator,
    ) -> None:
        values = self.values.view(self.levels, -1)[level]
        # A cell can be named twice: it decays once, both looks count, and their order does not.
        values[cells] = self.decay * values[cells]
        for chunk in cells.split(CHUNK):
            seen = thickness(self._random_points_in(level, chunk, generator))
            values.scatter_reduce_(0, chunk, seen.to(values), "amax")

    def _mean(self) -> float:
        """Mean value of the cells that are looked at."""
        if self.values.amin() >= 0:
            return self.values.mean().item()
        total, count = self.values.clamp(min=0).sum(), (self.values >= 0).sum()
        return (total / count.clamp(min=1)).item()

    def _level_of(self, unit_points: Float[Tensor, "N 3"]) -> Int[Tensor, " N"]:
        """The finest level that holds each point; their number for a point outside of all."""
        # Levels are nested, so as many do not hold a point as there are finer ones than its own.
        level = torch.zeros(len(unit_points), dtype=torch.long, device=unit_points.device)
        for g in range(self.levels):
            unit = self._in_level(unit_points, g)
            level += ~((unit >= 0) & (unit < 1)).all(dim=1)
        return level

    def _in_level(
        self, unit_points: Float[Tensor, "N 3"], level: int | Int[Tensor, " N"]
    ) -> Float[Tensor, "N 3"]:
        """Unit-cube coordinates as those of a level's own cube."""
        if isinstance(level, int):
            return unit_points if level == 0 else (unit_points - 0.5) * 0.5**level + 0.5
        if self.levels == 1:
            return unit_points
        return (unit_points - 0.5) * (0.5**level)[:, None] + 0.5

    def _occupied_box(self) -> Float[Tensor, "2 3"]:
        r, boxes = self.resolution, []
        for level, grid in enumerate(self.bits.view(torch.uint8)):  # bytes are reduced faster
            plane = grid.amax(dim=0)
            lines = torch.stack(
                [grid.view(r, -1).amax(dim=1), plane.amax(dim=1), plane.amax(dim=0)]
            )
            if lines.any():
                first, last = lines.argmax(dim=1), r - lines.flip(1).argmax(dim=1)
                boxes.append((torch.stack([first, last]) / r - 0.5) * 2**level + 0.5)
        if not boxes:
            return torch.zeros_like(self.box)
        corners = torch.stack(boxes)
        return torch.stack([corners[:, 0].amin(dim=0), corners[:, 1].amax(dim=0)])

    def _cells_to_visit(
        self, level: int, generator: torch.Generator, all_cells: bool, share: int
    ) -> Int[Tensor, " N"]:
        """Cells of a level, in two ascending parts: memory is then read in order."""
        values = self.values.view(self.levels, -1)[level]
        cells = torch.arange(0, len(values), 1 if all_cells else share, device=values.device)
        if not all_cells:
            # One of each `share` neighbours: every cell is as likely, and none is drawn twice.
            cells += torch.randint(share, cells.shape, generator=generator, device=cells.device)
            if len(values) % share:
                cells = cells[cells < len(values)]
        if values.amin() < 0:
            cells = cells[values[cells] >= 0]
        if all_cells:
            return cells
        occupied = self.is_occupied.view(self.levels, -1)[level].nonzero().flatten()
        count = len(values) // share
        if len(occupied) > count:
            place = torch.arange(count, dtype=torch.float64, device=cells.device)
            place += torch.rand(count, generator=generator, device=cells.device)
            place *= len(occupied) / count
            occupied = occupied[place.long().clamp_(max=len(occupied) - 1)]
        return torch.cat((cells, occupied))

    def _random_points_in(
        self, level: int, cells: Int[Tensor, " N"], generator: torch.Generator
    ) -> Float[Tensor, "N 3"]:
        """One point in each cell of a level, in unit-cube coordinates."""
        r = self.resolution
        # Integer division is slow. Half a cell keeps rounding from touching the whole numbers.
        cell = cells.double()
        x = ((cell + 0.5) / r**2).floor_()
        cell -= x * r**2
        y = ((cell + 0.5) / r).floor_()
        cell -= y * r
        points = torch.rand(len(cells), 3, generator=generator, device=cells.device)
        for axis, corner in enumerate((x, y, cell)):
            points[:, axis] += corner
        points *= 2**level / r
        return points.add_(0.5 - 2**level / 2) if level else points

# SPDX-License-Identifier: Apache-2.0
"""The occupancy grid keeps what is dense, drops what is empty, and finds new matter again."""

import pytest
import torch

from diorama.nn.occupancy_grid import OccupancyGrid
from diorama.ops.march import march


def ball(center: float, density: float = 1.0):
    """Thickness of a ball of radius 0.25 in the unit cube."""
    return lambda points: density * ((points - center).norm(dim=1) < 0.25).float()


def trained(grid: OccupancyGrid, thickness, updates: int = 12) -> OccupancyGrid:
    for step in range(updates):
        generator = torch.Generator().manual_seed(step)
        grid.update(thickness, generator, all_cells=step == 0)
    return grid


def test_every_cell_starts_occupied():
    grid = OccupancyGrid(4)
    assert grid.contains(torch.rand(100, 3)).all()
    assert not grid.contains(torch.tensor([[1.01, 0.5, 0.5], [0.5, -0.01, 0.5]])).any()


def test_cells_of_a_ball_are_kept_and_the_others_dropped():
    grid = trained(OccupancyGrid(16), ball(0.5))
    points = torch.rand(20_000, 3, generator=torch.Generator().manual_seed(1))
    distance = (points - 0.5).norm(dim=1)
    cell = 1 / 16 * 3**0.5
    assert grid.contains(points)[distance < 0.25 - cell].all()
    assert not grid.contains(points)[distance > 0.25 + cell].any()


def test_the_box_is_tight_around_occupied_cells():
    low, high = trained(OccupancyGrid(16), ball(0.5)).box
    assert (low <= 0.26).all() and (low >= 0.18).all()
    assert (high >= 0.74).all() and (high <= 0.82).all()


def test_matter_that_moves_is_found_again_and_forgotten_where_it_was():
    grid = trained(OccupancyGrid(8), ball(0.3))
    for step in range(300):
        grid.update(ball(0.7), torch.Generator().manual_seed(1000 + step))
    assert grid.contains(torch.full((1, 3), 0.7)).all()
    assert not grid.contains(torch.full((1, 3), 0.3)).any()


def test_an_empty_field_leaves_an_empty_box():
    grid = trained(OccupancyGrid(8), lambda points: torch.zeros(len(points)))
    low, high = grid.box
    assert torch.equal(low, high)


def test_updates_are_reproducible():
    first, second = (trained(OccupancyGrid(8), ball(0.4)) for _ in range(2))
    assert torch.equal(first.values, second.values)


def test_one_level_has_the_buffers_that_old_checkpoints_hold():
    shapes = {name: tuple(value.shape) for name, value in OccupancyGrid(4).state_dict().items()}
    assert shapes == {"values": (64,), "is_occupied": (64,), "box": (2, 3)}


def test_each_visit_is_to_a_random_point_of_its_cell():
    """Every cell once, each point in its own cell, and in each level's own part of space."""
    grid, seen = OccupancyGrid(8, levels=3), []

    def thickness(points):
        seen.append(points.clone())
        return torch.ones(len(points))

    grid.update(thickness, torch.Generator().manual_seed(0), all_cells=True)
    for level, points in enumerate(torch.cat(seen).split(8**3)):
        low, high = 0.5 - 2**level / 2, 0.5 + 2**level / 2
        in_cells = (points - low) / (high - low) * 8
        x, y, z = in_cells.floor().long().unbind(1)
        assert torch.equal((x * 8 + y) * 8 + z, torch.arange(8**3))
        assert (in_cells.frac() - 0.5).abs().mean().item() == pytest.approx(0.25, abs=0.02)


def test_a_share_of_the_cells_and_the_occupied_ones_are_visited():
    grid, num_points = OccupancyGrid(16), []

    def thickness(points):
        num_points.append(len(points))
        return ((points - 0.5).norm(dim=1) < 0.1).float()

    generator = torch.Generator().manual_seed(0)
    grid.update(thickness, generator)  # all are occupied: as many of them as of the others
    grid.update(thickness, generator, share=1)
    occupied = int(grid.is_occupied.sum())
    grid.update(thickness, generator, share=8)
    assert (num_points[0], num_points[2]) == (2048, 512 + occupied)


def test_every_cell_is_as_likely():
    grid, counts = OccupancyGrid(3), torch.zeros(27)
    grid.is_occupied.fill_(False)
    generator = torch.Generator().manual_seed(0)
    for _ in range(4000):
        counts += torch.bincount(grid._cells_to_visit(0, generator, False, 4), minlength=27)
    assert (counts / 4000 - 0.25).abs().max() < 0.03


def test_the_finest_level_that_holds_a_point_decides():
    grid = OccupancyGrid(4, levels=3)
    grid.bits[0], grid.bits[2] = False, False
    x = torch.tensor([0.5, 0.99, 1.01, 1.49, 1.51, 2.49, 2.51])
    points = torch.stack([x, torch.full_like(x, 0.5), torch.full_like(x, 0.5)], dim=1)
    assert grid.contains(points).tolist() == [False, False, True, True, False, False, False]
    grid.bits[2] = True
    assert grid.contains(points).tolist() == [False, False, True, True, True, True, False]
    assert grid.contains(1 - points).tolist() == grid.contains(points).tolist()


def test_marching_and_asking_agree():
    """`march` through the grid's bits gives just those lattice points that it contains."""
    grid = trained(OccupancyGrid(8, levels=2), ball(0.7))
    origin, toward = torch.tensor([[-0.9, 0.1, 0.3]]), torch.tensor([[1.0, 0.31, 0.17]])
    far, cube = torch.tensor([3.0]), ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    t = march(origin, toward, grid.bits, cube, torch.zeros(1), far, step=0.01).t
    lattice = (torch.arange(300) + 0.5) * 0.01
    assert 20 < len(t) < 200
    torch.testing.assert_close(t, lattice[grid.contains(origin + lattice[:, None] * toward)])


def test_invisible_cells_are_never_visited_and_stay_empty():
    grid = OccupancyGrid(8, levels=2)
    mask = torch.rand(len(grid.values), generator=torch.Generator().manual_seed(0)) < 0.5
    grid.mark_invisible(mask)
    seen = []

    def thickness(points):
        seen.append(grid.cell_of(points))
        return torch.ones(len(points))

    for step in range(4):
        grid.update(thickness, torch.Generator().manual_seed(step), all_cells=step == 0)
    # Points of the outer level that lie in the unit cube are found in the inner one.
    outer = torch.cat(seen)
    assert not mask[outer[outer >= 8**3]].any()
    assert (grid.values[mask] == -1).all()
    assert torch.equal(grid.values >= 0, ~mask)
    # The mean is that of cells that count: 1. All of them are above the threshold.
    assert torch.equal(grid.is_occupied, ~mask)
    grid.reset()
    assert torch.equal(grid.is_occupied, ~mask)
    with pytest.raises(ValueError, match=r"mask must have the shape \(1024,\), got \(512,\)"):
        grid.mark_invisible(mask[:512])


def test_the_box_spans_all_levels():
    grid = OccupancyGrid(4, levels=2)
    grid.values.zero_()
    grid.values[grid.cell_of(torch.tensor([[1.3, 0.6, 0.6], [0.3, 0.3, 0.3]]))] = 1.0
    grid.update(lambda points: torch.zeros(len(points)), torch.Generator().manual_seed(0))
    torch.testing.assert_close(grid.box, torch.tensor([[0.25, 0.25, 0.25], [1.5, 1.0, 1.0]]))

# SPDX-License-Identifier: Apache-2.0
"""The occupancy grid keeps what is dense, drops what is empty, and finds new matter again."""

import torch

from diorama.nn.occupancy_grid import OccupancyGrid


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

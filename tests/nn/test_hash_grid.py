# SPDX-License-Identifier: Apache-2.0
"""The hash grid as a module: its size, its start and what it passes on."""

from itertools import pairwise

import torch

from diorama.nn.hash_grid import HashGrid
from diorama.ops.hash_grid import hash_grid


def small_grid(**options) -> HashGrid:
    return HashGrid(
        num_levels=3, log2_table_size=8, base_resolution=4, max_resolution=16, **options
    )


def test_defaults_are_those_of_instant_ngp():
    with torch.device("meta"):
        grid = HashGrid()
    assert grid.output_size == 32
    assert grid.table.shape == (grid.layout.num_entries, 2)
    assert max(b - a for a, b in pairwise(grid.layout.offsets)) == 2**19


def test_table_starts_uniform_in_its_range_and_reproducibly():
    first, second = small_grid(init_range=0.5), small_grid(init_range=0.5)
    for grid in (first, second):
        grid.initialize(torch.Generator().manual_seed(3))
    assert torch.equal(first.table, second.table)
    assert 0.4 < first.table.abs().max() <= 0.5
    assert first.table.mean().abs() < 0.05


def test_features_are_those_of_the_op():
    grid = small_grid(interpolation="smoothstep")
    grid.initialize(torch.Generator().manual_seed(0))
    positions = torch.rand(10, 3)
    expected = hash_grid(positions, grid.table, grid.layout, "smoothstep", 2)
    assert torch.equal(grid(positions, active_levels=2), expected)
    assert not torch.equal(grid(positions), expected)


def test_training_moves_only_what_was_seen():
    grid = small_grid()
    grid(torch.full((1, 3), 0.4)).sum().backward()
    assert grid.table.grad is not None
    assert 0 < (grid.table.grad != 0).any(1).sum() <= 3 * 8

# SPDX-License-Identifier: Apache-2.0
"""Marching through occupancy grids: an object from outside, an unbounded scene from within."""

import torch
from jaxtyping import Bool
from torch import Tensor

from diorama.bench.case import Case
from diorama.ops.march import march, march_reference

NUM_RAYS = 4096
RESOLUTION = 128
BOX = ((-1.0, -1.0, -1.0), (1.0, 1.0, 1.0))


def _shell(resolution: int) -> Bool[Tensor, "r r r"]:
    """Cells near a sphere's surface: what is left of a grid once an object has been learnt."""
    axis = (torch.arange(resolution) + 0.5) / resolution * 2 - 1
    squared = axis[:, None, None] ** 2 + axis[:, None] ** 2 + axis**2
    return (squared.sqrt() - 0.5).abs() < 0.04


def cases() -> list[Case]:
    """A step of 1/1000 of the diagonal in one level, and a cone of 1/250 in four."""
    generator = torch.Generator().manual_seed(0)
    around = torch.nn.functional.normalize(torch.randn(NUM_RAYS, 3, generator=generator), dim=1)
    target = 1.4 * torch.rand(NUM_RAYS, 3, generator=generator) - 0.7
    grid, near, far = _shell(RESOLUTION), torch.full((NUM_RAYS,), 0.2), torch.full((NUM_RAYS,), 9.0)
    jitter = torch.rand(NUM_RAYS, generator=generator)
    found = []
    for what, distance, levels, step, cone in (
        ("one level, step 0.0035", 3.0, 1, 0.0035, 0.0),
        ("four levels, cone 0.004", 0.4, 4, 0.005, 0.004),
    ):
        origins = distance * around
        directions = torch.nn.functional.normalize(target - origins, dim=1)
        nested = grid.expand(levels, *grid.shape).contiguous()
        scene = (origins, directions, nested, BOX, near, far, step, cone, jitter)
        found.append(
            Case(
                "march",
                f"{what}, {NUM_RAYS} rays, {RESOLUTION}^3",
                lambda scene=scene: march(*scene),
                lambda scene=scene: march_reference(*scene),
                NUM_RAYS,
                "rays",
            )
        )
    return found

# SPDX-License-Identifier: Apache-2.0
"""Measurements of the hash grid: Instant-NGP's size at random points, a training step's on rays."""

from collections.abc import Callable

import torch
from torch import Tensor

from diorama.bench.case import Case
from diorama.ops.hash_grid import hash_grid, hash_grid_reference
from diorama.ops.hash_grid_layout import HashGridLayout

Encoding = Callable[[Tensor, Tensor, HashGridLayout], Tensor]


def cases() -> list[Case]:
    """Forward, and forward with the gradient of the table."""
    generator = torch.Generator().manual_seed(0)
    random_points = torch.rand(1 << 18, 3, generator=generator)
    ray_points = points_on_rays(512, 64, generator)
    return [
        *cases_of(HashGridLayout.of(16, 2, 19, 16, 2048), "L16 F2 T2^19, random", random_points),
        *cases_of(HashGridLayout.of(16, 2, 17, 16, 2048), "L16 F2 T2^17, rays", ray_points),
        *cases_of(HashGridLayout.of(8, 4, 17, 16, 2048), "L8 F4 T2^17, rays", ray_points),
        *second_order_cases(HashGridLayout.of(16, 2, 17, 16, 2048), ray_points),
    ]


def points_on_rays(num_rays: int, num_samples: int, generator: torch.Generator) -> Tensor:
    """Samples along random rays through the cube, in steps of sqrt(3) / 1024."""
    origins = torch.rand(num_rays, 1, 3, generator=generator)
    directions = torch.randn(num_rays, 1, 3, generator=generator)
    steps = torch.arange(num_samples)[:, None] * (3**0.5 / 1024)
    points = origins + steps * torch.nn.functional.normalize(directions, dim=-1)
    return points.clamp(0, 1).reshape(-1, 3)


def cases_of(layout: HashGridLayout, name: str, points: Tensor) -> list[Case]:
    """The two directions of one grid."""
    table = torch.randn(layout.num_entries, layout.num_features).requires_grad_()
    cotangent = torch.randn(len(points), layout.output_size)
    compiled = torch.compile(hash_grid_reference)

    def forward(encoding: Encoding) -> Callable[[], object]:
        def work() -> Tensor:
            with torch.no_grad():
                return encoding(points, table, layout)

        return work

    def both(encoding: Encoding) -> Callable[[], object]:
        return lambda: torch.autograd.grad(encoding(points, table, layout), table, cotangent)

    # Each point reads eight entries of each level; on the way back it also writes them.
    num_reads = 8 * cotangent.numel() + cotangent.numel() + points.numel()
    return [
        Case(
            op="hash_grid",
            what=f"{name}, {what}",
            kernel=direction(hash_grid),
            reference=direction(hash_grid_reference),
            compiled=direction(compiled),
            num_items=len(points),
            num_flops=num_passes * 2.0 * 8 * cotangent.numel(),
            num_bytes=4.0 * (num_reads if num_passes == 1 else 3 * num_reads),
        )
        for what, direction, num_passes in (
            ("forward", forward, 1),
            ("forward + backward", both, 2),
        )
    ]


def second_order_cases(layout: HashGridLayout, points: Tensor) -> list[Case]:
    """An eikonal loss: gradient of the features by position, and its gradient by the table."""
    table = torch.randn(layout.num_entries, layout.num_features).requires_grad_()
    moving = points.clone().requires_grad_()

    def step(encoding: Encoding) -> Callable[[], object]:
        def work() -> object:
            features = encoding(moving, table, layout)
            (gradient,) = torch.autograd.grad(features.sum(), moving, create_graph=True)
            return torch.autograd.grad((gradient**2).sum(), table)

        return work

    return [
        Case(
            op="hash_grid",
            what="L16 F2 T2^17, rays, eikonal step",
            kernel=step(hash_grid),
            reference=step(hash_grid_reference),
            num_items=len(points),
        )
    ]

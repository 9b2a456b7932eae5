# SPDX-License-Identifier: Apache-2.0
"""Projection of a scene's Gaussians to one training image."""

from collections.abc import Callable

import torch
from torch import Tensor

from diorama.bench.case import Case, Work
from diorama.bench.splats import NUM_GAUSSIANS, gaussians
from diorama.ops.project_gaussians import (
    ProjectedGaussians,
    SplatModel,
    View,
    project_gaussians,
    project_gaussians_reference,
)

# Numbers per Gaussian: 11 in and 9 out; back, 11 and the two half extents in, gradients of seven
# outputs in and of 11 inputs out.
FORWARD_BYTES, BACKWARD_BYTES = 4 * (11 + 9), 4 * (11 + 2 + 7 + 11)


def cases() -> list[Case]:
    """A pinhole camera as in training, and a fisheye."""
    return [
        _case(model, with_backward)
        for model in ("pinhole", "fisheye")
        for with_backward in (False, True)
    ]


def _case(model: SplatModel, with_backward: bool) -> Case:
    inputs = [t.requires_grad_(with_backward) for t in gaussians()]
    camera = torch.eye(3, 4), torch.tensor([550.0, 550.0, 200.0, 200.0])
    view = View(400, 400, model=model, antialiased=True)
    generator = torch.Generator().manual_seed(1)
    cotangents = [
        torch.randn(NUM_GAUSSIANS, *shape, generator=generator) for shape in ((2,), (3,), ())
    ]

    def work(op: Callable[..., ProjectedGaussians]) -> Work:
        if not with_backward:
            return lambda: op(*inputs, *camera, view)
        return lambda: step(op)

    def step(op: Callable[..., ProjectedGaussians]) -> tuple[Tensor, ...]:
        seen = op(*inputs, *camera, view)
        return torch.autograd.grad([seen.centers, seen.conics, seen.opacities], inputs, cotangents)

    return Case(
        op="project_gaussians",
        what=f"{model}, {'forward + backward' if with_backward else 'forward'}",
        kernel=work(project_gaussians),
        reference=work(project_gaussians_reference),
        num_items=NUM_GAUSSIANS,
        unit="Gaussians",
        num_bytes=float(NUM_GAUSSIANS * (FORWARD_BYTES + with_backward * BACKWARD_BYTES)),
    )

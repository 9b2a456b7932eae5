# SPDX-License-Identifier: Apache-2.0
"""The distortion loss of packed rays."""

from collections.abc import Callable

import torch
from torch import Tensor

from diorama.bench.case import Case
from diorama.bench.packed_rays import NUM_RAYS, ray_offsets
from diorama.ops.distortion import distortion, distortion_reference


def cases() -> list[Case]:
    """Forward alone, and forward with backward to the weights: in training t is fixed."""
    offsets = ray_offsets()
    num_samples = int(offsets[-1])
    weights, delta = torch.rand(num_samples), 0.1 * torch.rand(num_samples)
    t, wanted = delta.cumsum(0), weights.clone().requires_grad_()
    compiled = torch.compile(distortion_reference)

    def forward(op: Callable[..., Tensor]) -> Tensor:
        return op(weights, t, delta, offsets)

    def step(op: Callable[..., Tensor]) -> tuple[Tensor, ...]:
        return torch.autograd.grad(op(wanted, t, delta, offsets).sum(), wanted)

    return [
        Case(
            "distortion",
            f"{NUM_RAYS} rays, {direction}",
            lambda work=work: work(distortion),
            lambda work=work: work(distortion_reference),
            num_samples,
            "samples",
            lambda work=work: work(compiled),
            4 * num_numbers * num_samples,
        )
        for direction, work, num_numbers in (
            ("forward", forward, 3),
            ("forward + backward", step, 3 + 4),
        )
    ]

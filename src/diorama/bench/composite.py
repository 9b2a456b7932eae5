# SPDX-License-Identifier: Apache-2.0
"""Compositing of dense and of packed rays."""

from collections.abc import Callable

import torch
from torch import Tensor

from diorama.bench.case import Case
from diorama.bench.packed_rays import NUM_RAYS, ray_offsets
from diorama.ops.composite import (
    Composite,
    composite,
    composite_dense,
    composite_dense_reference,
    composite_reference,
)

NUM_SAMPLES = 64
NUM_CHANNELS = 3
# Floats per sample. Forward: sigma, delta, values in, weight and transmittance out. Backward: these
# two, delta and values in, gradients of sigma and values out.
FORWARD_BYTES = 4 * (2 + NUM_CHANNELS + 2)
BACKWARD_BYTES = 4 * (3 + 2 * NUM_CHANNELS + 1)


def _pair(
    what: str,
    kernel: Callable[..., Composite],
    reference: Callable[..., Composite],
    shape: tuple[int, ...],
    *offsets: Tensor,
) -> list[Case]:
    """Forward alone, and forward with backward to sigma and values: in training delta is fixed."""
    sigma, delta = 8 * torch.rand(shape), 0.1 * torch.rand(shape)
    values, cotangent = torch.rand(*shape, NUM_CHANNELS), torch.rand(NUM_RAYS, NUM_CHANNELS)
    wanted = sigma.clone().requires_grad_(), values.clone().requires_grad_()
    compiled = torch.compile(reference)

    def forward(op: Callable[..., Composite]) -> Composite:
        return op(sigma, delta, values, *offsets)

    def step(op: Callable[..., Composite]) -> tuple[Tensor, ...]:
        result = op(wanted[0], delta, wanted[1], *offsets)
        return torch.autograd.grad([result.values], wanted, [cotangent])

    return [
        Case(
            "composite",
            f"{what}, {direction}",
            lambda work=work: work(kernel),
            lambda work=work: work(reference),
            sigma.numel(),
            "samples",
            lambda work=work: work(compiled),
            num_bytes * sigma.numel(),
        )
        for direction, work, num_bytes in (
            ("forward", forward, FORWARD_BYTES),
            ("forward + backward", step, FORWARD_BYTES + BACKWARD_BYTES),
        )
    ]


def cases() -> list[Case]:
    """Rays of one length, and rays of any length packed one after the other."""
    dense, packed = composite_dense_reference, composite_reference
    offsets = ray_offsets()
    return [
        *_pair(
            f"dense {NUM_RAYS} x {NUM_SAMPLES}", composite_dense, dense, (NUM_RAYS, NUM_SAMPLES)
        ),
        *_pair(f"packed {NUM_RAYS} rays", composite, packed, (int(offsets[-1]),), offsets),
    ]

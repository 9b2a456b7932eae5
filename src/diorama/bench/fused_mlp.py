# SPDX-License-Identifier: Apache-2.0
"""The fused perceptron against torch's linear layers, on the networks of hash-grid methods."""

import itertools
from collections.abc import Callable

import torch
from torch import Tensor

from diorama.bench.case import Case, Work
from diorama.ops.fused_mlp import fused_mlp, fused_mlp_reference

_NETWORKS = (
    ((32, 64, 64, 16), 2**18),
    ((32, 64, 64, 16), 2**16),
    ((32, 64, 16), 2**15),
    ((32, 64, 64, 3), 2**15),
    ((32, 64, 3), 2**13),
)


def cases() -> list[Case]:
    """Forward, and forward with the gradients of inputs and weights, for each network."""
    compiled = torch.compile(fused_mlp_reference)
    return [
        _case(sizes, num_points, with_backward, compiled)
        for sizes, num_points in _NETWORKS
        for with_backward in (False, True)
    ]


def _case(
    sizes: tuple[int, ...], num_points: int, with_backward: bool, compiled: Callable[..., Tensor]
) -> Case:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(num_points, sizes[0], generator=generator).requires_grad_(with_backward)
    weights = [
        (torch.randn(outputs, inputs, generator=generator) * (2 / inputs) ** 0.5).requires_grad_(
            with_backward
        )
        for inputs, outputs in itertools.pairwise(sizes)
    ]
    grad_out = torch.randn(num_points, sizes[-1], generator=generator)

    def work(function: Callable[..., Tensor]) -> Work:
        def run() -> object:
            out = function(x, weights, None)
            if with_backward:
                return torch.autograd.grad(out, (x, *weights), grad_out)
            return out

        return run

    # A layer costs two operations per weight and point, and twice that again on the way back.
    num_flops = 2.0 * num_points * sum(w.numel() for w in weights) * (3 if with_backward else 1)
    ends = sizes[0] + sizes[-1]
    direction = "forward + backward" if with_backward else "forward"
    return Case(
        op="fused_mlp",
        what=f"{'-'.join(map(str, sizes))}, {num_points} rows, {direction}",
        kernel=work(fused_mlp),
        reference=work(fused_mlp_reference),
        compiled=work(compiled),
        num_items=num_points,
        num_bytes=4.0 * num_points * ends * (3 if with_backward else 1),
        num_flops=num_flops,
    )

# SPDX-License-Identifier: Apache-2.0
"""The exponential as a density activation, with a gradient that cannot explode."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

LARGEST = 15.0


class _TruncatedExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.exp()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return gradients[0] * x.clamp(max=LARGEST).exp()


def truncated_exp(x: Float[Tensor, "*N"]) -> Float[Tensor, "*N"]:
    """exp(x); its derivative is exp(min(x, 15)), as in Instant-NGP and nerfacto."""
    return _TruncatedExp.apply(x)

# SPDX-License-Identifier: Apache-2.0
"""A small multilayer perceptron of L layers over N points, all layers in one pass.

    h_0 = x,   h_k = activation(W_k h_{k-1} + b_k),   out = head(W_L h_{L-1} + b_L)

Weights are [outputs, inputs] like those of `torch.nn.Linear`. `softplus` is
log(1 + exp(beta z)) / beta, and z itself where beta z > 20. The head `exp` is exp(z) with the
gradient exp(min(z, 15)), so that one large output cannot throw training off.

The kernel is differentiable once. Where second derivatives are needed (eikonal losses), call the
reference: it is torch all the way, and differentiable any number of times.
"""

import math
from collections.abc import Sequence
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from diorama import native
from diorama.ops.once import once_differentiable

Activation = Literal["relu", "softplus", "none"]
"""What follows every layer but the last."""
Head = Literal["none", "relu", "softplus", "sigmoid", "exp"]
"""What follows the last layer."""

_LARGEST_KEPT = 2**25
"""Bytes of hidden values that are kept. Beyond the cache, and in memory that the system has to map
anew at each call, it is faster to compute them again."""


def fused_mlp_reference(
    x: Float[Tensor, "N I"],
    weights: Sequence[Float[Tensor, "_ _"]],
    biases: Sequence[Float[Tensor, " _"]] | None,
    activation: Activation = "relu",
    head: Head = "none",
    beta: float = 1.0,
) -> Float[Tensor, "N O"]:
    """The module's formulas in torch, differentiable any number of times."""
    _check_sizes(x, weights, biases)
    last = len(weights) - 1
    for k, weight in enumerate(weights):
        z = functional.linear(x, weight, None if biases is None else biases[k])
        x = _activated(z, head if k == last else activation, beta)
    return x


def fused_mlp(
    x: Float[Tensor, "N I"],
    weights: Sequence[Float[Tensor, "_ _"]],
    biases: Sequence[Float[Tensor, " _"]] | None,
    activation: Activation = "relu",
    head: Head = "none",
    beta: float = 1.0,
) -> Float[Tensor, "N O"]:
    """Evaluate the network; once differentiable in x, weights and biases.

    Any sizes work; multiples of 16 are fastest. For the backward pass, hidden values are kept if
    they take at most 32 MiB and computed again otherwise, with the same bits.

    >>> fused_mlp(torch.ones(1, 2), [torch.ones(3, 2), torch.ones(1, 3)], None)
    tensor([[6.]])
    """
    _check_sizes(x, weights, biases)
    if not native.serves(x, *weights, *(biases or ())):
        return fused_mlp_reference(x, weights, biases, activation, head, beta)
    parameters = (*weights, *(biases or ()))
    is_backward_expected = torch.is_grad_enabled() and any(
        t.requires_grad for t in (x, *parameters)
    )
    return _FusedMLP.apply(
        x, activation, head, beta, is_backward_expected, len(weights), *parameters
    )


def _activated(z: Tensor, kind: Head, beta: float) -> Tensor:
    if kind == "relu":
        return z.relu()
    if kind == "softplus":
        return functional.softplus(z, beta=beta, threshold=20)
    if kind == "sigmoid":
        return z.sigmoid()
    if kind == "exp":
        return _exp_with_bounded_slope(z)
    return z


def _exp_with_bounded_slope(z: Tensor, bound: float = 15.0) -> Tensor:
    """exp(z), whose derivative beyond the bound is that at the bound."""
    straight = z.detach().exp() + math.exp(bound) * (z - z.detach())
    return torch.where(z > bound, straight, z.clamp(max=bound).exp())


def _kept_hidden(x: Tensor, weights: list[Tensor]) -> Tensor | None:
    """Room for the hidden values, or None where computing them again is faster."""
    size = native.module.fused_mlp_hidden_size(x, weights)
    return x.new_empty(size) if size * x.element_size() <= _LARGEST_KEPT else None


def _check_sizes(x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor] | None) -> None:
    if not weights:
        raise ValueError("weights must have at least one layer, got none")
    if biases is not None and len(biases) != len(weights):
        raise ValueError(f"biases must be one per layer ({len(weights)}), got {len(biases)}")
    num_inputs = x.shape[1]
    for k, weight in enumerate(weights):
        if weight.shape[1] != num_inputs:
            raise ValueError(
                f"weights[{k}] must take {num_inputs} inputs, got the shape {tuple(weight.shape)}"
            )
        num_inputs = weight.shape[0]
        if biases is not None and biases[k].shape != (num_inputs,):
            raise ValueError(
                f"biases[{k}] must have the shape {(num_inputs,)}, got {tuple(biases[k].shape)}"
            )


class _FusedMLP(torch.autograd.Function):
    """The native kernel; biases follow the weights in `parameters`, or are absent."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        activation: Activation,
        head: Head,
        beta: float,
        is_backward_expected: bool,
        num_layers: int,
        *parameters: Tensor,
    ) -> Tensor:
        x, *contiguous = (t.detach().contiguous() for t in (x, *parameters))
        weights, biases = contiguous[:num_layers], contiguous[num_layers:]
        out = x.new_empty(len(x), len(weights[-1]))
        hidden = _kept_hidden(x, weights) if is_backward_expected else None
        native.module.fused_mlp_forward(
            x, weights, biases, activation, head, beta, out, hidden, native.num_threads()
        )
        ctx.save_for_backward(x, out, hidden, *contiguous)
        ctx.settings = (activation, head, beta)
        ctx.num_layers = num_layers
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_out: Tensor) -> tuple[Tensor | None, ...]:
        x, out, hidden, *parameters = ctx.saved_tensors
        activation, head, beta = ctx.settings
        is_x_needed, _, _, _, _, _, *are_needed = ctx.needs_input_grad
        weights, biases = parameters[: ctx.num_layers], parameters[ctx.num_layers :]
        # The layers' gradients come together: whoever freezes one mostly freezes all.
        grad_parameters = [torch.empty_like(t) for t in parameters] if any(are_needed) else []
        grad_x = torch.empty_like(x) if is_x_needed else None
        native.module.fused_mlp_backward(
            x,
            weights,
            biases,
            activation,
            head,
            beta,
            out,
            hidden,
            grad_out.contiguous(),
            grad_x,
            grad_parameters[: ctx.num_layers],
            grad_parameters[ctx.num_layers :],
            native.num_threads(),
        )
        wanted = grad_parameters or [None] * len(parameters)
        return grad_x, None, None, None, None, None, *wanted

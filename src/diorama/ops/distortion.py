# SPDX-License-Identifier: Apache-2.0
"""The distortion loss of mip-NeRF 360 (its equation 15): it pulls a ray's weights together.

    L = sum_ij w_i w_j |t_i - t_j| + 1/3 sum_i w_i^2 delta_i

t are the midpoints of a ray's intervals, front to back, and delta their lengths. Since t does not
decrease, the first sum is 2 sum_i w_i D_i with D_i = sum_{j<i} w_j (t_i - t_j), and

    D_i = D_{i-1} + (t_i - t_{i-1}) sum_{j<i} w_j

takes linear time; no term cancels another.
"""

from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from diorama import native
from diorama.ops.once import once_differentiable
from diorama.ops.packed import Slots, in_front


def distortion_reference(
    weights: Float[Tensor, " N"],
    t: Float[Tensor, " N"],
    delta: Float[Tensor, " N"],
    ray_offsets: Int64[Tensor, " R_plus_1"],
) -> Float[Tensor, " R"]:
    """The module's formulas in torch, differentiable any number of times."""
    slots = Slots.of(ray_offsets, len(weights))
    w, midpoint = slots.table(weights), slots.table(t)
    gap = torch.cat([torch.zeros_like(midpoint[:, :1]), midpoint.diff()], dim=-1)
    distance = (in_front(w) * gap).cumsum(-1)
    return (w * (2 * distance + w * slots.table(delta) / 3)).sum(-1)


def distortion(
    weights: Float[Tensor, " N"],
    t: Float[Tensor, " N"],
    delta: Float[Tensor, " N"],
    ray_offsets: Int64[Tensor, " R_plus_1"],
) -> Float[Tensor, " R"]:
    """The loss of each ray; once differentiable in weights, t and delta.

    >>> two_halves = torch.tensor([0.5, 0.5])
    >>> distortion(two_halves, torch.tensor([1.0, 3.0]), torch.zeros(2), torch.tensor([0, 2]))
    tensor([1.])
    """
    for name, other in (("t", t), ("delta", delta)):
        if other.shape != weights.shape:
            raise ValueError(
                f"{name} must have the shape of weights {tuple(weights.shape)}, "
                f"got {tuple(other.shape)}"
            )
    if not native.serves(weights, t, delta) or not native.serves_index(ray_offsets):
        return distortion_reference(weights, t, delta, ray_offsets)
    return _Distortion.apply(weights, t, delta, ray_offsets)


class _Distortion(torch.autograd.Function):
    """The native kernel; the way back needs nothing but the inputs."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, t: Tensor, delta: Tensor, ray_offsets: Tensor) -> Tensor:
        weights, t, delta = (x.detach().contiguous() for x in (weights, t, delta))
        ray_offsets = ray_offsets.contiguous()
        loss = weights.new_empty(len(ray_offsets) - 1)
        native.module.distortion_forward(weights, t, delta, ray_offsets, loss, native.num_threads())
        ctx.save_for_backward(weights, t, delta, ray_offsets)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_loss: Tensor) -> tuple[Tensor | None, ...]:
        weights, t, delta, ray_offsets = ctx.saved_tensors
        grad_weights, grad_t, grad_delta = (
            torch.empty_like(x) if is_needed else None
            for x, is_needed in zip((weights, t, delta), ctx.needs_input_grad[:3], strict=True)
        )
        native.module.distortion_backward(
            weights,
            t,
            delta,
            ray_offsets,
            grad_loss.contiguous(),
            grad_weights,
            grad_t,
            grad_delta,
            native.num_threads(),
        )
        return grad_weights, grad_t, grad_delta, None

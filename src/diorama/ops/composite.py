# SPDX-License-Identifier: Apache-2.0
"""Emission-absorption quadrature: what a ray sees of its samples, ordered front to back.

    tau_i = sigma_i delta_i,   T_i = exp(-sum_{j<i} tau_j),   w_i = T_i (1 - exp(-tau_i))
    ray value = sum_i w_i v_i,   opacity = sum_i w_i

N samples of R rays lie one ray after the other; ray r owns `ray_offsets[r]:ray_offsets[r + 1]`
and may be empty. The composited values do not include a background: add
`(1 - opacity) * background`.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from diorama import native
from diorama.ops.once import once_differentiable


@dataclass(frozen=True)
class Composite:
    """What compositing gives: one weight per sample, one value and opacity per ray."""

    weights: Float[Tensor, "*samples"]
    values: Float[Tensor, "R C"]
    opacity: Float[Tensor, " R"]


def composite_dense_reference(
    sigma: Float[Tensor, "R S"], delta: Float[Tensor, "R S"], values: Float[Tensor, "R S C"]
) -> Composite:
    """The module's formulas in torch, differentiable any number of times."""
    tau = sigma * delta
    # Summed over the samples in front only. Subtracting tau_i from an inclusive sum would lose
    # everything when the last delta is 1e10.
    in_front = torch.cat([torch.zeros_like(tau[:, :1]), tau[:, :-1].cumsum(-1)], dim=-1)
    weights = torch.exp(-in_front) * -torch.expm1(-tau)
    return Composite(weights, (weights[..., None] * values).sum(1), weights.sum(1))


def composite_reference(
    sigma: Float[Tensor, " N"],
    delta: Float[Tensor, " N"],
    values: Float[Tensor, "N C"],
    ray_offsets: Int64[Tensor, " R_plus_1"],
) -> Composite:
    """The same for packed rays, through a table as wide as the longest ray."""
    lengths = ray_offsets.diff()
    num_rays, num_samples = len(lengths), len(sigma)
    width = int(lengths.max()) if num_rays else 0
    ray = torch.arange(num_rays, device=sigma.device).repeat_interleave(
        lengths, output_size=num_samples
    )
    slot = torch.arange(num_samples, device=sigma.device) - ray_offsets[ray]

    def table(packed: Tensor) -> Tensor:
        empty = packed.new_zeros((num_rays, width, *packed.shape[1:]))
        return empty.index_put((ray, slot), packed)

    dense = composite_dense_reference(table(sigma), table(delta), table(values))
    return Composite(dense.weights[ray, slot], dense.values, dense.opacity)


def composite(
    sigma: Float[Tensor, " N"],
    delta: Float[Tensor, " N"],
    values: Float[Tensor, "N C"],
    ray_offsets: Int64[Tensor, " R_plus_1"],
) -> Composite:
    """Composite packed rays; once differentiable in sigma, delta and values through all outputs.

    >>> offsets = torch.tensor([0, 2, 2])  # two samples, then an empty ray
    >>> composite(torch.ones(2), torch.ones(2), torch.ones(2, 1), offsets).opacity
    tensor([0.8647, 0.0000])
    """
    if delta.shape != sigma.shape:
        raise ValueError(_shape_message("delta", sigma.shape, delta.shape))
    if values.shape[:1] != sigma.shape:
        raise ValueError(_shape_message("values without its last axis", sigma.shape, values.shape))
    if not native.serves(sigma, delta, values) or not native.serves_index(ray_offsets):
        return composite_reference(sigma, delta, values, ray_offsets)
    return _composited(sigma, delta, values, ray_offsets)


def composite_dense(
    sigma: Float[Tensor, "R S"], delta: Float[Tensor, "R S"], values: Float[Tensor, "R S C"]
) -> Composite:
    """Composite R rays of S samples each; once differentiable like `composite`."""
    if delta.shape != sigma.shape:
        raise ValueError(_shape_message("delta", sigma.shape, delta.shape))
    if values.shape[:2] != sigma.shape:
        raise ValueError(_shape_message("values without its last axis", sigma.shape, values.shape))
    if not native.serves(sigma, delta, values):
        return composite_dense_reference(sigma, delta, values)
    return _composited(sigma, delta, values, None)


def _shape_message(name: str, expected: torch.Size, got: torch.Size) -> str:
    return f"{name} must have the shape of sigma {tuple(expected)}, got {tuple(got)}"


def _composited(
    sigma: Tensor, delta: Tensor, values: Tensor, ray_offsets: Tensor | None
) -> Composite:
    """By the native kernel, and by way of autograd only where there is something to be kept.

    Without offsets sigma and delta have a row, and values a table, for each ray.
    """
    ray_offsets = None if ray_offsets is None else ray_offsets.contiguous()
    if sigma.requires_grad or delta.requires_grad or values.requires_grad:
        if torch.is_grad_enabled():
            return Composite(*_Composite.apply(sigma, delta, values, ray_offsets))
        sigma, delta, values = sigma.detach(), delta.detach(), values.detach()
    sigma, delta, values = sigma.contiguous(), delta.contiguous(), values.contiguous()
    return Composite(*_forward(sigma, delta, values, ray_offsets, None))


def _forward(
    sigma: Tensor,
    delta: Tensor,
    values: Tensor,
    ray_offsets: Tensor | None,
    transmittance: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Weights, ray values and opacity; fills the transmittance behind each sample, if given."""
    num_rays = len(sigma) if ray_offsets is None else len(ray_offsets) - 1
    weights = torch.empty_like(sigma)
    ray_values = sigma.new_empty(num_rays, values.shape[-1])
    opacity = sigma.new_empty(num_rays)
    native.module.composite_forward(
        sigma,
        delta,
        values,
        ray_offsets,
        weights,
        transmittance,
        ray_values,
        opacity,
        native.num_threads(),
    )
    return weights, ray_values, opacity


class _Composite(torch.autograd.Function):
    """The native kernel; it also keeps the transmittance behind each sample for the way back."""

    @staticmethod
    def forward(
        ctx: Any, sigma: Tensor, delta: Tensor, values: Tensor, ray_offsets: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        sigma, delta, values = (t.detach().contiguous() for t in (sigma, delta, values))
        transmittance = torch.empty_like(sigma)
        weights, ray_values, opacity = _forward(sigma, delta, values, ray_offsets, transmittance)
        ctx.save_for_backward(sigma, delta, values, ray_offsets, weights, transmittance)
        ctx.set_materialize_grads(False)
        return weights, ray_values, opacity

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any,
        grad_weights: Tensor | None,
        grad_ray_values: Tensor | None,
        grad_opacity: Tensor | None,
    ) -> tuple[Tensor | None, ...]:
        sigma, delta, values, ray_offsets, weights, transmittance = ctx.saved_tensors
        grad_sigma, grad_delta, grad_values = (
            torch.empty_like(t) if is_needed else None
            for t, is_needed in zip((sigma, delta, values), ctx.needs_input_grad[:3], strict=True)
        )
        num_rays = len(sigma) if ray_offsets is None else len(ray_offsets) - 1
        native.module.composite_backward(
            sigma,
            delta,
            values,
            ray_offsets,
            weights,
            transmittance,
            None if grad_weights is None else grad_weights.contiguous(),
            _or_zeros(grad_ray_values, values, (num_rays, values.shape[-1])),
            None if grad_opacity is None else grad_opacity.contiguous(),
            grad_sigma,
            grad_delta,
            grad_values,
            native.num_threads(),
        )
        return grad_sigma, grad_delta, grad_values, None


def _or_zeros(gradient: Tensor | None, like: Tensor, shape: tuple[int, ...]) -> Tensor:
    return like.new_zeros(shape) if gradient is None else gradient.contiguous()

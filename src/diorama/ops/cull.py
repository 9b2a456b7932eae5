# SPDX-License-Identifier: Apache-2.0
"""Which samples of packed rays can be seen, so that only these are asked for gradients.

    tau_i = sigma_i delta_i >= 0,   T_i = exp(-sum_{j<i} tau_j),   alpha_i = 1 - exp(-tau_i)

A sample is kept if T_i >= min_transmittance and alpha_i >= min_alpha. T counts all samples in
front, those dropped for their alpha too.
"""

import math

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from diorama import native
from diorama.ops.packed import Slots, in_front


@torch.no_grad()
def cull_reference(
    sigma: Float[Tensor, " N"],
    delta: Float[Tensor, " N"],
    ray_offsets: Int64[Tensor, " R_plus_1"],
    min_transmittance: float = 1e-4,
    min_alpha: float = 0.0,
) -> tuple[Int64[Tensor, " M"], Int64[Tensor, " R_plus_1"]]:
    """The module's formulas in torch, through a table as wide as the longest ray."""
    slots = Slots.of(ray_offsets, len(sigma))
    tau = slots.table(sigma * delta)
    transmittance, alpha = torch.exp(-in_front(tau)), -torch.expm1(-tau)
    is_kept = (transmittance >= min_transmittance) & (alpha >= min_alpha)
    kept = is_kept[slots.ray, slots.place].nonzero().flatten()
    return kept, torch.searchsorted(kept, ray_offsets)


@torch.no_grad()
def cull(
    sigma: Float[Tensor, " N"],
    delta: Float[Tensor, " N"],
    ray_offsets: Int64[Tensor, " R_plus_1"],
    min_transmittance: float = 1e-4,
    min_alpha: float = 0.0,
) -> tuple[Int64[Tensor, " M"], Int64[Tensor, " R_plus_1"]]:
    """Indices of the samples that can be seen, in order, and the ray offsets among them.

    >>> offsets = torch.tensor([0, 3, 4])
    >>> cull(torch.tensor([0.0, 20.0, 5.0, 1.0]), torch.ones(4), offsets)
    (tensor([0, 1, 3]), tensor([0, 2, 3]))
    """
    if delta.shape != sigma.shape:
        raise ValueError(
            f"delta must have the shape of sigma {tuple(sigma.shape)}, got {tuple(delta.shape)}"
        )
    if not native.serves(sigma, delta) or not native.serves_index(ray_offsets):
        return cull_reference(sigma, delta, ray_offsets, min_transmittance, min_alpha)
    # Bounds on optical depth say the same without an exponential.
    max_depth = -math.log(min_transmittance) if min_transmittance > 0 else math.inf
    min_tau = -math.log1p(-min_alpha) if min_alpha < 1 else math.inf
    samples = sigma.contiguous(), delta.contiguous(), ray_offsets.contiguous(), max_depth, min_tau
    new_offsets = torch.empty_like(samples[2])
    threads = native.num_threads()
    native.module.cull_count(*samples, new_offsets, threads)
    kept = new_offsets.new_empty(int(new_offsets[-1]))
    native.module.cull_write(*samples, new_offsets, kept, threads)
    return kept, new_offsets

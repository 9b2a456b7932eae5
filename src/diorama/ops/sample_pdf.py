# SPDX-License-Identifier: Apache-2.0
"""Inverse-CDF sampling of a piecewise-constant density: new samples where the old weights are."""

import torch
from jaxtyping import Float
from torch import Tensor

EMPTY = 1e-5
"""Added to each weight, so that a ray of zeros has a density, and the smallest CDF step that is
divided by; both as in the NeRF paper's code."""


@torch.no_grad()
def sample_pdf(
    bins: Float[Tensor, "R B_plus_1"],
    weights: Float[Tensor, "R B"],
    num_samples: int,
    generator: torch.Generator | None = None,
) -> Float[Tensor, "R {num_samples}"]:
    """Draw `num_samples` positions per ray, each bin in proportion to its weight + 1e-5.

    u is uniform in [0, 1) from `generator`; without one it is `linspace(0, 1, num_samples)`, both
    ends included, and the result is sorted. The result carries no gradient.

    >>> bins, weights = torch.arange(5.0)[None], torch.tensor([[0.1, 0.6, 0.2, 0.1]])
    >>> sample_pdf(bins, weights, 5)
    tensor([[0.0000, 1.2500, 1.6667, 2.2500, 4.0000]])
    """
    num_rays, num_bins = weights.shape
    if bins.shape != (num_rays, num_bins + 1):
        raise ValueError(
            f"bins must have the shape {(num_rays, num_bins + 1)}, one more edge than weights "
            f"has bins, got {tuple(bins.shape)}"
        )
    if num_bins == 0:
        raise ValueError("weights must have at least one bin per ray, got none")
    weights = weights + EMPTY
    cdf = (weights / weights.sum(-1, keepdim=True)).cumsum(-1)
    cdf = torch.cat([torch.zeros_like(cdf[:, :1]), cdf], dim=-1)

    if generator is None:
        u = torch.linspace(0, 1, num_samples, dtype=bins.dtype, device=bins.device)
        u = u.expand(num_rays, num_samples).contiguous()
    else:
        u = torch.rand(
            num_rays, num_samples, generator=generator, dtype=bins.dtype, device=bins.device
        )
    above = torch.searchsorted(cdf, u, right=True)
    below = (above - 1).clamp(min=0)
    above = above.clamp(max=num_bins)
    cdf_below, cdf_above = cdf.gather(-1, below), cdf.gather(-1, above)
    bin_below, bin_above = bins.gather(-1, below), bins.gather(-1, above)
    step = cdf_above - cdf_below
    step = torch.where(step < EMPTY, torch.ones_like(step), step)
    return bin_below + (u - cdf_below) / step * (bin_above - bin_below)

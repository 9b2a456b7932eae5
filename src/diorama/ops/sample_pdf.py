# SPDX-License-Identifier: Apache-2.0
"""Inverse-CDF sampling of a piecewise-constant density: new samples where the old weights are.

R rays have B bins each; a bin's share of the density is its weight plus a padding. The CDF rises
linearly within a bin, and a sample lies where it reaches u. Nothing here carries a gradient.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from diorama import native

EMPTY = 1e-5
"""Added to each weight by `sample_pdf`, so that a ray of zeros has a density, and the smallest CDF
step that it divides by; both as in the NeRF paper's code."""


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
    _check_bins("bins", bins, weights)
    u = _places(bins, num_samples, generator)
    if not native.serves(bins, weights):
        return _invert_reference(bins, weights, u, EMPTY, EMPTY)
    return _invert(bins, weights, u, None, num_samples, padding=EMPTY, smallest_step=EMPTY)


@torch.no_grad()
def sample_pdf_reference(
    bins: Float[Tensor, "R B_plus_1"],
    weights: Float[Tensor, "R B"],
    num_samples: int,
    generator: torch.Generator | None = None,
) -> Float[Tensor, "R {num_samples}"]:
    """`sample_pdf` in torch."""
    _check_bins("bins", bins, weights)
    return _invert_reference(bins, weights, _places(bins, num_samples, generator), EMPTY, EMPTY)


@torch.no_grad()
def resample_edges(
    edges: Float[Tensor, "R B_plus_1"],
    weights: Float[Tensor, "R B"],
    num_samples: int,
    jitter: Float[Tensor, " R"] | None = None,
    padding: float = 0.01,
) -> Float[Tensor, "R {num_samples}+1"]:
    """Sorted edges of `num_samples` new bins, each bin in proportion to its weight + padding.

    u_k = (k + jitter) / (num_samples + 1) for k = 0 .. num_samples with one jitter in [0, 1) for
    the whole ray; without `jitter` it is 1/2. The old edges are dropped.

    >>> edges, weights = torch.arange(3.0)[None], torch.tensor([[0.0, 0.99]])
    >>> resample_edges(edges, weights, 1)
    tensor([[1.2400, 1.7450]])
    """
    _check_resampling(edges, weights, jitter, padding)
    if not native.serves(edges, weights, *([] if jitter is None else [jitter])):
        return resample_edges_reference(edges, weights, num_samples, jitter, padding)
    return _invert(
        edges, weights, None, jitter, num_samples + 1,
        padding=padding, smallest_step=torch.finfo(edges.dtype).tiny,
    )  # fmt: skip


@torch.no_grad()
def resample_edges_reference(
    edges: Float[Tensor, "R B_plus_1"],
    weights: Float[Tensor, "R B"],
    num_samples: int,
    jitter: Float[Tensor, " R"] | None = None,
    padding: float = 0.01,
) -> Float[Tensor, "R {num_samples}+1"]:
    """`resample_edges` in torch."""
    _check_resampling(edges, weights, jitter, padding)
    k = torch.arange(num_samples + 1, dtype=edges.dtype, device=edges.device)
    shift = edges.new_full((len(edges),), 0.5) if jitter is None else jitter
    u = (k + shift[:, None]) / (num_samples + 1)
    return _invert_reference(edges, weights, u, padding, torch.finfo(edges.dtype).tiny)


def _check_bins(name: str, edges: Tensor, weights: Tensor) -> None:
    num_rays, num_bins = weights.shape
    if edges.shape != (num_rays, num_bins + 1):
        raise ValueError(
            f"{name} must have the shape {(num_rays, num_bins + 1)}, one more edge than weights "
            f"has bins, got {tuple(edges.shape)}"
        )
    if num_bins == 0:
        raise ValueError("weights must have at least one bin per ray, got none")


def _check_resampling(
    edges: Tensor, weights: Tensor, jitter: Tensor | None, padding: float
) -> None:
    _check_bins("edges", edges, weights)
    if jitter is not None and jitter.shape != (len(weights),):
        raise ValueError(
            f"jitter must have the shape {(len(weights),)}, one number per ray, got "
            f"{tuple(jitter.shape)}"
        )
    if not padding > 0:
        raise ValueError(f"padding must be positive, so that empty rays have a CDF, got {padding}")


def _places(bins: Tensor, num_samples: int, generator: torch.Generator | None) -> Tensor:
    """The u of `sample_pdf`; one row for all rays where they are the same."""
    if generator is None:
        return torch.linspace(0, 1, num_samples, dtype=bins.dtype, device=bins.device)[None]
    shape = (len(bins), num_samples)
    return torch.rand(shape, generator=generator, dtype=bins.dtype, device=bins.device)


def _invert_reference(
    edges: Float[Tensor, "R B_plus_1"],
    weights: Float[Tensor, "R B"],
    u: Float[Tensor, "#R S"],
    padding: float,
    smallest_step: float,
) -> Float[Tensor, "R S"]:
    """Where the CDF reaches u; a bin over which it rises by less than `smallest_step` is taken to
    rise by 1, so that its samples stay near its lower edge."""
    num_rays, num_bins = weights.shape
    weights = weights + padding
    cdf = (weights / weights.sum(-1, keepdim=True)).cumsum(-1)
    cdf = torch.cat([torch.zeros_like(cdf[:, :1]), cdf], dim=-1)
    u = u.expand(num_rays, -1).contiguous()
    above = torch.searchsorted(cdf, u, right=True)
    below = (above - 1).clamp(min=0)
    above = above.clamp(max=num_bins)
    cdf_below, cdf_above = cdf.gather(-1, below), cdf.gather(-1, above)
    edge_below, edge_above = edges.gather(-1, below), edges.gather(-1, above)
    step = cdf_above - cdf_below
    step = torch.where(step < smallest_step, torch.ones_like(step), step)
    samples = edge_below + (u - cdf_below) / step * (edge_above - edge_below)
    return torch.minimum(samples, edge_above)


def _invert(
    edges: Tensor,
    weights: Tensor,
    u: Tensor | None,
    jitter: Tensor | None,
    num_samples: int,
    *,
    padding: float,
    smallest_step: float,
) -> Tensor:
    """The native kernel, at u or at places spread evenly."""
    samples = edges.new_empty(len(edges), num_samples)
    native.module.invert_cdf(
        edges.detach().contiguous(),
        weights.detach().contiguous(),
        u,
        None if jitter is None else jitter.detach().contiguous(),
        padding,
        smallest_step,
        samples,
        native.num_threads(),
    )
    return samples

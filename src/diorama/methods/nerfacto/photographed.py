# SPDX-License-Identifier: Apache-2.0
"""What photographs show: marked in training, and told from inventions in pictures."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from diorama.cameras import Rays
from diorama.methods.nerfacto.samples import RaySamples
from diorama.nn.photographed_space import LEAST_SHARE, PhotographedSpace


@torch.no_grad()
def mark_photographed(
    space: PhotographedSpace,
    rays: Rays,
    samples: RaySamples,
    weights: Float[Tensor, "R S"],
    is_counted: Bool[Tensor, " R"],
    num_rays: int,
) -> None:
    """Mark what these rays of pixels show, if they count; `num_rays` came before them."""
    is_met = (_with_remainder(weights) > LEAST_SHARE) & is_counted[:, None]
    ray, sample = is_met.nonzero(as_tuple=True)
    points = rays.origins[ray] + samples.t[ray, sample, None] * rays.directions[ray]
    space.mark(points, num_rays)


def photographed_share(
    space: PhotographedSpace,
    mask: Bool[Tensor, "X Y Z"],
    rays: Rays,
    samples: RaySamples,
    weights: Float[Tensor, "R S"],
) -> Float[Tensor, " R"]:
    """How much of each ray's colour comes from cells of the space's mask."""
    is_photographed = space.look_up(mask, samples.positions(rays)).view(weights.shape)
    return (_with_remainder(weights) * is_photographed).sum(dim=1).clamp(max=1.0)


def _with_remainder(weights: Float[Tensor, "R S"]) -> Float[Tensor, "R S"]:
    """Weights that sum to one: what passes through everything is seen where the last sample is."""
    weights = weights.clone()
    weights[:, -1] += (1.0 - weights.sum(dim=1)).clamp(min=0.0)
    return weights

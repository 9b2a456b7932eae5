# SPDX-License-Identifier: Apache-2.0
"""Where along a ray NeRF looks: stratified depths, then depths drawn from the coarse weights."""

import torch
from jaxtyping import Float
from torch import Tensor

from diorama.methods.nerf.rays import PaperRays
from diorama.ops.sample_pdf import sample_pdf


def depth_at(
    fraction: Float[Tensor, "*S"], near: float, far: float, lindisp: bool
) -> Float[Tensor, "*S"]:
    """Depth at a fraction of the way from near to far, linear in depth or in 1/depth."""
    if lindisp:
        return 1.0 / ((1.0 - fraction) / near + fraction / far)
    return near * (1.0 - fraction) + far * fraction


def stratified_depths(
    rays: PaperRays,
    num_samples: int,
    near: float,
    far: float,
    lindisp: bool,
    generator: torch.Generator | None,
) -> Float[Tensor, "R S"]:
    """Equation 2: one depth per cell; both ends included, end cells half as wide.

    Without a generator the cells' own depths, unjittered.
    """
    depths = depth_at(
        torch.linspace(0.0, 1.0, num_samples, device=rays.lengths.device), near, far, lindisp
    )
    depths = depths.expand(len(rays), num_samples)
    if generator is None:
        return depths
    middle = 0.5 * (depths[:, 1:] + depths[:, :-1])
    upper = torch.cat((middle, depths[:, -1:]), dim=1)
    lower = torch.cat((depths[:, :1], middle), dim=1)
    return lower + (upper - lower) * torch.rand(
        depths.shape, generator=generator, device=depths.device
    )


def refined_depths(
    depths: Float[Tensor, "R S"],
    weights: Float[Tensor, "R S"],
    num_importance: int,
    generator: torch.Generator | None,
) -> Float[Tensor, "R T"]:
    """The coarse depths and `num_importance` more where the coarse weights are, sorted.

    The bins are the midpoints of the coarse depths and the weights those of the interior
    samples. Off by one here costs a decibel and is hard to see.
    """
    middle = 0.5 * (depths[:, 1:] + depths[:, :-1])
    fine = sample_pdf(middle, weights[:, 1:-1].detach(), num_importance, generator)
    return torch.cat((depths, fine.detach()), dim=1).sort(dim=1).values

# SPDX-License-Identifier: Apache-2.0
"""What keeps proposals honest and space empty."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from diorama.cameras import Rays
from diorama.methods.nerfacto.samples import Proposal, RaySamples
from diorama.ops.distortion import distortion

SMALLEST_WEIGHT = 1e-7
NEAREST = 1e-6
"""Depths are at least this share of the scene's length: an inverse must be finite."""


def interlevel_loss(
    samples: RaySamples, weights: Float[Tensor, "R S"], proposals: list[Proposal]
) -> Float[Tensor, ""]:
    """Mean of max(0, w - bound)^2 / (w + 1e-7), summed over the proposals.

    `bound` is the weight that a proposal gives to all of its intervals that overlap the sample's:
    a proposal may see more than there is, never less. `weights` are to be detached: the field
    does not bend to its proposals (mip-NeRF 360, equation 13).
    """
    total = weights.new_zeros(())
    for proposal in proposals:
        bound = outer_weights(samples.s_edges, proposal.samples.s_edges, proposal.weights)
        excess = (weights - bound).clamp(min=0.0)
        total = total + (excess.square() / (weights + SMALLEST_WEIGHT)).mean()
    return total


def outer_weights(
    edges: Float[Tensor, "R S_plus_1"],
    coarse_edges: Float[Tensor, "R B_plus_1"],
    coarse_weights: Float[Tensor, "R B"],
) -> Float[Tensor, "R S"]:
    """The sum of the weights of the coarse intervals that overlap each fine one."""
    num_bins = coarse_weights.shape[1]
    first = torch.searchsorted(coarse_edges, edges[:, :-1].contiguous(), right=True) - 1
    last = torch.searchsorted(coarse_edges, edges[:, 1:].contiguous())
    zero = torch.zeros_like(coarse_weights[:, :1])
    before = torch.cat((zero, coarse_weights.cumsum(dim=1)), dim=1)
    return before.gather(1, last.clamp(0, num_bins)) - before.gather(1, first.clamp(0, num_bins))


def distortion_per_ray(samples: RaySamples, weights: Float[Tensor, "R S"]) -> Float[Tensor, " R"]:
    """Equation 15 of mip-NeRF 360 in the ray's own spacing."""
    num_rays, num_samples = weights.shape
    ray_offsets = torch.arange(num_rays + 1, device=weights.device) * num_samples
    middles, lengths = samples.s.reshape(-1), samples.s_edges.diff(dim=1).reshape(-1)
    return distortion(weights.reshape(-1), middles, lengths, ray_offsets)


def inverse_depth(
    rays: Rays, samples: RaySamples, weights: Float[Tensor, "R S"], unit: float
) -> Float[Tensor, " R"]:
    """Mean inverse z-depth of what rays see, in the scene's length `unit`; nothing is at infinity.

    In a pinhole image that of a plane is a linear function of the pixel, however it is inclined.
    """
    depth = (samples.t.detach() * rays.z_scale[:, None]).clamp(min=NEAREST * unit)
    return (unit * weights / depth).sum(dim=1)


def soft_length(values: Float[Tensor, "*N"], softness: float) -> Float[Tensor, "*N"]:
    """|x| for values beyond `softness`, and a parabola below it."""
    return (values.square() + softness**2).sqrt() - softness


class _ScaleGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, scale: Tensor) -> Tensor:
        ctx.save_for_backward(scale)
        return values.view_as(values)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (scale,) = ctx.saved_tensors
        return gradients[0] * scale, None


def scale_gradient(values: Float[Tensor, "*N"], scale: Float[Tensor, "*#N"]) -> Float[Tensor, "*N"]:
    """The same values; their gradients are multiplied by `scale`."""
    return _ScaleGradient.apply(values, scale)

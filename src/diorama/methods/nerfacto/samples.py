# SPDX-License-Identifier: Apache-2.0
"""Intervals along rays, as the sampler makes them and the losses compare them."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from diorama.cameras import Rays
from diorama.methods.nerfacto.spacing import Spacing


@dataclass(frozen=True)
class RaySamples:
    """S intervals on each of R rays, one after the other, sampled in their middle."""

    s_edges: Float[Tensor, "R S_plus_1"]
    """Bounds of the intervals in the ray's own spacing, 0..1."""
    t_edges: Float[Tensor, "R S_plus_1"]
    """The same as distances."""

    @staticmethod
    def of(s_edges: Float[Tensor, "R S_plus_1"], spacing: Spacing) -> "RaySamples":
        """The intervals between the edges."""
        return RaySamples(s_edges, spacing.distances(s_edges))

    def __getitem__(self, rays: slice) -> "RaySamples":
        """The intervals of some of the rays."""
        return RaySamples(self.s_edges[rays], self.t_edges[rays])

    @property
    def s(self) -> Float[Tensor, "R S"]:
        """Middles in the ray's own spacing."""
        return 0.5 * (self.s_edges[:, 1:] + self.s_edges[:, :-1])

    @property
    def t(self) -> Float[Tensor, "R S"]:
        """Middles as distances."""
        return 0.5 * (self.t_edges[:, 1:] + self.t_edges[:, :-1])

    @property
    def delta(self) -> Float[Tensor, "R S"]:
        """Lengths."""
        return self.t_edges.diff(dim=1)

    def positions(self, rays: Rays) -> Float[Tensor, "N 3"]:
        """Middles in the scene, one ray after the other; differentiable in the rays."""
        along = self.t[:, :, None] * rays.directions[:, None]
        return (rays.origins[:, None] + along).flatten(0, 1)


@dataclass(frozen=True)
class Proposal:
    """What one proposal network made of a batch: intervals and their weights."""

    samples: RaySamples
    weights: Float[Tensor, "R S"]

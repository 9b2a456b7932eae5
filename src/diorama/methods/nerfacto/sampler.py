# SPDX-License-Identifier: Apache-2.0
"""From evenly spread samples to those that matter, by one proposal network after the other."""

from dataclasses import replace

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from diorama.cameras import Rays
from diorama.methods.nerfacto.config import NerfactoConfig
from diorama.methods.nerfacto.proposals import ProposalNet
from diorama.methods.nerfacto.samples import Proposal, RaySamples
from diorama.methods.nerfacto.settings import NerfactoSettings
from diorama.methods.nerfacto.spacing import Spacing
from diorama.nn.seen_space import SeenSpace
from diorama.ops.composite import composite_dense
from diorama.ops.sample_pdf import resample_edges

EAGER_STEPS = 10  # at first the proposal networks learn in every step
ANNEAL_SLOPE = 10.0
PADDING = 0.01


class ProposalSampler(nn.Module):
    """Resamples each ray by the weights that the proposal networks give its intervals.

    `last_update` is the last step in which the networks had gradients. They are needed less and
    less often: what they must know changes slowly.
    """

    last_update: Int64[Tensor, ""]

    def __init__(
        self, config: NerfactoConfig, settings: NerfactoSettings, seen: SeenSpace | None = None
    ):
        super().__init__()
        self.config, self.settings, self.seen = config, settings, seen
        self.nets = nn.ModuleList(
            ProposalNet(config, settings, resolution) for resolution in config.proposal_resolutions
        )
        self.register_buffer("last_update", torch.zeros((), dtype=torch.int64))

    def initialize(self, generator: torch.Generator) -> None:
        """Fresh networks."""
        for net in self.nets:
            assert isinstance(net, ProposalNet)
            net.initialize(generator)
        self.last_update.zero_()

    def train_samples(
        self, rays: Rays, step: int, generator: torch.Generator
    ) -> tuple[RaySamples, list[Proposal]]:
        """Jittered samples for the field, and the proposals if they are to learn in this step."""
        learns = self.is_due(step)
        if learns:
            self.last_update.fill_(step)
        with torch.set_grad_enabled(learns):
            samples, proposals = self.sample(rays, self.anneal(step), generator)
        return samples, proposals if learns else []

    def sample(
        self, rays: Rays, anneal: float = 1.0, generator: torch.Generator | None = None
    ) -> tuple[RaySamples, list[Proposal]]:
        """Final samples and what each network proposed; without a generator nothing is jittered.

        No gradient passes through the places of samples, nor from the networks to the poses.
        """
        rays = replace(rays, origins=rays.origins.detach(), directions=rays.directions.detach())
        spacing = Spacing.of(self.settings, rays)
        counts = (*self.config.proposal_samples, self.config.samples)
        edges = even_edges(len(rays), counts[0], _jitter(rays, generator))
        proposals: list[Proposal] = []
        for net, next_count in zip(self.nets, counts[1:], strict=True):
            samples = RaySamples.of(edges, spacing)
            unit = self.settings.frame.to_unit(samples.positions(rays))
            density = net(unit)
            if self.seen is not None:
                density = density * self.seen.contains(unit, self.config.min_views)
            weights = volume_weights(density.view(len(rays), -1), samples.delta)
            proposals.append(Proposal(samples, weights))
            sharpened = weights.detach() if anneal == 1.0 else weights.detach() ** anneal
            edges = resample_edges(
                edges, sharpened, next_count, _jitter(rays, generator), padding=PADDING
            )
        return RaySamples.of(edges, spacing), proposals

    def anneal(self, step: int) -> float:
        """10 f / (9 f + 1), f = step / anneal_steps up to 1 (mip-NeRF 360, equation 18)."""
        if step >= self.config.anneal_steps:
            return 1.0
        share = step / self.config.anneal_steps
        return ANNEAL_SLOPE * share / ((ANNEAL_SLOPE - 1.0) * share + 1.0)

    def is_due(self, step: int) -> bool:
        """Whether the networks learn in this step; a second batch of a step learns as the first."""
        warmth = min(1.0, step / max(self.config.proposal_warmup, 1))
        pause = self.config.proposal_every * warmth
        since = step - int(self.last_update)
        return step < EAGER_STEPS or since == 0 or since > pause


def even_edges(
    num_rays: int, num_samples: int, jitter: Float[Tensor, " R"]
) -> Float[Tensor, "R S_plus_1"]:
    """Edges of even intervals of 0..1; those within are moved by (jitter - 1/2) intervals."""
    edges = torch.linspace(0.0, 1.0, num_samples + 1, device=jitter.device)
    moved = edges + (jitter[:, None] - 0.5) / num_samples
    moved[:, 0], moved[:, -1] = 0.0, 1.0
    assert moved.shape == (num_rays, num_samples + 1)
    return moved


def volume_weights(
    sigma: Float[Tensor, "R S"], delta: Float[Tensor, "R S"]
) -> Float[Tensor, "R S"]:
    """Each interval's share of what its ray sees."""
    return composite_dense(sigma, delta, sigma.new_zeros(*sigma.shape, 1)).weights


def _jitter(rays: Rays, generator: torch.Generator | None) -> Float[Tensor, " R"]:
    """One number in 0..1 for all samples of a ray; the middle, without a generator."""
    if generator is None:
        return torch.full_like(rays.origins[:, 0], 0.5)
    return torch.rand(len(rays), generator=generator, device=rays.origins.device)

# SPDX-License-Identifier: Apache-2.0
"""From raw network outputs along rays to pixels: activation, quadrature, depth, background."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from diorama.methods.nerf.rays import PaperRays
from diorama.ops.composite import composite

INFINITE_DELTA = 1e10  # the paper's length of the last interval


@dataclass(frozen=True)
class Samples:
    """N samples of R rays, packed: ray r owns offsets[r] : offsets[r + 1], front to back."""

    s: Float[Tensor, " N"]
    delta: Float[Tensor, " N"]
    ray: Int[Tensor, " N"]
    offsets: Int[Tensor, " R1"]

    def __len__(self) -> int:
        return len(self.s)

    @staticmethod
    def dense(
        depths: Float[Tensor, "R S"],
        lengths: Float[Tensor, " R"],
        far: float,
        far_is_opaque: bool,
    ) -> "Samples":
        """S samples on each ray; the last interval ends at `far`, or never if that is opaque.

        The paper's last interval is infinite, which paints the far plane of cut-out objects
        wherever density is left there.
        """
        num_rays, num_samples = depths.shape
        last = (
            torch.full_like(depths[:, :1], INFINITE_DELTA)
            if far_is_opaque
            else (far - depths[:, -1:]).clamp(min=0.0)
        )
        delta = torch.cat((depths.diff(dim=1), last), dim=1) * lengths[:, None]
        ray = torch.arange(num_rays, device=depths.device).repeat_interleave(num_samples)
        offsets = torch.arange(num_rays + 1, device=depths.device) * num_samples
        return Samples(depths.reshape(-1), delta.reshape(-1), ray, offsets)

    def positions(self, rays: PaperRays) -> Float[Tensor, "N 3"]:
        """Where the samples are."""
        return rays.origins[self.ray] + self.s[:, None] * rays.steps[self.ray]

    def kept_at(self, index: Int[Tensor, " M"]) -> "Samples":
        """The samples at sorted indices, for queries only: the offsets stay the old ones."""
        return Samples(self.s[index], self.delta[index], self.ray[index], self.offsets)

    def kept(self, keep: Bool[Tensor, " N"]) -> "Samples":
        """The samples that the boolean mask `keep` keeps; a dropped one leaves a gap."""
        kept_before = functional.pad(keep.cumsum(0), (1, 0))
        return Samples(self.s[keep], self.delta[keep], self.ray[keep], kept_before[self.offsets])


def activate_density(raw: Float[Tensor, " N"], kind: str) -> Float[Tensor, " N"]:
    """Density of a raw output: relu(raw), or softplus(raw - 1)."""
    return functional.softplus(raw - 1.0) if kind == "softplus" else torch.relu(raw)


@dataclass(frozen=True)
class Pixels:
    """What R rays see; `depth` is the weighted sum of z-depths as in the paper."""

    rgb: Float[Tensor, "R 3"]
    depth: Float[Tensor, " R"]
    opacity: Float[Tensor, " R"]
    weights: Float[Tensor, " N"]

    @property
    def disparity(self) -> Float[Tensor, " R"]:
        """1 / expected depth; 0 where a ray meets nothing (the paper divides 0 by 0 there)."""
        is_hit = self.opacity > 1e-6
        expected = self.depth / self.opacity.clamp(min=1e-6)
        return torch.where(is_hit, 1.0 / expected.clamp(min=1e-10), 0.0)


def render_samples(
    raw_rgb: Float[Tensor, "N 3"],
    density: Float[Tensor, " N"],
    samples: Samples,
    rays: PaperRays,
    background: tuple[float, float, float],
) -> Pixels:
    """Equation 3 for packed samples, over a background."""
    z = rays.z_depth(samples.s, samples.ray)
    values = torch.cat((torch.sigmoid(raw_rgb), z[:, None]), dim=1)
    result = composite(density, samples.delta, values, samples.offsets)
    rgb = result.values[:, :3] + (1.0 - result.opacity[:, None]) * z.new_tensor(background)
    return Pixels(rgb, result.values[:, 3], result.opacity, result.weights)

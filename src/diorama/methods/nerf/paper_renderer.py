# SPDX-License-Identifier: Apache-2.0
"""The paper's hierarchical renderer: a coarse network proposes, a fine one refines."""

import torch
from torch import Tensor, nn

from diorama.methods.nerf.config import NerfConfig
from diorama.methods.nerf.field import NerfField
from diorama.methods.nerf.rays import PaperRays
from diorama.methods.nerf.sampling import refined_depths, stratified_depths
from diorama.methods.nerf.settings import RenderSettings
from diorama.methods.nerf.volume import Pixels, Samples, activate_density, render_samples


class PaperRenderer(nn.Module):
    """Coarse pass on stratified samples, fine pass on those and the importance samples."""

    def __init__(self, config: NerfConfig, settings: RenderSettings):
        super().__init__()
        self.config, self.settings = config, settings
        self.coarse = NerfField(config)
        self.fine = NerfField(config) if config.importance > 0 else None

    def train_pixels(self, rays: PaperRays, step: int, generator: torch.Generator) -> list[Pixels]:
        """Coarse and, if there is one, fine pixels; the last is the picture."""
        del step
        return self._pixels(rays, generator)

    def render_pixels(self, rays: PaperRays) -> Pixels:
        """The picture, without jitter or noise."""
        return self._pixels(rays, None)[-1]

    def _pixels(self, rays: PaperRays, generator: torch.Generator | None) -> list[Pixels]:
        config, settings = self.config, self.settings
        jitter = generator if config.perturb else None
        depths = stratified_depths(
            rays, config.samples, settings.near, settings.far, settings.lindisp, jitter
        )
        coarse = self._pass(self.coarse, rays, depths, generator)
        if self.fine is None:
            return [coarse]
        weights = coarse.weights.detach().view(depths.shape)
        depths = refined_depths(depths, weights, config.importance, jitter)
        return [coarse, self._pass(self.fine, rays, depths, generator)]

    def _pass(
        self, field: NerfField, rays: PaperRays, depths: Tensor, generator: torch.Generator | None
    ) -> Pixels:
        settings = self.settings
        samples = Samples.dense(depths, rays.lengths, settings.far, settings.far_is_opaque)
        raw_rgb, raw = field(samples.positions(rays), rays.view_directions[samples.ray])
        if generator is not None and self.config.raw_noise_std > 0:
            noise = torch.randn(raw.shape, generator=generator, device=raw.device)
            raw = raw + self.config.raw_noise_std * noise
        density = activate_density(raw, self.config.density)
        return render_samples(raw_rgb, density, samples, rays, settings.background)

    def reset(self) -> None:
        """Nothing is remembered between steps."""

    def next_num_rays(self, num_rays: int) -> int:
        return num_rays

    def statistics(self) -> dict[str, Tensor]:
        return {}

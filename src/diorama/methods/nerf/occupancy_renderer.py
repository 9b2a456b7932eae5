# SPDX-License-Identifier: Apache-2.0
"""One network, sampled only where an occupancy grid has seen matter, and only where visible."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from diorama.methods.nerf.config import NerfConfig
from diorama.methods.nerf.field import NerfField
from diorama.methods.nerf.occupancy_sampler import march
from diorama.methods.nerf.rays import PaperRays
from diorama.methods.nerf.settings import RenderSettings
from diorama.methods.nerf.volume import Pixels, Samples, activate_density, render_samples
from diorama.nn.occupancy_grid import OccupancyGrid

HIDDEN_TRANSMITTANCE = 1e-3  # samples behind this much matter change no pixel by a visible step
LOOK_COST = 3  # looking at a density without gradients costs a third of a training sample
MIN_RAYS, MAX_RAYS = 64, 1 << 14
GRID_SHARE = 64  # an update looks at 1/64 of the cells: asking an MLP is dear
GRID_DECAY = 0.8  # so cells are seldom asked, and must forget sooner than Instant-NGP's 0.95
SLAB = 8  # samples per ray and round of front-to-back rendering


class OccupancyRenderer(nn.Module):
    """Marches a lattice through the grid; the number of rays follows a fixed sample budget."""

    samples_per_ray: Tensor
    is_grid_trained: Tensor
    is_hiding: Tensor

    def __init__(self, config: NerfConfig, settings: RenderSettings):
        super().__init__()
        self.config, self.settings = config, settings
        self.fine = NerfField(config)
        self.grid = OccupancyGrid(config.grid_resolution, decay=GRID_DECAY)
        self.register_buffer("samples_per_ray", torch.zeros(()))
        self.register_buffer("is_grid_trained", torch.zeros((), dtype=torch.bool))
        self.register_buffer("is_hiding", torch.zeros((), dtype=torch.bool))

    def reset(self) -> None:
        """Forget the grid and what a ray costs."""
        self.grid.reset()
        self.samples_per_ray.zero_()
        self.is_grid_trained.fill_(False)
        self.is_hiding.fill_(False)

    def train_pixels(self, rays: PaperRays, step: int, generator: torch.Generator) -> list[Pixels]:
        """The picture of a batch; hidden samples are dropped before gradients are recorded."""
        if step >= self.config.grid_warmup and step % self.config.grid_every == 0:
            self._update_grid(generator)
            self.is_hiding.fill_(True)
        is_warm = bool(self.is_grid_trained)
        samples = self._march(rays, is_warm, generator if self.config.perturb else None)
        work = len(samples)
        if is_warm and bool(self.is_hiding):
            kept = samples.kept(self._is_visible(samples, rays))
            # Looking pays while it hides more than it costs; the next grid update asks again.
            self.is_hiding.fill_(len(kept) * LOOK_COST < len(samples) * (LOOK_COST - 1))
            work = len(kept) + len(samples) // LOOK_COST
            samples = kept
        self.samples_per_ray.fill_(work / max(len(rays), 1))
        return [self._shade(samples, rays, generator)]

    @torch.no_grad()
    def render_pixels(self, rays: PaperRays) -> Pixels:
        """The picture, marched in slabs from front to back so that hidden samples cost nothing."""
        samples = self._march(rays, bool(self.is_grid_trained), None)
        rank = torch.arange(len(samples), device=samples.ray.device) - samples.offsets[samples.ray]
        raw_rgb = torch.zeros(len(samples), 3, device=rank.device)
        density = torch.zeros(len(samples), device=rank.device)
        thickness = torch.zeros(len(rays), device=rank.device)
        enough = -torch.log(torch.tensor(HIDDEN_TRANSMITTANCE)).item()
        for start in range(0, int(rank.max()) + 1 if len(rank) else 0, SLAB):
            is_open = thickness[samples.ray] < enough
            pick = ((rank >= start) & (rank < start + SLAB) & is_open).nonzero().flatten()
            part = samples.kept_at(pick)
            rgb, raw = self.fine(part.positions(rays), rays.view_directions[part.ray])
            raw_rgb[pick] = rgb
            density[pick] = activate_density(raw, self.config.density)
            thickness.index_add_(0, part.ray, density[pick] * part.delta)
        return render_samples(raw_rgb, density, samples, rays, self.settings.background)

    def next_num_rays(self, num_rays: int) -> int:
        """Rays that will spend the sample budget, going by the last batch's cost per ray."""
        cost = self.samples_per_ray.item()
        if cost == 0:
            return num_rays
        wanted = self.config.sample_budget / cost
        return int(min(max(wanted, num_rays / 2, MIN_RAYS), num_rays * 2, MAX_RAYS))

    def statistics(self) -> dict[str, Tensor]:
        return {
            "occupied": self.grid.is_occupied.float().mean(),
            "work_per_ray": self.samples_per_ray.clone(),
        }

    def _march(self, rays: PaperRays, is_warm: bool, generator: torch.Generator | None) -> Samples:
        steps = self.config.march_steps if is_warm else self.config.march_warmup_steps
        return march(rays, self.grid, self.settings, steps, generator)

    def _shade(self, samples: Samples, rays: PaperRays, generator: torch.Generator) -> Pixels:
        raw_rgb, raw = self.fine(samples.positions(rays), rays.view_directions[samples.ray])
        if self.config.raw_noise_std > 0:
            noise = torch.randn(raw.shape, generator=generator, device=raw.device)
            raw = raw + self.config.raw_noise_std * noise
        density = activate_density(raw, self.config.density)
        return render_samples(raw_rgb, density, samples, rays, self.settings.background)

    @torch.no_grad()
    def _is_visible(self, samples: Samples, rays: PaperRays) -> Bool[Tensor, " N"]:
        """Whether enough light reaches each sample: T = exp(-sum of tau before it)."""
        raw = self.fine.raw_density(samples.positions(rays))
        tau = activate_density(raw, self.config.density) * samples.delta
        # Double precision and a cap: the sum runs over all rays and their infinite last samples.
        total = tau.clamp(max=50.0).double().cumsum(0)
        before = torch.nn.functional.pad(total, (1, 0))
        depth_in_ray = before[:-1] - before[samples.offsets[samples.ray]]
        return depth_in_ray < -torch.log(torch.tensor(HIDDEN_TRANSMITTANCE)).item()

    def _update_grid(self, generator: torch.Generator) -> None:
        """Look at a share of the cells again; at all of them the first time."""
        is_first = not bool(self.is_grid_trained)
        self.grid.update(self._thickness_at, generator, all_cells=is_first, share=GRID_SHARE)
        self.is_grid_trained.fill_(True)

    def _thickness_at(self, unit: Float[Tensor, "N 3"]) -> Float[Tensor, " N"]:
        """Density times the interval with which rays from the cameras' distance pass a point."""
        frame = self.settings.grid_frame
        positions = frame.from_unit(unit)
        depth = frame.distance_to_center(positions)
        step = self.settings.step_at(depth, self.config.march_steps)
        raw = self.fine.raw_density(positions)
        return activate_density(raw, self.config.density) * step

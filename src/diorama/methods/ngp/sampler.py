# SPDX-License-Identifier: Apache-2.0
"""Where rays are sampled: the occupancy grid, its updates, and the number of rays per step."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from diorama.cameras import Rays
from diorama.methods.ngp.config import NgpConfig
from diorama.methods.ngp.settings import NgpSettings
from diorama.nn.occupancy_grid import OccupancyGrid
from diorama.nn.rows import rows
from diorama.ops.march import Marched, march

Density = Callable[[Float[Tensor, "N 3"]], Float[Tensor, " N"]]
MIN_RAYS = 64
HIDDEN_TRANSMITTANCE = 1e-4  # a sample behind this much matter changes no pixel


class OccupancySampler(nn.Module):
    """Marches rays through nested occupancy grids.

    `samples_per_ray` remembers what a ray of the last batch cost, so that the next batch has as
    many rays as the sample budget allows.
    """

    samples_per_ray: Tensor
    occupied_share: Tensor
    mean_thickness: Tensor

    def __init__(self, config: NgpConfig, settings: NgpSettings):
        super().__init__()
        self.config, self.settings = config, settings
        self.grid = OccupancyGrid(config.grid_resolution, levels=settings.grid_levels)
        self.register_buffer("samples_per_ray", torch.zeros(()))
        self.register_buffer("occupied_share", torch.ones(()))
        self.register_buffer("mean_thickness", torch.zeros(()))

    def reset(self) -> None:
        """Forget the grid and what a ray costs."""
        self.grid.reset()
        self.samples_per_ray.zero_()
        self.occupied_share.fill_(1.0)
        self.mean_thickness.zero_()

    def is_warm(self, step: int) -> bool:
        """Whether the grid has been looked at long enough to cull by the field's own density."""
        return step >= self.config.grid_warmup

    def update(self, step: int, density: Density, generator: torch.Generator) -> None:
        """Look at cells again when it is time to; `density` is of positions in the scene."""
        if step % self.config.grid_every != 0:
            return

        def thickness(unit: Float[Tensor, "N 3"]) -> Float[Tensor, " N"]:
            return density(self.settings.grid_frame.from_unit(unit)) * self.settings.step

        mean = self.grid.update(
            thickness, generator, all_cells=not self.is_warm(step), share=self.config.grid_share
        )
        self.mean_thickness.fill_(mean)
        self.occupied_share.copy_(self.grid.is_occupied.float().mean())

    @property
    def min_alpha(self) -> float:
        """Samples of training that are less opaque are left out. Not above the mean cell's
        thickness: of a field that is thin everywhere, nothing would be left to learn from."""
        return min(self.settings.min_alpha, self.mean_thickness.item())

    def span(self, rays: Rays) -> tuple[Float[Tensor, " R"], Float[Tensor, " R"]]:
        """Distances at which each ray enters and leaves the outermost grid; near > far: never."""
        near, far = self.settings.outer_frame.span(rays.origins, rays.directions)
        return near.clamp(min=self.settings.near), far

    @torch.no_grad()
    def march(self, rays: Rays, generator: torch.Generator) -> Marched:
        """All samples of training rays in occupied cells, each ray's lattice shifted at random."""
        near, far = self.span(rays)
        jitter = torch.rand(len(rays), generator=generator, device=near.device)
        return self._march(rays, near, far, 1, jitter, None)

    def march_on(
        self, rays: Rays, near: Float[Tensor, " R"], far: Float[Tensor, " R"], max_samples: int
    ) -> Marched:
        """At most `max_samples` samples per ray from `near` on, as finely as pictures want it."""
        return self._march(rays, near, far, self.settings.render_steps, None, max_samples)

    def _march(
        self,
        rays: Rays,
        near: Float[Tensor, " R"],
        far: Float[Tensor, " R"],
        finer: int,
        jitter: Float[Tensor, " R"] | None,
        max_samples: int | None,
    ) -> Marched:
        frame, step, cone = self.settings.grid_frame, self.settings.step, self.settings.cone
        return march(
            rays.origins, rays.directions, self.grid.bits, (frame.low, frame.high), near, far,
            step / finer, cone / finer, jitter, max_samples,
        )  # fmt: skip

    def note_cost(self, num_samples: float, num_rays: int) -> None:
        """Remember what a ray cost."""
        self.samples_per_ray.fill_(num_samples / max(num_rays, 1))

    def next_num_rays(self, num_rays: int) -> int:
        """Rays that will spend the sample budget, going by the last batch's cost per ray."""
        cost = self.samples_per_ray.item()
        most = min(self.config.max_rays, 2 * num_rays)
        if cost == 0:  # every ray missed: more of them may not
            return most
        wanted = self.config.sample_budget / cost
        return int(min(max(wanted, num_rays / 2, MIN_RAYS), most))


def positions_of(samples: Marched, rays: Rays) -> Float[Tensor, "N 3"]:
    """Where samples are; differentiable in the rays."""
    origins, directions = rows(rays.origins, samples.ray), rows(rays.directions, samples.ray)
    return torch.addcmul(origins, samples.t[:, None], directions)

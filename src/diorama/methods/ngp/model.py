# SPDX-License-Identifier: Apache-2.0
"""Instant-NGP as a Diorama model: training pixels, losses, and its two grids."""

import math
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from diorama.cameras import Cameras, Rays
from diorama.data.ray_manager import RayBatch
from diorama.data.scene import Scene
from diorama.methods.ngp.check import check_ngp_config
from diorama.methods.ngp.config import NgpConfig
from diorama.methods.ngp.render import render_image
from diorama.methods.ngp.sampler import HIDDEN_TRANSMITTANCE, OccupancySampler, positions_of
from diorama.methods.ngp.settings import NgpSettings
from diorama.model import Model, RenderOutput
from diorama.nn.appearance import Appearance
from diorama.nn.hash_grid import HashGrid
from diorama.nn.pixels import blended_over, mean_squared_error, psnr_of, weighted_mean
from diorama.nn.pose_refinement import PoseRefinement
from diorama.nn.radiance_field import RadianceField
from diorama.nn.rows import rows
from diorama.ops.composite import composite
from diorama.ops.cull import cull
from diorama.ops.distortion import distortion
from diorama.ops.march import Marched

LOOK_COST = 4  # looking at a density without gradients costs a quarter of a training sample
HUBER_DELTA = 0.1
EARLY_SHARE, EARLY_STEPS = 0.3, 500  # the first steps are so much shorter, and it fades so (lego)
REFERENCE_HALF_SIDE = 1.5  # of the box for which the density's bias was chosen


class NgpModel(Model):
    """A hash-grid field, sampled where an occupancy grid has matter and where it can be seen."""

    config: NgpConfig

    def __init__(self, config: NgpConfig, scene: Scene):
        check_ngp_config(config)
        super().__init__(config, scene)
        self.settings = NgpSettings.of(config, scene)
        self.sampler = OccupancySampler(config, self.settings)
        grid = HashGrid(
            config.levels, config.features, config.log2_table,
            config.base_resolution, config.max_resolution,
        )  # fmt: skip
        self.field = RadianceField(
            grid, config.width, config.color_layers, config.sh_bands, config.appearance_size,
            unit=self.settings.grid_frame.half_side / REFERENCE_HALF_SIDE,
        )  # fmt: skip
        size, train = config.appearance_size, scene.splits["train"]
        self.appearance = Appearance(scene.cameras, size, train) if size else None
        self.poses = PoseRefinement(scene.cameras, train) if config.refine_poses else None
        self.reinitialize(torch.Generator().manual_seed(int(torch.randint(2**62, ()))))

    def reinitialize(self, generator: torch.Generator) -> None:
        """Fresh weights, an occupancy grid that knows nothing."""
        self.field.initialize(generator)
        if self.appearance is not None:
            self.appearance.initialize()
        if self.poses is not None:
            self.poses.initialize()
        self.sampler.reset()

    @property
    def background(self) -> Float[Tensor, "3"]:
        return self.field.grid.table.new_tensor(self.settings.background)

    def get_param_groups(self) -> dict[str, list[nn.Parameter]]:
        networks = [*self.field.density_net.parameters(), *self.field.color_net.parameters()]
        if self.appearance is not None:
            networks += self.appearance.parameters()
        groups = {"tables": [self.field.grid.table], "networks": networks}
        return groups if self.poses is None else groups | {"poses": list(self.poses.parameters())}

    def forward(self, batch: RayBatch, step: int, generator: torch.Generator) -> dict[str, Tensor]:
        with torch.no_grad():
            self.sampler.update(step, self.density_at, generator)
        rays = batch.rays if self.poses is None else self.poses(batch.rays, batch.image_index)
        samples, known = self._visible_samples(rays, step, generator)
        unit = self.settings.field_frame.to_unit(positions_of(samples, rays))
        geometry = self.field.geometry(unit, known)
        code = self._appearance_of(batch, samples)
        rgb = self.field.color(
            geometry, rows(self.field.encode(rays.directions), samples.ray), code
        )
        ray = composite(self.field.density(geometry), samples.delta, rgb, samples.ray_offsets)

        background = self.background[None]
        if self.settings.is_random:
            background = torch.rand(len(rays), 3, generator=generator, device=rgb.device)
        outputs = {
            "target": blended_over(batch.pixels, background),
            "rgb": ray.values + (1.0 - ray.opacity[:, None]) * background,
            "opacity": ray.opacity,
        }
        if self.settings.distortion > 0:
            side = 2.0 * self.settings.grid_frame.half_side
            outputs["distortion"] = distortion(
                ray.weights, samples.t / side, samples.delta / side, samples.ray_offsets
            )
        return outputs

    def get_loss_dict(self, outputs: dict[str, Tensor], batch: RayBatch) -> dict[str, Tensor]:
        """Error of the colours, and whatever else the config gives a weight."""
        rgb, target = outputs["rgb"], outputs["target"]
        if self.config.loss == "mse":
            losses = {"rgb": mean_squared_error(rgb, target, batch.weights)}
        else:
            error = functional.smooth_l1_loss(rgb, target, reduction="none", beta=HUBER_DELTA)
            losses = {"rgb": weighted_mean(error, batch.weights)}
        if "distortion" in outputs:
            losses["distortion"] = self.settings.distortion * outputs["distortion"].mean()
        if self.config.opacity > 0:
            losses["opacity"] = self.config.opacity * _entropy(outputs["opacity"]).mean()
        if self.poses is not None:
            losses["poses"] = self.poses.penalty()
        return losses

    def get_metrics_dict(self, outputs: dict[str, Tensor], batch: RayBatch) -> dict[str, Tensor]:
        error = mean_squared_error(outputs["rgb"].detach(), outputs["target"], batch.weights)
        return {
            "psnr": psnr_of(error),
            "num_rays": torch.tensor(float(len(batch.rays))),
            "samples_per_ray": self.sampler.samples_per_ray.clone(),
            "occupied": self.sampler.occupied_share.clone(),
        }

    def next_num_rays(self, num_rays: int) -> int:
        return self.sampler.next_num_rays(num_rays)

    def step_cost(self, step: int, max_steps: int) -> float:
        """Rays become more as the grid empties, and with them what is marched and blended."""
        del max_steps
        return 1 - EARLY_SHARE * math.exp(-step / EARLY_STEPS)

    def render(self, camera: Cameras) -> RenderOutput:
        return render_image(self, camera if self.poses is None else self.poses.at(camera))

    def density_at(self, positions: Float[Tensor, "N 3"]) -> Float[Tensor, " N"]:
        """Density at positions of the scene."""
        unit = self.settings.field_frame.to_unit(positions)
        return self.field.density(self.field.geometry(unit))

    def _appearance_of(self, batch: RayBatch, samples: Marched) -> Float[Tensor, "N A"] | None:
        if self.appearance is None:
            return None
        return rows(self.appearance(batch.image_index), samples.ray)

    @torch.no_grad()
    def _visible_samples(
        self, rays: Rays, step: int, generator: torch.Generator
    ) -> tuple[Marched, Float[Tensor, "N LF"] | None]:
        """Samples in occupied cells that light reaches, and their features if they were looked at.

        While the grid warms up nothing is hidden: a field that starts too dense would cull
        everything behind its first sample, and never learn what is there.
        """
        fixed = replace(rays, origins=rays.origins.detach(), directions=rays.directions.detach())
        samples = self.sampler.march(fixed, generator)
        if not self.sampler.is_warm(step):
            self.sampler.note_cost(float(len(samples.t)), len(rays))
            return samples, None
        features = self.field.grid(self.settings.field_frame.to_unit(positions_of(samples, fixed)))
        density = self.field.density(self.field.density_net(features))
        kept, offsets = cull(
            density, samples.delta, samples.ray_offsets,
            HIDDEN_TRANSMITTANCE, self.sampler.min_alpha,
        )  # fmt: skip
        self.sampler.note_cost(len(kept) + len(samples.t) / LOOK_COST, len(rays))
        t, delta, ray = (x.index_select(0, kept) for x in (samples.t, samples.delta, samples.ray))
        visible = Marched(t, delta, ray, offsets, samples.t_next)
        return visible, features.index_select(0, kept)


def _entropy(opacity: Float[Tensor, " R"]) -> Float[Tensor, " R"]:
    """-o log o, which is least for rays that see everything or nothing of the scene."""
    return -opacity * torch.log(opacity.clamp(min=1e-5))

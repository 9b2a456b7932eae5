# SPDX-License-Identifier: Apache-2.0
"""Nerfacto as a Diorama model: a field, its sampler, and the losses of both."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from diorama.cameras import Cameras, Rays
from diorama.data.ray_manager import RayBatch
from diorama.data.scene import Scene
from diorama.methods.nerfacto.check import check_nerfacto_config
from diorama.methods.nerfacto.config import NerfactoConfig
from diorama.methods.nerfacto.losses import distortion_per_ray, interlevel_loss, scale_gradient
from diorama.methods.nerfacto.new_views import NewViews, plainness_loss
from diorama.methods.nerfacto.photo_plainness import photo_plainness_loss
from diorama.methods.nerfacto.photographed import mark_photographed
from diorama.methods.nerfacto.point_rays import PointRays, point_loss
from diorama.methods.nerfacto.render import over_background, render_image
from diorama.methods.nerfacto.sampler import ProposalSampler
from diorama.methods.nerfacto.samples import RaySamples
from diorama.methods.nerfacto.settings import NerfactoSettings
from diorama.model import Model, RenderOutput
from diorama.nn.appearance import Appearance
from diorama.nn.exposure import ExposureGains
from diorama.nn.hash_grid import HashGrid
from diorama.nn.photographed_space import PhotographedSpace
from diorama.nn.pixels import blended_over, mean_squared_error, psnr_of, weighted_mean
from diorama.nn.pose_refinement import PoseRefinement
from diorama.nn.radiance_field import RadianceField
from diorama.nn.seen_space import SeenSpace
from diorama.ops.composite import composite_dense

GUIDANCE_FALL = 0.1
"""Points and plain surfaces say roughly where matter is; what it looks like exactly, pixels know
better. So their losses fall to this share until training ends."""

GUIDED_SHARE = 0.25
"""In this first share of training, where matter finds its place, they join in every step."""

GUIDANCE_EVERY, GUIDED_STEP = 4, 2
"""After that in every so many steps, weighing as much more: their rays cost a third of a step. It
is not the steps in which poses are corrected: poses then learn from pixels alone."""

GUIDED_COST = 1.5
"""Time of a step with their rays, relative to one without; measured with the preset's numbers."""

PLAIN_START = 0.01
"""The loss on plain photographs grows from this share to all of its weight: while the rates are
high and surfaces still seek their place, it would hold them where they are."""

POSES_EVERY = 4
"""Poses are corrected in every so many steps: gradients by place cost a quarter of a step."""


class NerfactoModel(Model):
    """A hash-grid field over all of space, sampled where two proposal networks see matter."""

    config: NerfactoConfig

    def __init__(self, config: NerfactoConfig, scene: Scene):
        check_nerfacto_config(config)
        super().__init__(config, scene)
        self.settings = NerfactoSettings.of(config, scene)
        self.seen = SeenSpace(scene, self.settings.frame) if config.min_views > 0 else None
        self.sampler = ProposalSampler(config, self.settings, self.seen)
        grid = HashGrid(
            config.levels, config.features, config.log2_table,
            config.base_resolution, config.max_resolution,
        )  # fmt: skip
        size = self.settings.appearance_size
        self.field = RadianceField(
            grid, config.width, config.color_layers, config.sh_bands, size,
            density_bias=math.log(self.settings.initial_density),
            unit=self.settings.frame.half_side,
        )  # fmt: skip
        train = scene.splits["train"]
        self.appearance = Appearance(scene.cameras, size, train) if size else None
        refines = self.settings.refines_poses
        self.poses = PoseRefinement(scene.cameras, train) if refines else None
        self.exposure = ExposureGains(scene.cameras, train) if config.exposure else None
        points = PointRays(scene) if config.point_loss > 0 else None
        self.points = points if points is not None and len(points) else None
        self.new_views = NewViews(scene) if config.plainness > 0 else None
        # Around an object there is a background that needs no photograph.
        is_filled = config.fill_unphotographed and self.settings.frame.is_contracted
        self.photographed = PhotographedSpace(self.settings.frame) if is_filled else None
        self.reinitialize(torch.Generator().manual_seed(int(torch.randint(2**62, ()))))

    def reinitialize(self, generator: torch.Generator) -> None:
        """Fresh weights of the field and of the proposal networks."""
        self.field.initialize(generator)
        self.sampler.initialize(generator)
        if self.appearance is not None:
            self.appearance.initialize()
        if self.poses is not None:
            self.poses.initialize()
        if self.exposure is not None:
            self.exposure.initialize()
        if self.photographed is not None:
            self.photographed.initialize()

    @property
    def background(self) -> Float[Tensor, "3"]:
        """White also where the last sample's colour serves: there is no alpha to blend by."""
        return self.field.grid.table.new_tensor(self.settings.background or (1.0, 1.0, 1.0))

    def get_param_groups(self) -> dict[str, list[nn.Parameter]]:
        parts = (self.field, self.sampler, self.appearance, self.exposure)
        parameters = {
            name: parameter
            for part in parts
            if part is not None
            for name, parameter in part.named_parameters(prefix=type(part).__name__)
        }
        groups = {
            "tables": [p for name, p in parameters.items() if name.endswith("grid.table")],
            "networks": [p for name, p in parameters.items() if not name.endswith("grid.table")],
        }
        return groups if self.poses is None else groups | {"poses": list(self.poses.parameters())}

    def forward(self, batch: RayBatch, step: int, generator: torch.Generator) -> dict[str, Tensor]:
        # Three kinds of rays go through the field together: of pixels, to points, of new views.
        num, rays, distances, patches = len(batch.rays), [batch.rays], None, None
        guidance = self._guidance(step)
        if guidance > 0 and self.points is not None:
            to_points, distances = self.points.draw(self.config.point_rays, generator)
            rays.append(to_points)
        if guidance > 0 and self.new_views is not None:
            patches = self.new_views.draw(self.config.plain_patches, generator)
            rays.append(patches)
        image_index = torch.cat((batch.image_index, *(part.camera_index for part in rays[1:])))
        rays = Rays.cat(rays)
        poses_learn = self.poses is not None and step % POSES_EVERY == 0
        if self.poses is not None:
            with torch.set_grad_enabled(poses_learn and torch.is_grad_enabled()):
                rays = self.poses(rays, image_index)
        samples, proposals = self.sampler.train_samples(rays, step, generator)
        code = None if self.appearance is None else self.appearance(image_index)
        density, rgb = self.field_at(rays, samples, code)
        if self.config.gradient_scaling:
            # Samples close to a camera are met by many of its rays; undone, they grow floaters.
            nearness = (samples.t / self.settings.frame.half_side).square().clamp(max=1.0)
            density = scale_gradient(density, nearness)
            rgb = scale_gradient(rgb, nearness[:, :, None])
        ray = composite_dense(density, samples.delta, rgb)
        if self.photographed is not None:
            mark_photographed(
                self.photographed, rays[:num], samples[:num], ray.weights[:num],
                is_counted=batch.weights > 0, num_rays=step * num,
            )  # fmt: skip

        background = self.background[None]
        if self.settings.is_random:
            background = torch.rand(len(rays), 3, generator=generator, device=rgb.device)
        seen = over_background(ray, rgb, None if self.is_last_sample else background)
        seen = seen[:num]
        if self.exposure is not None:
            seen = self.exposure(seen, batch.image_index)
        outputs = {"target": blended_over(batch.pixels, background[:num]), "rgb": seen}
        if self.poses is not None and poses_learn:
            outputs["poses"] = self.poses.penalty()
        if distances is not None:
            which = slice(num, num + len(distances))
            loss = point_loss(samples[which], ray.weights[which], distances, step)
            outputs["points"] = guidance * loss
        unit = self.settings.frame.half_side
        if self.config.photo_plainness > 0 and batch.num_patches > 0:
            share = PLAIN_START ** (1.0 - step / self.max_steps)
            loss = photo_plainness_loss(batch, samples, ray.weights, unit)
            outputs["photo_plainness"] = share * loss
        if patches is not None:
            which = slice(-len(patches), None)
            loss = plainness_loss(patches, samples[which], ray.weights[which], unit)
            outputs["plainness"] = guidance * loss
        if proposals:
            outputs["interlevel"] = interlevel_loss(samples, ray.weights.detach(), proposals)
        if self.settings.distortion > 0:
            outputs["distortion"] = distortion_per_ray(samples, ray.weights)[:num]
        return outputs

    def _guidance(self, step: int) -> float:
        """How much points and plain surfaces count in a step; 0: their rays are not drawn."""
        fading = GUIDANCE_FALL ** (step / self.max_steps)
        if step < GUIDED_SHARE * self.max_steps:
            return fading
        return fading * GUIDANCE_EVERY if step % GUIDANCE_EVERY == GUIDED_STEP else 0.0

    def get_loss_dict(self, outputs: dict[str, Tensor], batch: RayBatch) -> dict[str, Tensor]:
        """Squared error of the colours, and whatever else the settings give a weight."""
        losses = {"rgb": mean_squared_error(outputs["rgb"], outputs["target"], batch.weights)}
        if "interlevel" in outputs:
            losses["interlevel"] = self.config.interlevel * outputs["interlevel"]
        if "distortion" in outputs:
            mean = weighted_mean(outputs["distortion"][:, None], batch.weights)
            losses["distortion"] = self.settings.distortion * mean
        if "points" in outputs:
            losses["points"] = self.config.point_loss * outputs["points"]
        if "plainness" in outputs:
            losses["plainness"] = self.config.plainness * outputs["plainness"]
        if "photo_plainness" in outputs:
            weight = self.config.photo_plainness
            losses["photo_plainness"] = weight * outputs["photo_plainness"]
        if "poses" in outputs:
            losses["poses"] = outputs["poses"]
        return losses

    def step_cost(self, step: int, max_steps: int) -> float:
        """Steps with guidance take longer; after the first ones the mean of both kinds counts."""
        if self.points is None and self.new_views is None:
            return 1.0
        share = 1.0 if step < GUIDED_SHARE * max_steps else 1 / GUIDANCE_EVERY
        return 1.0 + share * (GUIDED_COST - 1.0)

    def get_metrics_dict(self, outputs: dict[str, Tensor], batch: RayBatch) -> dict[str, Tensor]:
        error = mean_squared_error(outputs["rgb"].detach(), outputs["target"], batch.weights)
        return {"psnr": psnr_of(error)}

    def render(self, camera: Cameras) -> RenderOutput:
        return render_image(self, camera if self.poses is None else self.poses.at(camera))

    def density_at(self, positions: Float[Tensor, "N 3"]) -> Float[Tensor, " N"]:
        """Density at positions of the scene."""
        unit = self.settings.frame.to_unit(positions)
        return self._density(unit, self.field.geometry(unit))

    def _density(
        self, unit: Float[Tensor, "N 3"], geometry: Float[Tensor, "N G"]
    ) -> Float[Tensor, " N"]:
        """The field's density where enough cameras look, and nothing elsewhere."""
        density = self.field.density(geometry)
        if self.seen is None:
            return density
        return density * self.seen.contains(unit, self.config.min_views)

    @property
    def is_last_sample(self) -> bool:
        """Whether the last sample's colour is behind everything."""
        return self.settings.background is None

    def field_at(
        self, rays: Rays, samples: RaySamples, code: Float[Tensor, "R A"] | None
    ) -> tuple[Float[Tensor, "R S"], Float[Tensor, "R S 3"]]:
        """Density and colour of the field at samples, under the rays' appearance codes."""
        shape = samples.t.shape
        unit = self.settings.frame.to_unit(samples.positions(rays))
        geometry = self.field.geometry(unit)
        directions = _per_sample(self.field.encode(rays.directions), shape[1])
        codes = None if code is None else _per_sample(code, shape[1])
        rgb = self.field.color(geometry, directions, codes)
        return self._density(unit, geometry).view(shape), rgb.view(*shape, 3)


def _per_sample(of_rays: Float[Tensor, "R C"], num_samples: int) -> Float[Tensor, "N C"]:
    """What belongs to a ray, repeated for each of its samples."""
    return of_rays[:, None].expand(-1, num_samples, -1).flatten(0, 1)

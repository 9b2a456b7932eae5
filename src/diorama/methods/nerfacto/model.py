# SPDX-License-Identifier: Apache-2.0
"""Nerfacto as a Diorama model: a field, its sampler, and the losses of both."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from diorama.cameras import Cameras, Rays
from diorama.data.ray_manager import RayBatch
from diorama.data.scene import Scene
from diorama.methods.nerfacto.check import check_nerfacto_config
from diorama.methods.nerfacto.config import NerfactoConfig
from diorama.methods.nerfacto.guidance import Guidance
from diorama.methods.nerfacto.losses import distortion_per_ray, interlevel_loss, scale_gradient
from diorama.methods.nerfacto.photo_plainness import photo_plainness_loss
from diorama.methods.nerfacto.photographed import mark_photographed
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
from diorama.ops.composite import Composite, composite_dense

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
        self.guidance = Guidance(config, scene)
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
        # Rays of pixels and guiding ones go through the field together, pixels first.
        num, guides = len(batch.rays), self.guidance.draw(step, self.max_steps, generator)
        image_index = torch.cat((batch.image_index, *(rays.camera_index for rays in guides.rays)))
        rays = self._corrected(Rays.cat([batch.rays, *guides.rays]), image_index, step)
        samples, proposals = self.sampler.train_samples(rays, step, generator)
        code = None if self.appearance is None else self.appearance(image_index)
        density, rgb = self._learning_field_at(rays, samples, code)
        ray = composite_dense(density, samples.delta, rgb)
        if self.photographed is not None:
            mark_photographed(
                self.photographed, rays[:num], samples[:num], ray.weights[:num],
                is_counted=batch.weights > 0, num_rays=step * num,
            )  # fmt: skip

        outputs = self._colors(batch, ray, rgb, generator)
        unit = self.settings.frame.half_side
        outputs |= guides.losses(samples[num:], ray.weights[num:], step, unit)
        if self.config.photo_plainness > 0 and batch.num_patches > 0:
            share = PLAIN_START ** (1.0 - step / self.max_steps)
            loss = photo_plainness_loss(batch, samples, ray.weights, unit)
            outputs["photo_plainness"] = share * loss
        if self.poses is not None and _poses_learn(step):
            outputs["poses"] = self.poses.penalty()
        if proposals:
            outputs["interlevel"] = interlevel_loss(samples, ray.weights.detach(), proposals)
        if self.settings.distortion > 0:
            outputs["distortion"] = distortion_per_ray(samples, ray.weights)[:num]
        return outputs

    def _corrected(self, rays: Rays, image_index: Int[Tensor, " R"], step: int) -> Rays:
        """The rays as their images' poses are thought to be by now."""
        if self.poses is None:
            return rays
        with torch.set_grad_enabled(_poses_learn(step) and torch.is_grad_enabled()):
            return self.poses(rays, image_index)

    def _learning_field_at(
        self, rays: Rays, samples: RaySamples, code: Float[Tensor, "R A"] | None
    ) -> tuple[Float[Tensor, "R S"], Float[Tensor, "R S 3"]]:
        """`field_at`, whose gradients are weak close to the camera if the config says so.

        Samples there are met by many of a camera's rays; undone, that grows floaters.
        """
        density, rgb = self.field_at(rays, samples, code)
        if not self.config.gradient_scaling:
            return density, rgb
        nearness = (samples.t / self.settings.frame.half_side).square().clamp(max=1.0)
        return scale_gradient(density, nearness), scale_gradient(rgb, nearness[:, :, None])

    def _colors(
        self,
        batch: RayBatch,
        ray: Composite,
        rgb: Float[Tensor, "R S 3"],
        generator: torch.Generator,
    ) -> dict[str, Tensor]:
        """What the rays of pixels, which come first, see, and what was photographed there."""
        num, background = len(batch.rays), self.background[None]
        if self.settings.is_random:
            background = torch.rand(len(rgb), 3, generator=generator, device=rgb.device)
        seen = over_background(ray, rgb, None if self.is_last_sample else background)[:num]
        if self.exposure is not None:
            seen = self.exposure(seen, batch.image_index)
        return {"target": blended_over(batch.pixels, background[:num]), "rgb": seen}

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
        """Steps with guiding rays take longer."""
        return self.guidance.step_cost(step, max_steps)

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


def _poses_learn(step: int) -> bool:
    return step % POSES_EVERY == 0


def _per_sample(of_rays: Float[Tensor, "R C"], num_samples: int) -> Float[Tensor, "N C"]:
    """What belongs to a ray, repeated for each of its samples."""
    return of_rays[:, None].expand(-1, num_samples, -1).flatten(0, 1)

# SPDX-License-Identifier: Apache-2.0
"""Gaussian splatting as a Diorama model."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from diorama.cameras import Cameras
from diorama.data.image_manager import ImageBatch
from diorama.data.scene import Scene
from diorama.methods.splat.check import check_splat_config, check_splat_scene
from diorama.methods.splat.config import SplatConfig
from diorama.methods.splat.cost import step_cost
from diorama.methods.splat.density.adaptive import AdaptiveDensity
from diorama.methods.splat.density.choose import density_strategy
from diorama.methods.splat.density.strategy import Observation
from diorama.methods.splat.drawing import Drawn, Style, draw
from diorama.methods.splat.exposure import Exposure
from diorama.methods.splat.gaussians import Gaussians
from diorama.methods.splat.initialize import initial_splats
from diorama.methods.splat.losses import image_losses, size_losses, truth_losses
from diorama.methods.splat.monitor import Monitor, Pictures
from diorama.methods.splat.render import render_image
from diorama.methods.splat.schedule import active_degree, image_factor, reduced
from diorama.model import Model, OptimizerState, RenderOutput, TrainingCallback, Watch
from diorama.nn.pixels import psnr_of
from diorama.nn.pose_refinement import PoseRefinement
from diorama.ops.rasterized import SplatSums
from diorama.splats import Splats


@dataclass(frozen=True)
class _Pass:
    """One image on its way: what the losses and the density strategy need of it."""

    step: int
    drawn: Drawn
    is_visible: Bool[Tensor, " N"]
    """Which Gaussians were drawn, in this image or another batch of the same step."""
    sums: SplatSums | None
    alpha: Float[Tensor, "H W"]
    depth: Float[Tensor, "H W"] | None
    weights: Float[Tensor, "H W"] | None


class SplatModel(Model):
    """Gaussians, their density strategy, and whatever of exposure and poses is learned."""

    config: SplatConfig

    def __init__(self, config: SplatConfig, scene: Scene):
        check_splat_config(config)
        check_splat_scene(config, scene)
        super().__init__(config, scene)
        self.extent = camera_extent(scene) if config.length_unit is None else config.length_unit
        self.exposure = Exposure(len(scene.frames)) if config.exposure else None
        self.poses = None
        if config.refine_poses:
            self.poses = PoseRefinement(scene.cameras, scene.splits["train"])
        seed = int(torch.randint(2**62, ()))
        splats = initial_splats(config, scene, torch.Generator().manual_seed(seed))
        self.notes = splats.notes
        self.gaussians = Gaussians(splats)
        self.density = density_strategy(config, self.gaussians, self.extent)
        self.monitor = Monitor(config)
        self._pass: _Pass | None = None
        self._shown: dict[str, Tensor] = {}
        self._loss = 0.0
        self._generator: torch.Generator | None = None

    @property
    def background(self) -> Float[Tensor, "3"]:
        """White behind objects, black behind everything else, unless the config says which."""
        kind = self.config.background
        is_white = self.scene.has_alpha if kind in ("auto", "random") else kind == "white"
        return self.gaussians.means.new_full((3,), float(is_white))

    @property
    def is_random(self) -> bool:
        """Whether training blends over random colours."""
        kind = self.config.background
        return kind == "random" or (kind == "auto" and self.scene.has_alpha)

    def get_param_groups(self) -> dict[str, list[nn.Parameter]]:
        groups = {name: [p] for name, p in self.gaussians.named_tensors().items() if p.numel() > 0}
        if self.exposure is not None:
            groups["exposure"] = list(self.exposure.parameters())
        if self.poses is not None:
            groups["poses"] = list(self.poses.parameters())
        return groups

    def learning_rate_factors(self) -> dict[str, float]:
        """Means move in units of the scene."""
        return {"means": self.extent}

    def attach(self, optimizers: OptimizerState) -> None:
        self.density.optimizers = optimizers

    def watch(self, log: Watch) -> None:
        self.monitor.log = log

    def adopt_shapes(self, state: Mapping[str, Tensor]) -> None:
        for name, part in (("gaussians", self.gaussians), ("density", self.density)):
            prefix = f"{name}."
            own = {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
            part.resize_like(own)

    def get_callbacks(self) -> list[TrainingCallback]:
        return [
            TrainingCallback("before-update", self._observe),
            TrainingCallback("after-step", self._refine),
        ]

    def forward(
        self, batch: ImageBatch, step: int, generator: torch.Generator
    ) -> dict[str, Tensor]:
        config = self.config
        self._generator = generator
        batch = reduced(batch, image_factor(config, step, self.squeeze))
        background = self.background
        if self.is_random:
            background = torch.rand(3, generator=generator, device=background.device)
        pixels = batch.rgba.to(background.device).float() / 255
        is_shown = self.monitor.wants_images(step)
        sums = None
        if self.density.watches_pixels or is_shown:
            shape = (pixels.shape[0], pixels.shape[1]) if is_shown else None
            sums = SplatSums.zeros(self.gaussians.means.detach()[:, :2], shape)
        style = Style(
            background,
            degree=self._degree(step) if config.gate_bands else config.sh_degree,
            teaches_rest=step % config.rest_every == 0,
            has_depth=is_shown or (config.depth_loss > 0 and batch.depth is not None),
            sums=sums,
        )
        drawn = draw(self.gaussians, self._camera(batch), config, style)
        drawn.projected.centers.retain_grad()
        is_visible = drawn.projected.half_extents[:, 0] > 0
        if self._pass is not None and self._pass.step == step:
            is_visible |= self._pass.is_visible
        self._pass = _Pass(
            step, drawn, is_visible, sums, pixels[..., 3], batch.depth,
            None if batch.weights is None else batch.weights.to(background.device).float() / 255,
        )  # fmt: skip
        rgb = drawn.rgb if self.exposure is None else self.exposure(drawn.rgb, batch.image_index)
        if config.clamp_image:
            rgb = rgb.clamp(0, 1)
        return {
            "rgb": rgb,
            "target": torch.lerp(background.expand_as(rgb), pixels[..., :3], pixels[..., 3:]),
        }

    def _degree(self, step: int) -> int:
        return active_degree(self.config, step, self.squeeze)

    def _camera(self, batch: ImageBatch) -> Cameras:
        if self.poses is None:
            return batch.camera
        return self.poses.of_image(batch.camera, batch.image_index)

    def get_loss_dict(self, outputs: dict[str, Tensor], batch: ImageBatch) -> dict[str, Tensor]:
        seen, config = self._pass, self.config
        assert seen is not None, "losses follow a forward pass"
        self._shown = outputs
        losses = image_losses(outputs["rgb"], outputs["target"], seen.weights, config)
        losses |= size_losses(self.gaussians, config)
        losses |= truth_losses(seen.drawn, seen.alpha, seen.depth, seen.weights, config)
        if self.poses is not None:
            losses["poses"] = self.poses.penalty()
        self._loss = sum(float(term.detach()) for term in losses.values())
        return losses

    def get_metrics_dict(self, outputs: dict[str, Tensor], batch: ImageBatch) -> dict[str, Tensor]:
        error = (outputs["rgb"].detach().clamp(0, 1) - outputs["target"]).square().mean()
        return {"psnr": psnr_of(error), "gaussians": torch.tensor(float(len(self.gaussians)))}

    @property
    def last_drawn(self) -> Drawn:
        """What the last training pass drew."""
        assert self._pass is not None, "there was a forward pass"
        return self._pass.drawn

    def _observe(self, step: int) -> None:
        """Gradients are there, and the optimiser has not moved anything yet."""
        seen = self._pass
        assert seen is not None, "observed after a backward pass"
        self._mask_bands(step)
        self.density.squeeze = self.squeeze
        projected = seen.drawn.projected
        gradients = projected.centers.grad
        assert gradients is not None, "the centres keep their gradient"
        height, width = seen.drawn.alpha.shape
        observation = Observation(
            projected.half_extents[:, 0] > 0, gradients, seen.sums, projected.depths.detach(),
            projected.centers.detach(), width, height,
        )  # fmt: skip
        self.density.observe(observation, step)
        self.gaussians.touch_only(seen.is_visible, self.density.optimizers)
        self._tell(seen, step)

    def _tell(self, seen: _Pass, step: int) -> None:
        """What the logs want to know of this step."""
        rgb, target = self._shown["rgb"], self._shown["target"]
        self.monitor.note(step, self._loss, Pictures(rgb, target, seen.drawn, seen.sums))
        self.monitor.histograms(step, self.gaussians, seen.drawn, seen.sums)
        if isinstance(self.density, AdaptiveDensity) and self.density.plan is not None:
            self.monitor.densified(step, self.density.plan, seen.drawn)

    def _mask_bands(self, step: int) -> None:
        """In the taichi system, bands that have not joined are drawn but not taught."""
        gradient = self.gaussians.sh_rest.grad
        if not self.config.gate_bands and gradient is not None:
            joined = (self._degree(step) + 1) ** 2 - 1
            gradient[:, joined:] = 0

    def _refine(self, step: int) -> None:
        assert self._generator is not None, "refined after a forward pass"
        self._pass, self._shown = None, {}
        self.density.squeeze = self.squeeze
        facts = self.density.refine(step, self._generator)
        if facts and self.monitor.log is not None:
            counts = facts | {"gaussians": float(len(self.gaussians))}
            self.monitor.log.scalars(step + 1, "density", counts)

    def step_cost(self, step: int, max_steps: int) -> float:
        squeeze = max_steps * self.squeeze / self.max_steps
        return step_cost(self.config, self.density.first_count, step, squeeze)

    def render(self, camera: Cameras) -> RenderOutput:
        seen_from = camera if self.poses is None else self.poses.at(camera)
        return render_image(self.gaussians, self.config, self.background, seen_from)

    def splats(self) -> Splats:
        """The Gaussians in the normalised frame."""
        g = self.gaussians
        return Splats(
            means=g.means.detach(), quaternions=g.quaternions.detach(),
            log_scales=g.log_scales.detach(), opacity_logits=g.opacity_logits.detach(),
            sh=g.sh.detach(), color=self.config.color, antialiased=self.config.antialiased,
        )  # fmt: skip


def camera_extent(scene: Scene) -> float:
    """1.1 times the largest distance of a training camera from their mean."""
    train = scene.splits["train"] or tuple(range(len(scene.frames)))
    centers = scene.cameras.world_from_camera[list(train), :, 3]
    return max(1e-6, 1.1 * float((centers - centers.mean(dim=0)).norm(dim=1).max()))

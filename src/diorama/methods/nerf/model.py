# SPDX-License-Identifier: Apache-2.0
"""NeRF as a Diorama model: losses, outputs, rendering, and its two ways to sample."""

import torch
from jaxtyping import Float
from torch import Tensor

from diorama.cameras import CameraModel, Cameras, Rays
from diorama.data.ray_manager import RayBatch
from diorama.data.scene import Scene
from diorama.methods.nerf.check import check_nerf_config
from diorama.methods.nerf.config import NerfConfig
from diorama.methods.nerf.field import NerfField
from diorama.methods.nerf.occupancy_renderer import OccupancyRenderer
from diorama.methods.nerf.paper_renderer import PaperRenderer
from diorama.methods.nerf.rays import NdcFrame, PaperRays, z_depth_rays
from diorama.methods.nerf.settings import RenderSettings
from diorama.methods.nerf.volume import Pixels
from diorama.model import Model, RenderOutput
from diorama.nn.pixels import blended_over, mean_squared_error, psnr_of

DEAD_STEPS = 100  # steps in a row without any opacity before a start counts as dead
DEAD_OPACITY = 1e-4
VISIBLE_CONTRAST = 0.05


class NerfModel(Model):
    """Coarse and fine networks with the paper's sampler, or one with an occupancy grid."""

    config: NerfConfig
    dead_steps: Tensor

    def __init__(self, config: NerfConfig, scene: Scene):
        check_nerf_config(config)
        super().__init__(config, scene)
        self.settings = RenderSettings.of(config, scene)
        self.ndc = NdcFrame.of(scene) if self.settings.is_ndc else None
        self.has_perspective_cameras = bool((scene.cameras.model == CameraModel.PERSPECTIVE).all())
        renderer = PaperRenderer if config.sampler == "paper" else OccupancyRenderer
        self.renderer = renderer(config, self.settings)
        self.register_buffer("dead_steps", torch.zeros((), dtype=torch.int64))
        self.reinitialize(torch.Generator().manual_seed(int(torch.randint(2**62, ()))))

    def reinitialize(self, generator: torch.Generator) -> None:
        """Fresh weights, an empty memory of dead steps, a grid that knows nothing."""
        for module in self.modules():
            if isinstance(module, NerfField):
                module.initialize(generator)
        self.renderer.reset()
        self.dead_steps.zero_()

    @property
    def background(self) -> Float[Tensor, "3"]:
        return torch.tensor(self.settings.background, device=self.dead_steps.device)

    def forward(self, batch: RayBatch, step: int, generator: torch.Generator) -> dict[str, Tensor]:
        rays = self._paper_rays(batch.rays, self.has_perspective_cameras)
        passes = self.renderer.train_pixels(rays, step, generator)
        target = blended_over(batch.pixels, self.background[None])
        self._watch_for_dead_start(passes, target)
        outputs = {"target": target, "rgb": passes[-1].rgb, "opacity": passes[-1].opacity}
        if len(passes) == 2:
            outputs["rgb_coarse"] = passes[0].rgb
        return outputs

    def get_loss_dict(self, outputs: dict[str, Tensor], batch: RayBatch) -> dict[str, Tensor]:
        """Equation 6: squared error of the fine and of the coarse picture."""
        return {
            name: mean_squared_error(outputs[name], outputs["target"], batch.weights)
            for name in ("rgb", "rgb_coarse")
            if name in outputs
        }

    def get_metrics_dict(self, outputs: dict[str, Tensor], batch: RayBatch) -> dict[str, Tensor]:
        """PSNR of the fine picture alone: summing both passes would cost 3 dB on paper."""
        error = mean_squared_error(outputs["rgb"].detach(), outputs["target"], batch.weights)
        return {
            "psnr": psnr_of(error),
            "num_rays": torch.tensor(float(len(batch.rays))),
            "opacity": outputs["opacity"].detach().mean(),
            **self.renderer.statistics(),
        }

    def next_num_rays(self, num_rays: int) -> int:
        return self.renderer.next_num_rays(num_rays)

    def dead_start(self, step: int) -> str | None:
        if self.dead_steps.item() < DEAD_STEPS:
            return None
        return (
            f"nothing has had any density for {DEAD_STEPS} steps although the pictures show "
            "something: these initial weights are dead"
        )

    @torch.no_grad()
    def render(self, camera: Cameras) -> RenderOutput:
        device = self.dead_steps.device
        rays, size = camera.to(device).image_rays(), (camera.height(), camera.width())
        by_z_depth = self._samples_by_z_depth(camera)
        parts = [
            self.renderer.render_pixels(self._paper_rays(part, by_z_depth))
            for part in _split(rays, self.config.render_chunk)
        ]
        rgb, depth, opacity, disparity = (
            torch.cat([getattr(part, name) for part in parts])
            for name in ("rgb", "depth", "opacity", "disparity")
        )
        expected = depth / opacity.clamp(min=1e-6)
        if not by_z_depth:
            expected = expected * rays.z_scale
        return RenderOutput(
            rgb.view(*size, 3),
            expected.view(size),
            opacity.view(size),
            extras={"disparity": disparity.view(size)},
        )

    def _samples_by_z_depth(self, camera: Cameras) -> bool:
        """Whether depth is z-depth as in the paper, or distance because some lens is too wide."""
        is_perspective = bool((camera.model == CameraModel.PERSPECTIVE).all())
        return self.ndc is not None or (is_perspective and self.has_perspective_cameras)

    def _paper_rays(self, rays: Rays, by_z_depth: bool) -> PaperRays:
        return z_depth_rays(rays, by_z_depth) if self.ndc is None else self.ndc.rays(rays)

    @torch.no_grad()
    def _watch_for_dead_start(self, passes: list[Pixels], target: Float[Tensor, "R 3"]) -> None:
        """Count steps in which something is to be seen and a network shows nothing at all."""
        if len(target) == 0:
            return
        shows = min(part.opacity.max().item() for part in passes)
        sees = (target - self.background).abs().max().item()
        if shows < DEAD_OPACITY and sees > VISIBLE_CONTRAST:
            self.dead_steps += 1
        elif shows >= DEAD_OPACITY:
            self.dead_steps.zero_()


def _split(rays: Rays, chunk: int) -> list[Rays]:
    return [rays[start : start + chunk] for start in range(0, len(rays), chunk)]

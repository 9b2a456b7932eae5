# SPDX-License-Identifier: Apache-2.0
"""The panorama: a ray's colour is the table's entry in the ray's direction."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from diorama.cameras import Cameras
from diorama.data.ray_manager import RayBatch
from diorama.data.scene import Scene
from diorama.metrics import psnr
from diorama.model import Model, RenderOutput
from diorama_panorama.config import PanoramaConfig


class PanoramaModel(Model):
    """Learns the mean colour that the photographs show in each direction."""

    config: PanoramaConfig

    def __init__(self, config: PanoramaConfig, scene: Scene):
        super().__init__(config, scene)
        self.table = nn.Parameter(torch.zeros(config.height * 2 * config.height, 3))

    def forward(self, batch: RayBatch, step: int, generator: torch.Generator) -> dict[str, Tensor]:
        rgb, alpha = batch.pixels[:, :3], batch.pixels[:, 3:]
        target = rgb * alpha + (1 - alpha) * self.background.to(rgb)
        return {"rgb": self.colors(batch.rays.directions), "target": target}

    def get_loss_dict(self, outputs: dict[str, Tensor], batch: RayBatch) -> dict[str, Tensor]:
        """Squared error of the rays that count: a mask gives the others weight 0."""
        squares = (outputs["rgb"] - outputs["target"]).square().mean(dim=1)
        return {"rgb": (squares * batch.weights).sum() / batch.weights.sum().clamp(min=1)}

    def get_metrics_dict(self, outputs: dict[str, Tensor], batch: RayBatch) -> dict[str, Tensor]:
        return {"psnr": psnr(outputs["rgb"], outputs["target"], batch.weights)}

    @torch.no_grad()
    def render(self, camera: Cameras) -> RenderOutput:
        size = (camera.height(), camera.width())
        rgb = self.colors(camera.to(self.table.device).image_rays().directions)
        depth = torch.full(size, self.scene.bounds.far, device=rgb.device)
        return RenderOutput(rgb.view(*size, 3), depth, alpha=torch.ones_like(depth))

    def colors(self, directions: Float[Tensor, "R 3"]) -> Float[Tensor, "R 3"]:
        """The colours in 0..1 that are seen in unit directions."""
        return self.table[self._entry(directions)].sigmoid()

    def _entry(self, directions: Float[Tensor, "R 3"]) -> Int[Tensor, " R"]:
        """Row by latitude, column by longitude, z up."""
        rows, columns = self.config.height, 2 * self.config.height
        latitude = directions[:, 2].clamp(-1, 1).acos() / torch.pi
        longitude = torch.atan2(directions[:, 1], directions[:, 0]) / (2 * torch.pi) + 0.5
        row = (latitude * rows).long().clamp(0, rows - 1)
        return row * columns + (longitude * columns).long().clamp(0, columns - 1)

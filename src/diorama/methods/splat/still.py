# SPDX-License-Identifier: Apache-2.0
"""Splats from a file as a model: nothing to train, only to look at and to export."""

import torch
from jaxtyping import Float
from torch import Tensor

from diorama.cameras import Cameras
from diorama.data.scene import Scene
from diorama.methods.splat.config import SplatConfig
from diorama.methods.splat.gaussians import Gaussians
from diorama.methods.splat.render import render_image
from diorama.model import Model, RenderOutput
from diorama.splats import Splats

NEAR = 1e-3
"""Nearest depth that is drawn, in radii of the scene."""


class StillSplats(Model):
    """The Gaussians of a file, drawn as the file says they were trained."""

    config: SplatConfig

    def __init__(self, splats: Splats, scene: Scene):
        config = SplatConfig(
            color=splats.color,
            antialiased=splats.antialiased,
            sh_degree=splats.degree,
            near=NEAR * scene.bounds.radius,
            background="black",
        )
        super().__init__(config, scene)
        self.gaussians = Gaussians(splats)
        self.requires_grad_(False)

    @property
    def background(self) -> Float[Tensor, "3"]:
        """Black: a file does not say what was behind its splats."""
        return torch.zeros_like(self.gaussians.means[0])

    def render(self, camera: Cameras) -> RenderOutput:
        return render_image(self.gaussians, self.config, self.background, camera)

    def splats(self) -> Splats:
        """The file's splats; its frame is the scene's."""
        g = self.gaussians
        return Splats(
            means=g.means, quaternions=g.quaternions, log_scales=g.log_scales,
            opacity_logits=g.opacity_logits, sh=g.sh,
            color=self.config.color, antialiased=self.config.antialiased,
        )  # fmt: skip

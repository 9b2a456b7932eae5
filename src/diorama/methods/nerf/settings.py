# SPDX-License-Identifier: Apache-2.0
"""What the config leaves open and the scene decides: range, spacing, far plane, background."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from diorama.data.scene import Scene
from diorama.errors import UserError
from diorama.methods.nerf.config import NerfConfig
from diorama.methods.nerf.grid_frame import grid_frame
from diorama.nn.scene_frame import SceneFrame


@dataclass(frozen=True)
class RenderSettings:
    """The resolved settings of one model on one scene."""

    near: float
    far: float
    is_ndc: bool
    lindisp: bool
    far_is_opaque: bool
    background: tuple[float, float, float]
    grid_frame: SceneFrame

    @staticmethod
    def of(config: NerfConfig, scene: Scene) -> "RenderSettings":
        """Every open choice settled by the kind of the scene."""
        is_ndc = scene.kind == "forward-facing" if config.ndc is None else config.ndc
        lindisp = scene.kind == "unbounded" if config.lindisp is None else config.lindisp
        if is_ndc and config.lindisp:
            raise UserError(
                "--model.lindisp with --model.ndc: NDC is linear in disparity already; drop one."
            )
        is_cut_out = scene.has_alpha
        is_opaque = not is_cut_out if config.far_is_opaque is None else config.far_is_opaque
        near, far = (0.0, 1.0) if is_ndc else (scene.bounds.near, scene.bounds.far)
        return RenderSettings(
            near,
            far,
            is_ndc,
            lindisp and not is_ndc,
            is_opaque,
            _background(config, scene),
            grid_frame(scene, is_ndc),
        )

    def step_at(self, depth: Float[Tensor, " N"], num_steps: int) -> Float[Tensor, " N"]:
        """Length of a lattice interval at a depth: d(depth)/d(fraction) / num_steps."""
        if self.lindisp:
            return depth.square() * (1.0 / self.near - 1.0 / self.far) / num_steps
        return torch.full_like(depth, (self.far - self.near) / num_steps)


def _background(config: NerfConfig, scene: Scene) -> tuple[float, float, float]:
    """The named colour; auto is the format's own, else white behind cut-outs and black."""
    white, black = (1.0, 1.0, 1.0), (0.0, 0.0, 0.0)
    if config.background == "auto":
        return scene.background or (white if scene.has_alpha else black)
    return white if config.background == "white" else black

# SPDX-License-Identifier: Apache-2.0
"""What the config leaves open and the scene decides: frame, steps, background."""

import math
from dataclasses import dataclass, replace

from diorama.data.scene import Scene, Vector
from diorama.methods.ngp.config import NgpConfig
from diorama.nn.scene_frame import SceneFrame

UNBOUNDED_LEVELS = 5
UNBOUNDED_CONE = 1.0 / 256.0


@dataclass(frozen=True)
class NgpSettings:
    """The resolved settings of one model on one scene."""

    field_frame: SceneFrame
    """Where the field's unit cube lies."""
    grid_frame: SceneFrame
    """Where the innermost occupancy grid lies; each further one is twice as large."""
    grid_levels: int
    near: float
    step: float
    cone: float
    min_alpha: float
    """Of one step of training; a finer one is as much less opaque."""
    render_steps: int
    distortion: float
    background: Vector
    is_random: bool
    """Whether training draws a background of its own for each ray."""

    @staticmethod
    def of(config: NgpConfig, scene: Scene) -> "NgpSettings":
        """Every open choice settled by the kind of the scene."""
        is_unbounded = scene.kind == "unbounded"
        contract = is_unbounded if config.contract is None else config.contract
        levels = config.grid_levels or (UNBOUNDED_LEVELS if is_unbounded else 1)
        cone = (UNBOUNDED_CONE if is_unbounded else 0.0) if config.cone is None else config.cone
        inner = SceneFrame.cube_of(scene, is_contracted=contract)
        # Contracted, the field spans all of space; otherwise it must span the outermost grid.
        outer = inner if contract else inner.grown(2.0 ** (levels - 1))
        min_alpha = 0.01 if is_unbounded else 0.0
        distortion = 0.0005 if is_unbounded else 0.0
        is_random = config.background == "random" or (
            config.background == "auto" and scene.has_alpha
        )
        return NgpSettings(
            field_frame=outer,
            grid_frame=replace(inner, is_contracted=False),
            grid_levels=levels,
            near=scene.bounds.near,
            step=2.0 * math.sqrt(3.0) * inner.half_side / config.march_steps,
            cone=cone,
            min_alpha=min_alpha if config.min_alpha is None else config.min_alpha,
            render_steps=config.render_steps or (1 if is_unbounded else 2),
            distortion=distortion if config.distortion is None else config.distortion,
            background=_background(config, scene),
            is_random=is_random,
        )

    @property
    def outer_frame(self) -> SceneFrame:
        """The box of the outermost occupancy grid."""
        return self.grid_frame.grown(2.0 ** (self.grid_levels - 1))


def _background(config: NgpConfig, scene: Scene) -> Vector:
    """The colour of renderings: as named, else the format's own, else white behind cut-outs."""
    white, black = (1.0, 1.0, 1.0), (0.0, 0.0, 0.0)
    if config.background in ("white", "black"):
        return white if config.background == "white" else black
    return scene.background or (white if scene.has_alpha else black)

# SPDX-License-Identifier: Apache-2.0
"""What the config leaves open and the scene decides: frame, spacing, background, weights."""

from dataclasses import dataclass

from diorama.data.scene import Scene, Vector
from diorama.methods.nerfacto.config import NerfactoConfig
from diorama.nn.scene_frame import SceneFrame

APPEARANCE_SIZE = 16
OPEN_DENSITY, OBJECT_DENSITY = 0.1, 1.0
OPEN_DISTORTION = 0.002


@dataclass(frozen=True)
class NerfactoSettings:
    """The resolved settings of one model on one scene."""

    frame: SceneFrame
    """Where the grids' unit cube lies."""
    is_uniform: bool
    """Whether first samples are even between the faces of the frame's box."""
    near: float
    far: float
    """Distances of the first and the last sample; the box's faces cut them short if uniform."""
    background: Vector | None
    """The colour behind the scene; None is the last sample's."""
    is_random: bool
    """Whether training draws a background of its own for each ray."""
    appearance_size: int
    refines_poses: bool
    initial_density: float
    distortion: float

    @staticmethod
    def of(config: NerfactoConfig, scene: Scene) -> "NerfactoSettings":
        """Every open choice settled by the kind of the scene."""
        is_object = scene.kind == "object"
        contract = (not is_object) if config.contract is None else config.contract
        is_uniform = (not contract) if config.spacing == "auto" else config.spacing == "uniform"
        frame = _frame(scene, contract)
        far = config.far * frame.half_side if contract else scene.bounds.far
        return NerfactoSettings(
            frame=frame,
            is_uniform=is_uniform,
            near=scene.bounds.near,
            far=max(far, 2.0 * scene.bounds.near),
            background=_background(config, scene),
            is_random=config.background == "random"
            or (config.background == "auto" and scene.has_alpha),
            appearance_size=int(_or(config.appearance_size, 0 if is_object else APPEARANCE_SIZE)),
            refines_poses=bool(_or(config.refine_poses, not is_object)),
            initial_density=_or(
                config.initial_density, OBJECT_DENSITY if is_object else OPEN_DENSITY
            ),
            distortion=_or(config.distortion, 0.0 if is_object else OPEN_DISTORTION),
        )


def _frame(scene: Scene, contract: bool) -> SceneFrame:
    """The scene's box as a cube.

    A forward-facing scene begins at its nearest depth and may end anywhere: contracted, it
    belongs into the shell around a cube that reaches from the cameras to that depth.
    """
    if contract and scene.kind == "forward-facing":
        x, y, z = scene.cameras.world_from_camera[:, :, 3].mean(dim=0).tolist()
        half = scene.bounds.near
        return SceneFrame((x - half, y - half, z - half), (x + half, y + half, z + half), True)
    return SceneFrame.cube_of(scene, is_contracted=contract)


def _background(config: NerfactoConfig, scene: Scene) -> Vector | None:
    """As named; else the format's own colour or white behind cut-outs, the last sample's else."""
    white, black = (1.0, 1.0, 1.0), (0.0, 0.0, 0.0)
    if config.background in ("white", "black"):
        return white if config.background == "white" else black
    if config.background == "last-sample" or (config.background == "auto" and not scene.has_alpha):
        return None
    return scene.background or white


def _or(chosen: int | float | None, otherwise: int | float) -> int | float:
    return otherwise if chosen is None else chosen

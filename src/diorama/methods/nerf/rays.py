# SPDX-License-Identifier: Apache-2.0
"""Rays as the paper parametrises them: un-normalised, so that the parameter is z-depth."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from diorama.cameras import Rays
from diorama.cameras.ndc import ndc_rays
from diorama.data.scene import Scene

FARTHEST_NDC = 0.999  # NDC ends at infinity; depths are reported up to 1000 x the near plane


@dataclass(frozen=True)
class PaperRays:
    """x(s) = origins + s * steps; one unit of s is `lengths` long.

    Outside NDC s is z-depth (near, far and densities are in its units). In NDC s runs from 0 at
    the near plane to 1 at infinity and z-depth is z_slope / (1 - s) + z_offset.
    """

    origins: Float[Tensor, "R 3"]
    steps: Float[Tensor, "R 3"]
    lengths: Float[Tensor, " R"]
    view_directions: Float[Tensor, "R 3"]
    z_slope: Float[Tensor, " R"] | None = None
    z_offset: Float[Tensor, " R"] | None = None

    def __len__(self) -> int:
        return len(self.origins)

    def z_depth(self, s: Float[Tensor, " N"], ray: Tensor | slice) -> Float[Tensor, " N"]:
        """z-depth of the parameters s on the rays with the indices `ray`."""
        if self.z_slope is None or self.z_offset is None:
            return s
        return self.z_slope[ray] / (1.0 - s.clamp(max=FARTHEST_NDC)) + self.z_offset[ray]


def z_depth_rays(rays: Rays, is_z_depth: bool = True) -> PaperRays:
    """Rays parametrised by z-depth, or by metric distance where z-depth means nothing."""
    lengths = 1.0 / rays.z_scale if is_z_depth else torch.ones_like(rays.z_scale)
    return PaperRays(rays.origins, rays.directions * lengths[:, None], lengths, rays.directions)


@dataclass(frozen=True)
class NdcFrame:
    """The forward-facing frustum that NDC straightens: one pinhole for the whole scene.

    NDC is written for cameras that look to -z with y up; a scene whose cameras look to +z is
    turned about x first.
    """

    fx: float
    fy: float
    width: int
    height: int
    turn: tuple[float, float, float]
    near_plane: float = 1.0

    @staticmethod
    def of(scene: Scene) -> "NdcFrame":
        """The frame of the scene's first camera (NDC assumes that all share its intrinsics)."""
        cameras = scene.cameras
        looks_to_minus_z = cameras.world_from_camera[:, 2, 2].mean().item() < 0
        turn = (1.0, 1.0, 1.0) if looks_to_minus_z else (1.0, -1.0, -1.0)
        fx, fy = cameras.intrinsics[0, :2].tolist()
        return NdcFrame(fx, fy, cameras.width(0), cameras.height(0), turn)

    def rays(self, rays: Rays) -> PaperRays:
        """The rays in NDC; view directions are taken before the transform."""
        turn = rays.origins.new_tensor(self.turn)
        origins, directions = rays.origins * turn, rays.directions * turn
        ndc_origins, ndc_steps = ndc_rays(
            origins, directions, self.fx, self.fy, self.width, self.height, self.near_plane
        )
        scale = rays.z_scale / -directions[:, 2]
        return PaperRays(
            ndc_origins,
            ndc_steps,
            ndc_steps.norm(dim=1),
            directions,
            z_slope=self.near_plane * scale,
            z_offset=origins[:, 2] * scale,
        )

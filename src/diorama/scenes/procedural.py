# SPDX-License-Identifier: Apache-2.0
"""A procedural scene: its exact distance, colour and mesh, and what a perfect camera sees of it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from diorama.cameras import Cameras, Rays
from diorama.scenes.grid import CandidateGrid, build_grid
from diorama.scenes.shading import shade
from diorama.scenes.solids import SolidUnion, columnwise
from diorama.scenes.tracing import trace

if TYPE_CHECKING:
    import trimesh

# Small enough to stay near the caches, large enough to hide torch's cost per call.
_RAYS_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class GroundTruth:
    """One image and its exact geometry.

    ``rgb`` and ``alpha`` are averaged over each pixel's area. ``depth`` and ``normal`` belong to
    the ray through the pixel's centre, and are 0 where that ray meets nothing.
    """

    rgb: Float[Tensor, "H W 3"]
    """Display (sRGB) colour in [0, 1], straight: not multiplied by alpha."""
    alpha: Float[Tensor, "H W"]
    """Part of the pixel that is covered."""
    depth: Float[Tensor, "H W"]
    """z-depth; divide by the ray's ``z_scale`` for the distance along the ray."""
    normal: Float[Tensor, "H W 3"]
    """Outward, in the world."""
    mask: Bool[Tensor, "H W"]
    """alpha > 0.5."""


@dataclass(frozen=True)
class ProceduralScene(SolidUnion):
    """A union of solids that can be photographed."""

    @cached_property
    def grid(self) -> CandidateGrid:
        """The acceleration structure, built on first use."""
        return build_grid(self)

    def render_rgba(self, cameras: Cameras, supersampling: int = 2) -> Float[Tensor, "N H W 4"]:
        """Straight colour and coverage, from supersampling^2 rays per pixel on a regular grid.

        Averages are weighted by coverage, so that compositing on any background is right at the
        edges. All cameras must have one image size; several at once are faster than one by one.
        """
        if supersampling < 1:
            raise ValueError(f"supersampling must be at least 1, got {supersampling}")
        samples = self._for_all_samples(cameras, supersampling, self._premultiplied)
        shape = (cameras.height(), supersampling, cameras.width(), supersampling, 4)
        averaged = samples.reshape(len(cameras), *shape).mean(dim=(2, 4))
        alpha = averaged[..., 3:]
        return torch.cat([averaged[..., :3] / alpha.clamp_min(1e-6), alpha], -1)

    def render(self, camera: Cameras, supersampling: int = 2) -> GroundTruth:
        """Everything there is to know about one view (``camera`` holds one camera)."""
        if len(camera) != 1:
            raise ValueError(f"render takes one camera at a time, got {len(camera)}")
        rgba = self.render_rgba(camera, supersampling)[0]
        exact = self._for_all_samples(camera, 1, self._normal_and_depth)
        exact = exact.reshape(camera.height(), camera.width(), 4)
        alpha = rgba[..., 3]
        return GroundTruth(rgba[..., :3], alpha, exact[..., 3], exact[..., :3], alpha > 0.5)

    def mesh(self, resolution: int = 160) -> "trimesh.Trimesh":
        """Closed triangle mesh of the zero level, with vertex colours (unlit albedo)."""
        from diorama.scenes.meshing import mesh_of

        return mesh_of(self, self.grid, resolution)

    def _for_all_samples(
        self,
        cameras: Cameras,
        supersampling: int,
        measure: Callable[[Rays], Float[Tensor, "R 4"]],
    ) -> Float[Tensor, "M 4"]:
        if bool((cameras.size != cameras.size[:1]).any()):
            raise ValueError("cameras rendered together must have one image size")
        columns = (torch.arange(cameras.width() * supersampling) + 0.5) / supersampling
        rows = (torch.arange(cameras.height() * supersampling) + 0.5) / supersampling
        y, x = torch.meshgrid(rows, columns, indexing="ij")
        xy = torch.stack([x, y], -1).reshape(-1, 2).to(cameras.intrinsics.dtype)
        index = torch.arange(len(cameras)).repeat_interleave(len(xy))
        parts = []
        with torch.no_grad():
            for chosen in torch.arange(len(index)).split(_RAYS_AT_ONCE):
                parts.append(measure(cameras.rays(index[chosen], xy[chosen % len(xy)])))
        return torch.cat(parts)

    def _premultiplied(self, rays: Rays) -> Float[Tensor, "R 4"]:
        hits = trace(self.grid, columnwise(rays.origins), columnwise(rays.directions), 1)
        seen = rays.origins.new_zeros(len(rays), 4)
        if len(hits.ray):
            seen[hits.ray, :3] = shade(self.grid, hits)
            seen[hits.ray, 3] = 1
        return seen

    def _normal_and_depth(self, rays: Rays) -> Float[Tensor, "R 4"]:
        hits = trace(self.grid, columnwise(rays.origins), columnwise(rays.directions))
        seen = rays.origins.new_zeros(len(rays), 4)
        seen[hits.ray, :3] = self.normal(hits.points, hits.owner)
        seen[hits.ray, 3] = hits.distance * rays.z_scale[hits.ray]
        return seen

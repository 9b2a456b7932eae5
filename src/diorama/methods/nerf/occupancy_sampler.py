# SPDX-License-Identifier: Apache-2.0
"""Samples on a fixed lattice along each ray, kept only where the occupancy grid has matter."""

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from diorama.methods.nerf.rays import PaperRays
from diorama.methods.nerf.sampling import depth_at
from diorama.methods.nerf.settings import RenderSettings
from diorama.methods.nerf.volume import INFINITE_DELTA, Samples
from diorama.nn.occupancy_grid import OccupancyGrid
from diorama.nn.scene_frame import SceneFrame


def march(
    rays: PaperRays,
    grid: OccupancyGrid,
    settings: RenderSettings,
    num_steps: int,
    generator: torch.Generator | None,
) -> Samples:
    """The lattice's samples in occupied cells: `num_steps` intervals from near to far per ray.

    With a generator each ray's lattice is shifted by its own random part of an interval;
    without one samples sit at the intervals' middles.
    """
    device, num_rays = rays.origins.device, len(rays)
    edges = depth_at(
        torch.linspace(0.0, 1.0, num_steps + 1, device=device),
        settings.near,
        settings.far,
        settings.lindisp,
    )
    if generator is None:
        shift = torch.full((num_rays,), 0.5, device=device)
    else:
        shift = torch.rand(num_rays, generator=generator, device=device)
    lattice, index = _lattice(rays, grid, settings.grid_frame, edges, shift)
    keep = grid.contains(settings.grid_frame.to_unit(lattice.positions(rays)))
    kept, index = lattice.kept(keep), index[keep]
    delta = kept.delta * rays.lengths[kept.ray]
    if settings.far_is_opaque:
        delta = torch.where(index == num_steps - 1, INFINITE_DELTA, delta)
    return Samples(kept.s, delta, kept.ray, kept.offsets)


def _lattice(
    rays: PaperRays,
    grid: OccupancyGrid,
    frame: SceneFrame,
    edges: Float[Tensor, " E"],
    shift: Float[Tensor, " R"],
) -> tuple[Samples, Int[Tensor, " N"]]:
    """All lattice points that can lie in occupied cells, and each one's interval."""
    first, last = _intervals_in_box(rays, grid, frame, edges)
    count = (last - first).clamp(min=0)
    ray = torch.arange(len(rays), device=edges.device).repeat_interleave(count)
    offsets = functional.pad(count.cumsum(0), (1, 0))
    index = torch.arange(len(ray), device=edges.device) + (first - offsets[:-1])[ray]
    low, width = edges[index], edges.diff()[index]
    return Samples(low + width * shift[ray], width, ray, offsets), index


def _intervals_in_box(
    rays: PaperRays, grid: OccupancyGrid, frame: SceneFrame, edges: Float[Tensor, " E"]
) -> tuple[Tensor, Tensor]:
    """First and one-past-last lattice interval of each ray that can meet the occupied box."""
    num_rays, num_steps = len(rays), len(edges) - 1
    if frame.is_contracted:
        return torch.zeros(num_rays, dtype=torch.long, device=edges.device), torch.full(
            (num_rays,), num_steps, device=edges.device
        )
    low, high = frame.from_unit(grid.box)
    inverse = 1.0 / torch.where(rays.steps == 0, 1e-12, rays.steps)
    a, b = (low - rays.origins) * inverse, (high - rays.origins) * inverse
    enter, leave = torch.minimum(a, b).amax(dim=1), torch.maximum(a, b).amin(dim=1)
    first = torch.searchsorted(edges, enter.contiguous(), right=True) - 1
    last = torch.searchsorted(edges, leave.contiguous())
    is_hit = leave > enter
    zero = torch.zeros_like(first)
    return (
        torch.where(is_hit, first.clamp(0, num_steps), zero),
        torch.where(is_hit, last.clamp(0, num_steps), zero),
    )

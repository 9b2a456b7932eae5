# SPDX-License-Identifier: Apache-2.0
"""Pictures of a trained field, front to back: a ray ends when it has met enough matter."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diorama.cameras import Cameras, Rays
from diorama.methods.ngp.sampler import HIDDEN_TRANSMITTANCE, positions_of
from diorama.model import RenderOutput
from diorama.nn.rows import rows
from diorama.nn.surface_normals import surface_normals
from diorama.ops.composite import composite
from diorama.ops.cull import cull

if TYPE_CHECKING:
    from diorama.methods.ngp.model import NgpModel

ENOUGH_OPACITY = 1.0 - 1e-3  # what is behind it changes no 8-bit pixel
ROUND_SAMPLES = 1 << 17  # samples of one round; rays that are left share them
MIN_ROUND, MAX_ROUND = 4, 64  # samples of one ray in one round
SURFACE_OPACITY = 0.5
NORMAL_STEPS = 3.0  # how far from the surface its normal is measured, in steps


@dataclass(frozen=True)
class RayPicture:
    """What R rays see, without a background; distances are weighted sums."""

    rgb: Float[Tensor, "R 3"]
    distance: Float[Tensor, " R"]
    opacity: Float[Tensor, " R"]


@torch.no_grad()
def render_image(model: "NgpModel", camera: Cameras) -> RenderOutput:
    """Colour, expected z-depth, opacity and normals of one camera's view."""
    all_rays = camera.to(model.background.device).image_rays()
    size, chunk = (camera.height(), camera.width()), model.config.render_chunk
    code = None if model.appearance is None else model.appearance.at(camera)
    rgb, depth, opacity, normal = [], [], [], []
    for start in range(0, len(all_rays), chunk):
        rays = all_rays[start : start + chunk]
        seen = render_rays(model, rays, code)
        distance = seen.distance / seen.opacity.clamp(min=1e-6)
        rgb.append(seen.rgb + (1.0 - seen.opacity[:, None]) * model.background)
        depth.append(distance * rays.z_scale)
        opacity.append(seen.opacity)
        normal.append(_normals(model, rays, seen))
    return RenderOutput(
        torch.cat(rgb).view(*size, 3),
        torch.cat(depth).view(size),
        torch.cat(opacity).view(size),
        torch.cat(normal).view(*size, 3),
    )


def render_rays(model: "NgpModel", rays: Rays, code: Float[Tensor, " A"] | None) -> RayPicture:
    """March all rays a few samples at a time; those that are done drop out of the next round."""
    near, far = model.sampler.span(rays)
    directions = model.field.encode(rays.directions)
    rgb, distance = torch.zeros_like(rays.origins), torch.zeros_like(near)
    opacity = torch.zeros_like(near)
    alive: Int[Tensor, " A"] = (far > near).nonzero().flatten()
    start = near[alive]
    min_alpha = model.sampler.min_alpha / model.settings.render_steps
    while len(alive):
        count = min(max(ROUND_SAMPLES // len(alive), MIN_ROUND), MAX_ROUND)
        part = rays[alive]
        samples = model.sampler.march_on(part, start, far[alive], count)
        unit = model.settings.field_frame.to_unit(positions_of(samples, part))
        geometry = model.field.geometry(unit)
        density = model.field.density(geometry)
        kept, offsets = cull(
            density, samples.delta, samples.ray_offsets, HIDDEN_TRANSMITTANCE, min_alpha
        )
        geometry, density, delta, t, ray = (
            x.index_select(0, kept)
            for x in (geometry, density, samples.delta, samples.t, samples.ray)
        )
        colors = model.field.color(
            geometry,
            rows(directions[alive], ray),
            None if code is None else code.expand(len(geometry), -1),
        )
        more = composite(density, delta, torch.cat((colors, t[:, None]), dim=1), offsets)

        light = 1.0 - opacity[alive]
        rgb[alive] += light[:, None] * more.values[:, :3]
        distance[alive] += light * more.values[:, 3]
        opacity[alive] += light * more.opacity
        goes_on = (samples.t_next < far[alive]) & (opacity[alive] < ENOUGH_OPACITY)
        alive, start = alive[goes_on], samples.t_next[goes_on]
    return RayPicture(rgb, distance, opacity)


def _normals(model: "NgpModel", rays: Rays, seen: RayPicture) -> Float[Tensor, "R 3"]:
    """Normals at the expected distance; zero where rays meet too little."""
    is_surface = seen.opacity > SURFACE_OPACITY
    distance = seen.distance[is_surface] / seen.opacity[is_surface]
    points = rays.origins[is_surface] + distance[:, None] * rays.directions[is_surface]
    normals = torch.zeros_like(rays.origins)
    reach = NORMAL_STEPS * model.settings.step
    normals[is_surface] = surface_normals(model.density_at, points, reach)
    return normals

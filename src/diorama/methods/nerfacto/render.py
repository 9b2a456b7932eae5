# SPDX-License-Identifier: Apache-2.0
"""Pictures of a trained field."""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from diorama.cameras import Cameras, Rays
from diorama.methods.nerfacto.photographed import photographed_share
from diorama.methods.nerfacto.samples import RaySamples
from diorama.methods.nerfacto.thin import mean_within, rays_within, thin_places
from diorama.model import RenderOutput
from diorama.nn.fill_image import fill_image
from diorama.nn.surface_normals import surface_normals
from diorama.ops.composite import Composite, composite_dense

if TYPE_CHECKING:
    from diorama.methods.nerfacto.model import NerfactoModel

SURFACE_OPACITY = 0.5
KNOWN_SHARE = 0.9  # of a pixel's colour; pixels with less are filled from those with more
NORMAL_REACH = 1.0 / 128.0  # how far from the surface its normal is measured, in half sides


@dataclass(frozen=True)
class RayPicture:
    """What R rays see, and how far away."""

    rgb: Float[Tensor, "R 3"]
    opacity: Float[Tensor, " R"]
    expected: Float[Tensor, " R"]
    """Mean distance by weight."""
    median: Float[Tensor, " R"]
    """Where half of what is seen has been met."""
    photographed: Float[Tensor, " R"]
    """How much of the colour comes from what training pixels showed."""

    @staticmethod
    def cat(parts: "list[RayPicture]") -> "RayPicture":
        """All parts, one after the other."""
        names = [field.name for field in fields(RayPicture)]
        return RayPicture(*(torch.cat([getattr(part, name) for part in parts]) for name in names))


@torch.no_grad()
def render_image(model: "NerfactoModel", camera: Cameras) -> RenderOutput:
    """Colour, expected and median z-depth, opacity and normals of one camera's view."""
    camera = camera.to(model.background.device)
    size, rays = (camera.height(), camera.width()), camera.image_rays()
    code = None if model.appearance is None else model.appearance.at(camera)
    mask = None if model.photographed is None else model.photographed.mask()
    seen = _render_in_chunks(model, rays, code, mask)
    median_depth = (seen.median * rays.z_scale).view(size)
    rgb, photographed = seen.rgb, seen.photographed
    places = thin_places(median_depth)
    if model.config.supersample_thin and places.any():
        xy = rays_within(places).to(camera.intrinsics)
        within = camera.rays(torch.zeros(len(xy), dtype=torch.int64, device=xy.device), xy)
        closer = _render_in_chunks(model, within, code, mask)
        rgb[places.view(-1)] = mean_within(closer.rgb)
        photographed[places.view(-1)] = mean_within(closer.photographed)
    if model.exposure is not None:
        rgb = (rgb * model.exposure.at(camera)).clamp(max=1.0)
    return RenderOutput(
        _without_inventions(rgb.view(*size, 3), photographed.view(size)),
        (seen.expected * rays.z_scale).view(size),
        seen.opacity.view(size),
        _normals(model, rays, seen).view(*size, 3),
        extras={"median_depth": median_depth, "photographed": photographed.view(size)},
    )


def _render_in_chunks(
    model: "NerfactoModel",
    rays: Rays,
    code: Float[Tensor, " A"] | None,
    mask: Bool[Tensor, "X Y Z"] | None,
) -> RayPicture:
    """`render_rays` of any number of rays, in bounded memory."""
    chunk = model.config.render_chunk
    parts = (rays[start : start + chunk] for start in range(0, len(rays), chunk))
    return RayPicture.cat([render_rays(model, part, code, mask) for part in parts])


def render_rays(
    model: "NerfactoModel",
    rays: Rays,
    code: Float[Tensor, " A"] | None,
    mask: Bool[Tensor, "X Y Z"] | None,
) -> RayPicture:
    """The samples of training without their jitter, under one appearance and the mean exposure."""
    samples, _ = model.sampler.sample(rays)
    codes = None if code is None else code.expand(len(rays), -1)
    density, rgb = model.field_at(rays, samples, codes)
    t = samples.t
    ray = composite_dense(density, samples.delta, torch.cat((rgb, t[..., None]), dim=2))
    background = None if model.is_last_sample else model.background[None]
    # The quotient of two rounded sums may leave the interval that both are of.
    expected = ray.values[:, 3] / ray.opacity.clamp(min=1e-6)
    expected = torch.minimum(torch.maximum(expected, t[:, 0]), t[:, -1])
    photographed = torch.ones_like(ray.opacity)
    if mask is not None and model.photographed is not None:
        photographed = photographed_share(model.photographed, mask, rays, samples, ray.weights)
    return RayPicture(
        rgb=over_background(ray, rgb, background),
        opacity=ray.opacity,
        expected=expected,
        median=median_distance(samples, ray.weights),
        photographed=photographed,
    )


def _without_inventions(
    rgb: Float[Tensor, "H W 3"], photographed: Float[Tensor, "H W"]
) -> Float[Tensor, "H W 3"]:
    """The share of a colour that nobody photographed gives way to the colours around it."""
    is_known = photographed > KNOWN_SHARE
    if bool(is_known.all()):
        return rgb
    return torch.lerp(fill_image(rgb, is_known), rgb, photographed[:, :, None])


def over_background(
    ray: Composite, rgb: Float[Tensor, "R S 3"], background: Float[Tensor, "#R 3"] | None
) -> Float[Tensor, "R 3"]:
    """Colours of rays over a background, or over the colours of their last samples."""
    behind = rgb[:, -1] if background is None else background
    return ray.values[:, :3] + (1.0 - ray.opacity[:, None]) * behind


def median_distance(samples: RaySamples, weights: Float[Tensor, "R S"]) -> Float[Tensor, " R"]:
    """The middle of the first interval by whose end half of the ray's opacity is met."""
    seen = weights.cumsum(dim=1)
    index = torch.searchsorted(seen, 0.5 * seen[:, -1:]).clamp(max=weights.shape[1] - 1)
    return samples.t.gather(1, index)[:, 0]


def _normals(model: "NerfactoModel", rays: Rays, seen: RayPicture) -> Float[Tensor, "R 3"]:
    """Normals where the mean distance is; zero where there is no surface."""
    normals, chunk = torch.zeros_like(rays.origins), model.config.render_chunk
    reach = NORMAL_REACH * model.settings.frame.half_side
    for surface in (seen.opacity > SURFACE_OPACITY).nonzero()[:, 0].split(chunk):
        where = seen.expected[surface, None]
        points = rays.origins[surface] + where * rays.directions[surface]
        normals[surface] = surface_normals(model.density_at, points, reach)
    return normals

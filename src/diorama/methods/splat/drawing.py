# SPDX-License-Identifier: Apache-2.0
"""Gaussians drawn through one camera: projection, colour, tiles, blending."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from diorama.cameras import CameraModel, Cameras
from diorama.methods.splat.config import SplatConfig
from diorama.methods.splat.gaussians import Gaussians
from diorama.methods.splat.object_poses import seen_from_objects
from diorama.ops.gaussian_normals import gaussian_normals
from diorama.ops.project_gaussians import ProjectedGaussians, View, project_gaussians
from diorama.ops.rasterize import rasterize
from diorama.ops.rasterized import Rasterized, SplatSums
from diorama.ops.sh_colors import sh_colors
from diorama.ops.tile_lists import TileLists, tile_lists


@dataclass(frozen=True)
class Drawn:
    """One image and what it was made of."""

    rgb: Float[Tensor, "H W 3"]
    alpha: Float[Tensor, "H W"]
    depth: Float[Tensor, "H W"] | None
    """Expected z-depth, 0 where nothing is; None if it was not asked for."""
    normal: Float[Tensor, "H W 3"] | None
    """World normals weighted by their share of the pixel; None if they were not asked for."""
    z_depths: Float[Tensor, " N"]
    """Of the Gaussians. `projected.depths`, which order them, are distances for a fisheye."""
    projected: ProjectedGaussians
    raster: Rasterized
    tiles: TileLists


@dataclass(frozen=True)
class Style:
    """How to draw, apart from the Gaussians and the camera."""

    background: Float[Tensor, "3"]
    degree: int
    """Active bands of harmonics."""
    teaches_rest: bool = True
    """Whether harmonics beyond the constant one get a gradient."""
    has_depth: bool = True
    has_normals: bool = False
    sums: SplatSums | None = None
    """To be filled by the backward pass."""
    world_from_objects: Float[Tensor, "K 3 4"] | None = None
    """Where the objects of a scene of several stand; None: where they were trained."""


def draw(gaussians: Gaussians, camera: Cameras, config: SplatConfig, style: Style) -> Drawn:
    """The image of one camera without distortion; differentiable in the Gaussians and its pose."""
    pose = camera.world_from_camera[0]
    width, height = camera.width(), camera.height()
    view = View(
        width, height, near=config.near, far=config.far,
        model="fisheye" if int(camera.model[0]) == int(CameraModel.FISHEYE) else "pinhole",
        antialiased=config.antialiased, gradients=config.gradients,
    )  # fmt: skip
    means, quaternions, centers_of_view = gaussians.means, gaussians.quaternions, pose[None, :, 3]
    object_ids = gaussians.object_ids
    if style.world_from_objects is not None:
        means, quaternions, centers_of_view = seen_from_objects(
            means, quaternions, object_ids, style.world_from_objects, pose[:, 3]
        )
    projected = project_gaussians(
        means, quaternions, gaussians.log_scales, gaussians.opacity_logits,
        camera_from_world(pose), camera.intrinsics[0], view,
    )  # fmt: skip
    z_depths = projected.depths
    if view.model == "fisheye":
        z_depths = (means - pose[:, 3]) @ pose[:, 2]
    is_visible = projected.half_extents[:, 0] > 0
    colors = _colors(gaussians, centers_of_view, is_visible, config, style)
    features, background = [colors], [style.background]
    if style.has_depth:
        features.append(z_depths[:, None])
        background.append(style.background.new_zeros(1))
    if style.has_normals:
        features.append(gaussian_normals(quaternions, gaussians.log_scales, means, pose[:, 3]))
        background.append(style.background.new_zeros(3))
    tiles = tile_lists(
        projected.centers, projected.conics, projected.opacities, projected.half_extents,
        projected.depths, width, height,
    )  # fmt: skip
    raster = rasterize(
        projected.centers, projected.conics, projected.opacities,
        torch.cat(features, dim=1) if len(features) > 1 else colors,
        torch.cat(background), tiles, width, height,
        max_alpha=config.max_alpha, gradients=config.gradients, sums=style.sums,
    )  # fmt: skip
    image = raster.image
    depth = _expected(image[..., 3], raster.alpha) if style.has_depth else None
    normal = image[..., -3:] if style.has_normals else None
    return Drawn(image[..., :3], raster.alpha, depth, normal, z_depths, projected, raster, tiles)


def camera_from_world(pose: Float[Tensor, "3 4"]) -> Float[Tensor, "3 4"]:
    """The inverse of a rigid pose."""
    turn = pose[:, :3].T
    return torch.cat((turn, -(turn @ pose[:, 3:])), dim=1)


def _colors(
    gaussians: Gaussians,
    centers_of_view: Float[Tensor, "K 3"],
    is_visible: Bool[Tensor, " N"],
    config: SplatConfig,
    style: Style,
) -> Float[Tensor, "N 3"]:
    """Directions are those of the object's own frame: moving an object does not turn its light."""
    rest = gaussians.sh_rest if style.teaches_rest else gaussians.sh_rest.detach()
    total: Tensor | None = None
    for number, center in enumerate(centers_of_view):
        is_mine = is_visible
        if len(centers_of_view) > 1:
            is_mine = is_visible & (gaussians.object_ids == number)
        part = sh_colors(
            gaussians.sh_dc, rest, gaussians.means, center, style.degree, config.color, is_mine,
            config.gradients,
        )  # fmt: skip
        total = part if total is None else total + part
    assert total is not None, "there is at least one object"
    return total


def _expected(numerator: Float[Tensor, "H W"], alpha: Float[Tensor, "H W"]) -> Float[Tensor, "H W"]:
    return numerator / alpha.clamp(min=1e-6)

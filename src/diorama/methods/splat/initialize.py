# SPDX-License-Identifier: Apache-2.0
"""The first Gaussians: from points, from a file, from the images themselves, or at random."""

import math

import torch
from jaxtyping import Float
from scipy.spatial import KDTree
from torch import Tensor

from diorama.data.scene import Scene
from diorama.errors import UserError
from diorama.methods.splat.config import SplatConfig
from diorama.methods.splat.plane_sweep import sweep_points
from diorama.methods.splat.visual_hull import hull_points
from diorama.splats import Splats
from diorama.splats.points import read_points_or_splats
from diorama.splats.transform import transform_splats

SH_CONSTANT = 0.28209479177387814
MIN_SWEPT = 500
"""Fewer points that the photographs agree on are worse than random ones."""
SMALLEST = 1e-7
"""Standard deviations begin no smaller than this."""


def initial_splats(config: SplatConfig, scene: Scene, generator: torch.Generator) -> Splats:
    """The Gaussians of step 0, in the normalised frame."""
    if not scene.has_files:
        # A run that is opened again brings its own, as many as there are.
        return _dressed(torch.zeros(1, 3), torch.full((1, 3), 0.5), config, generator)
    kind = _kind(config, scene)
    if kind == "file":
        assert config.init_file is not None, "checked with the config"
        found = read_points_or_splats(config.init_file)
        if isinstance(found, Splats):
            return _fitted(transform_splats(scene.scene_from_user, found), config)
        xyz = scene.scene_from_user.apply(found.points)
        rgb = found.colors.float() / 255
    elif kind == "points":
        assert scene.points is not None, "chosen because there are points"
        xyz, rgb = scene.points.xyz, scene.points.rgb.float() / 255
    elif kind == "hull":
        xyz, rgb = hull_points(scene, config.init_count, generator)
    elif kind == "sweep":
        xyz, rgb = _swept(scene, config, generator)
    else:
        xyz, rgb = random_points(scene, config.init_count, generator)
    limit = min(config.max_gaussians, config.init_count) - config.sphere_points
    if len(xyz) > limit:
        chosen = torch.randperm(len(xyz), generator=generator)[: max(1, limit)].sort().values
        xyz, rgb = xyz[chosen], rgb[chosen]
    if config.sphere_points > 0:
        sphere = _sphere(xyz, config, generator)
        xyz, rgb = torch.cat((xyz, sphere)), torch.cat((rgb, torch.full_like(sphere, 127 / 255)))
    return _dressed(xyz.float(), rgb.float(), config, generator)


def _kind(config: SplatConfig, scene: Scene) -> str:
    if config.init == "auto":
        if config.init_file is not None:
            return "file"
        if scene.points is not None and len(scene.points) >= 4:
            return "points"
        return "hull" if scene.has_alpha and scene.kind == "object" else "sweep"
    if config.init == "points" and scene.points is None:
        raise UserError(f"{scene.root}: it has no sparse points; use --model.init random.")
    if config.init == "hull" and not scene.has_alpha:
        raise UserError(f"{scene.root}: its images have no alpha; use --model.init random.")
    return config.init


def _swept(
    scene: Scene, config: SplatConfig, generator: torch.Generator
) -> tuple[Float[Tensor, "N 3"], Float[Tensor, "N 3"]]:
    """Points where the photographs agree, or random ones where too few do."""
    xyz, rgb = sweep_points(scene, config.init_count, generator)
    if len(xyz) >= min(MIN_SWEPT, config.init_count):
        return xyz, rgb
    if config.init == "sweep":
        raise UserError(
            f"{scene.root}: its images agree on only {len(xyz)} points; use --model.init random."
        )
    return random_points(scene, config.init_count, generator)


def random_points(
    scene: Scene, count: int, generator: torch.Generator
) -> tuple[Float[Tensor, "N 3"], Float[Tensor, "N 3"]]:
    """Objects: anywhere in the box. Else: along training rays, evenly in inverse depth."""
    rgb = torch.rand((count, 3), generator=generator)
    bounds = scene.bounds
    if scene.kind == "object":
        lower, upper = torch.tensor(bounds.aabb_min), torch.tensor(bounds.aabb_max)
        return lower + (upper - lower) * torch.rand((count, 3), generator=generator), rgb
    train = torch.tensor(scene.splits["train"])
    image = train[torch.randint(len(train), (count,), generator=generator)]
    xy = torch.rand((count, 2), generator=generator) * scene.cameras.size[image]
    rays = scene.cameras.rays(image, xy)
    share = torch.rand(count, generator=generator)
    depth = 1 / torch.lerp(torch.tensor(1 / bounds.near), torch.tensor(1 / bounds.far), share)
    distance = depth / rays.z_scale.clamp(min=1e-3)
    return rays.origins + rays.directions * distance[:, None], rgb


def _sphere(
    xyz: Float[Tensor, "N 3"], config: SplatConfig, generator: torch.Generator
) -> Float[Tensor, "S 3"]:
    """Evenly random on a sphere around the points (the original centres it at the origin)."""
    lower, upper = xyz.amin(dim=0), xyz.amax(dim=0)
    radius = config.sphere_factor * float((upper - lower).max()) / 2
    normal = torch.randn((config.sphere_points, 3), generator=generator)
    return (lower + upper) / 2 + radius * torch.nn.functional.normalize(normal, dim=1)


def _dressed(
    xyz: Float[Tensor, "N 3"],
    rgb: Float[Tensor, "N 3"],
    config: SplatConfig,
    generator: torch.Generator,
) -> Splats:
    """Round Gaussians at points, as wide as their neighbours are far."""
    count = len(xyz)
    width = config.init_scale * neighbor_distance(xyz, config.init_distance)
    width = width.clamp(min=SMALLEST, max=config.max_init_scale)
    quaternions = torch.tensor([1.0, 0.0, 0.0, 0.0]).repeat(count, 1)
    if config.random_rotations:
        drawn = torch.rand((count, 4), generator=generator)
        quaternions = torch.nn.functional.normalize(drawn, dim=1)
    sh = torch.zeros(count, (config.sh_degree + 1) ** 2, 3)
    # Pure black or white would be infinitely far for a sigmoid.
    dc = torch.logit(rgb.clamp(1 / 255, 0.99)) if config.color == "sigmoid" else rgb - 0.5
    sh[:, 0] = dc / SH_CONSTANT
    logit = math.log(config.init_opacity / (1 - config.init_opacity))
    return Splats(
        means=xyz, quaternions=quaternions, log_scales=width.log()[:, None].repeat(1, 3),
        opacity_logits=torch.full((count,), logit), sh=sh,
        color=config.color, antialiased=config.antialiased,
    )  # fmt: skip


def neighbor_distance(xyz: Float[Tensor, "N 3"], mean: str = "rms") -> Float[Tensor, " N"]:
    """Distance to the three nearest neighbours: its root mean square, or its mean."""
    if len(xyz) < 2:
        return torch.ones(len(xyz))
    found, _ = KDTree(xyz.numpy()).query(xyz.numpy(), k=min(4, len(xyz)))
    distance = torch.as_tensor(found)[:, 1:].float()
    return distance.mean(dim=1) if mean == "mean" else distance.square().mean(dim=1).sqrt()


def _fitted(splats: Splats, config: SplatConfig) -> Splats:
    """A trained scene with as many bands as the config has, within its budget."""
    if splats.color != config.color:
        raise UserError(
            f"{config.init_file}: its colours are of the kind {splats.color}; use "
            f"--model.color {splats.color}."
        )
    if len(splats) > config.max_gaussians:
        raise UserError(
            f"{config.init_file}: it has {len(splats)} Gaussians, more than --model.max-gaussians "
            f"{config.max_gaussians}; raise the limit."
        )
    return splats.with_degree(config.sh_degree)

# SPDX-License-Identifier: Apache-2.0
"""Points on the hull of an object's silhouettes: where a photographed object can be at most."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from diorama.data.image_store import load_rgba
from diorama.data.scene import Scene

MAX_VIEWS = 48
"""Views beyond these carve little more."""
RESOLUTION = 96
"""Cells per side of the box."""


def hull_points(
    scene: Scene, count: int, generator: torch.Generator
) -> tuple[Float[Tensor, "N 3"], Float[Tensor, "N 3"]]:
    """Random points in the outermost cells of the hull, and their mean colours in the images."""
    lower, upper = torch.tensor(scene.bounds.aabb_min), torch.tensor(scene.bounds.aabb_max)
    axis = (torch.arange(RESOLUTION) + 0.5) / RESOLUTION
    cells = torch.stack(torch.meshgrid(axis, axis, axis, indexing="ij"), dim=-1).reshape(-1, 3)
    views = _views(scene)
    is_inside = is_in_hull(scene, views, lower + (upper - lower) * cells)
    shell = _outermost(is_inside.view(RESOLUTION, RESOLUTION, RESOLUTION)).reshape(-1)
    chosen = cells[shell]
    if len(chosen) == 0:
        chosen = cells
    drawn = chosen[torch.randint(len(chosen), (count,), generator=generator)]
    jitter = (torch.rand((count, 3), generator=generator) - 0.5) / RESOLUTION
    xyz = lower + (upper - lower) * (drawn + jitter)
    return xyz, _mean_colors(scene, views[:: max(1, len(views) // 12)], xyz)


def is_in_hull(scene: Scene, views: list[int], points: Float[Tensor, "N 3"]) -> Bool[Tensor, " N"]:
    """Whether every view that has a point in its image sees the object there."""
    inside = torch.ones(len(points), dtype=torch.bool)
    rows = torch.arange(len(points))
    for index in views:
        alpha = load_rgba(scene, index)[..., 3]
        found, is_in_image = _pixels(scene, index, points[rows])
        keep = ~is_in_image
        keep[is_in_image] = alpha.reshape(-1)[found] > 0
        inside[rows[~keep]] = False
        rows = rows[keep]
    return inside


def _views(scene: Scene) -> list[int]:
    train = scene.splits["train"]
    wanted = min(MAX_VIEWS, len(train))
    return [train[i * len(train) // wanted] for i in range(wanted)]


def _pixels(scene: Scene, index: int, points: Float[Tensor, "N 3"]) -> tuple[Tensor, Tensor]:
    """Flat pixel numbers of the points that fall into an image, and which points those are."""
    camera = scene.cameras[index]
    xy, _, is_valid = camera.project(points)
    width, height = camera.width(), camera.height()
    is_in_image = is_valid & (xy >= 0).all(dim=1) & (xy < xy.new_tensor([width, height])).all(dim=1)
    pixel = xy[is_in_image].long()
    return pixel[:, 1] * width + pixel[:, 0], is_in_image


def _outermost(inside: Bool[Tensor, "X Y Z"]) -> Bool[Tensor, "X Y Z"]:
    """Cells inside that have a neighbour outside."""
    padded = torch.nn.functional.pad(inside, (1, 1, 1, 1, 1, 1), value=False)
    core = slice(1, -1)
    surrounded = (
        padded[:-2, core, core] & padded[2:, core, core]
        & padded[core, :-2, core] & padded[core, 2:, core]
        & padded[core, core, :-2] & padded[core, core, 2:]
    )  # fmt: skip
    return inside & ~surrounded


def _mean_colors(
    scene: Scene, views: list[int], points: Float[Tensor, "N 3"]
) -> Float[Tensor, "N 3"]:
    total, weight = torch.zeros_like(points), torch.full((len(points), 1), 1e-6)
    for index in views:
        rgba = load_rgba(scene, index).reshape(-1, 4).float() / 255
        found, is_in_image = _pixels(scene, index, points)
        total[is_in_image] += rgba[found, :3] * rgba[found, 3:]
        weight[is_in_image] += rgba[found, 3:]
    return total / weight

# SPDX-License-Identifier: Apache-2.0
"""Points on the surfaces of a capture that brings none: where neighbouring photographs agree.

Every reference view is swept: at each of many distances its pixels are looked up in neighbouring
views, and the distance at which their surroundings look most alike wins. A point is kept when
other views' distances confirm it.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from diorama.cameras import Cameras
from diorama.data.image_store import has_loss_mask, load_loss_mask, load_rgba
from diorama.data.resize import resize_area
from diorama.data.scene import Scene

MAX_VIEWS = 32
"""Reference views; the rest of a long capture repeats them."""
SIDE = 128
"""Longer side of the reduced images, in pixels."""
DISTANCES = 64
"""Steps of the sweep, each the same factor farther."""
SOURCES = 4
"""Neighbours a view is compared with; the better half counts, for the others may be hidden."""
BEST_ANGLE = math.radians(8)
"""Parallax that is wanted between neighbours: less is vague, more looks different."""
WINDOW = 7
"""Side of the compared surroundings, in pixels."""
MIN_LIKENESS = 0.7
"""Correlation of surroundings that counts as agreement."""
MIN_CONTRAST = 0.01
"""Standard deviation of the grey values in a window below which anything looks like anything."""
CONFIRMED_WITHIN = 0.04
"""Relative difference at which another view's distance confirms one."""


@dataclass(frozen=True)
class _View:
    camera: Cameras
    rgb: Float[Tensor, "H W 3"]
    gray: Float[Tensor, "H W"]
    is_usable: Bool[Tensor, "H W"]


@dataclass(frozen=True)
class _Surface:
    """What a view sees: the distance of each pixel, where one was found."""

    distance: Float[Tensor, "H W"]
    is_found: Bool[Tensor, "H W"]
    points: Float[Tensor, "H W 3"]


def sweep_points(
    scene: Scene, count: int, generator: torch.Generator
) -> tuple[Float[Tensor, "N 3"], Float[Tensor, "N 3"]]:
    """At most `count` random points of the surfaces that several views agree on, and colours."""
    train = scene.splits["train"]
    wanted = min(MAX_VIEWS, len(train))
    views = [_load(scene, train[i * len(train) // wanted]) for i in range(wanted)]
    near, far = scene.bounds.near, scene.bounds.far
    distances = torch.logspace(math.log10(near), math.log10(far), DISTANCES)
    middle = math.sqrt(near * far)
    surfaces = [
        _surface(view, [views[j] for j in _neighbors(views, i, middle)], distances)
        for i, view in enumerate(views)
    ]
    xyz, rgb = [torch.zeros(0, 3)], [torch.zeros(0, 3)]
    for i, (view, surface) in enumerate(zip(views, surfaces, strict=True)):
        others = [j for j in range(len(views)) if j != i]
        is_kept = _is_confirmed(surface, [views[j] for j in others], [surfaces[j] for j in others])
        xyz.append(surface.points[is_kept])
        rgb.append(view.rgb[is_kept])
    points, colors = torch.cat(xyz), torch.cat(rgb)
    chosen = torch.randperm(len(points), generator=generator)[:count].sort().values
    return points[chosen], colors[chosen]


def _load(scene: Scene, index: int) -> _View:
    camera = scene.cameras[index]
    factor = min(1.0, SIDE / max(camera.width(), camera.height()))
    camera = camera.resized(
        max(1, round(camera.width() * factor)), max(1, round(camera.height() * factor))
    )
    size = camera.width(), camera.height()
    rgba = resize_area(load_rgba(scene, index), *size).float() / 255
    is_usable = rgba[..., 3] > 0.5
    if has_loss_mask(scene, index):
        is_usable &= resize_area(load_loss_mask(scene, index), *size) > 127
    rgb = rgba[..., :3]
    return _View(camera, rgb, rgb.mean(dim=-1), is_usable)


def _neighbors(views: list[_View], own: int, distance: float) -> list[int]:
    """Views that see much of what this one sees, from a little beside."""
    center, axis = _center_and_axis(views[own])
    target = center + distance * axis
    scored = []
    for j, other in enumerate(views):
        place, looks = _center_and_axis(other)
        ahead = F.normalize(target - place, dim=0)
        if j == own or float(ahead @ looks) < 0.7:  # it looks elsewhere
            continue
        angle = math.acos(min(1.0, max(-1.0, float(ahead @ axis))))
        baseline = math.atan2(float((place - center).norm()), distance)
        parallax = max(angle, baseline, 1e-4)
        scored.append((abs(math.log(parallax / BEST_ANGLE)), j))
    return [j for _, j in sorted(scored)[:SOURCES]]


def _center_and_axis(view: _View) -> tuple[Float[Tensor, "3"], Float[Tensor, "3"]]:
    pose = view.camera.world_from_camera[0]
    return pose[:, 3], pose[:, 2]


def _surface(view: _View, sources: list[_View], distances: Float[Tensor, " D"]) -> _Surface:
    height, width = view.gray.shape
    rays = view.camera.image_rays()
    origins, directions = (t.view(height, width, 3) for t in (rays.origins, rays.directions))
    if not sources:
        nothing = torch.zeros(height, width)
        return _Surface(nothing, nothing > 0, origins)
    swept = origins + distances[:, None, None, None] * directions
    likeness = torch.stack([_likeness(view, source, swept) for source in sources])
    best = likeness.topk(max(1, len(sources) // 2), dim=0).values.mean(dim=0)
    score, index = best.max(dim=0)
    is_found = (score > MIN_LIKENESS) & view.is_usable & (_deviation(view.gray) > MIN_CONTRAST)
    # A distance at either end is where the sweep stopped, not where the surface is.
    is_found &= (index > 0) & (index < len(distances) - 1)
    distance = _between(best, index, distances)
    return _Surface(distance, is_found, origins + distance[..., None] * directions)


def _likeness(
    view: _View, source: _View, swept: Float[Tensor, "D H W 3"]
) -> Float[Tensor, "D H W"]:
    """Correlation of each pixel's surroundings with what the source shows at its swept places."""
    xy, _, is_valid = source.camera.project(swept.reshape(-1, 3))
    size = xy.new_tensor([source.camera.width(), source.camera.height()])
    place = (xy / size * 2 - 1).view(1, -1, swept.shape[2], 2)
    shown = F.grid_sample(
        source.gray[None, None], place, padding_mode="border", align_corners=False
    ).view(swept.shape[:3])
    is_inside = (is_valid & (place.view(-1, 2).abs() < 1).all(dim=1)).view(swept.shape[:3])
    covariance = _mean(shown * view.gray) - _mean(shown) * _mean(view.gray)
    product = _deviation(shown) * _deviation(view.gray)
    return torch.where(is_inside, covariance / product.clamp(min=1e-5), -1.0)


def _mean(values: Float[Tensor, "*D H W"]) -> Float[Tensor, "*D H W"]:
    """Over the window around each pixel, columns first and then rows."""
    pooled = values.reshape(-1, 1, *values.shape[-2:])
    for size in ((WINDOW, 1), (1, WINDOW)):
        around = size[0] // 2, size[1] // 2
        pooled = F.avg_pool2d(pooled, size, 1, around, count_include_pad=False)
    return pooled.view(values.shape)


def _deviation(values: Float[Tensor, "*D H W"]) -> Float[Tensor, "*D H W"]:
    return (_mean(values.square()) - _mean(values).square()).clamp(min=0).sqrt()


def _between(
    score: Float[Tensor, "D H W"], index: Tensor, distances: Float[Tensor, " D"]
) -> Float[Tensor, "H W"]:
    """The peak of the parabola through the best score and its neighbours."""
    at = index.clamp(1, len(distances) - 2)
    before, here, after = (score.gather(0, (at + k)[None])[0] for k in (-1, 0, 1))
    bend = (before - 2 * here + after).clamp(max=-1e-6)
    shift = (0.5 * (before - after) / bend).clamp(-0.5, 0.5)
    ratio = distances[1] / distances[0]
    return distances[at] * ratio**shift


def _is_confirmed(
    surface: _Surface, views: list[_View], surfaces: list[_Surface]
) -> Bool[Tensor, "H W"]:
    """Whether at least two other views (or the only one) found a surface at the same place."""
    points = surface.points[surface.is_found]
    votes = torch.zeros(len(points), dtype=torch.int64)
    for view, other in zip(views, surfaces, strict=True):
        xy, _, is_valid = view.camera.project(points)
        width, height = view.camera.width(), view.camera.height()
        inside = is_valid & (xy >= 0).all(dim=1) & (xy < xy.new_tensor([width, height])).all(dim=1)
        pixel = xy[inside].long()
        flat = pixel[:, 1] * width + pixel[:, 0]
        distance = (points[inside] - view.camera.world_from_camera[0, :, 3]).norm(dim=1)
        seen = other.distance.reshape(-1)[flat]
        agrees = other.is_found.reshape(-1)[flat]
        votes[inside] += agrees & ((distance - seen).abs() < CONFIRMED_WITHIN * distance)
    result = surface.is_found.clone()
    result[surface.is_found] = votes >= min(2, len(views))
    return result

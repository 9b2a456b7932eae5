# SPDX-License-Identifier: Apache-2.0
"""Sphere tracing: first hits, soft shadows, ambient occlusion; finished rays are dropped early."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diorama.scenes.grid import CandidateGrid, take
from diorama.scenes.solids import columnwise

Points = Float[Tensor, "N 3"]
Values = Float[Tensor, " N"]

_HIT_DISTANCE = 1e-5
_MAX_STEPS = 96
# A chord shorter than the least step may be stepped over: on an edge rounded with radius r that is
# a graze only step^2 / (8 r) deep. In return no ray creeps along a surface: the least step grows
# so that all of them together cross the scene.
_MIN_STEP = 1.5e-3
_MIN_STEP_GROWTH = 1.04


@dataclass(frozen=True)
class Hits:
    """The rays that met the scene: which, how far along, at which point, and whose surface."""

    ray: Int[Tensor, " N"]
    distance: Values
    points: Points
    owner: Int[Tensor, " N"]


def clip_to_grid(grid: CandidateGrid, origins: Points, directions: Points) -> tuple[Values, Values]:
    """Distances at which each ray enters and leaves the grid's box; enter > leave for a miss."""
    enter = torch.zeros_like(origins[:, 0])
    leave = torch.full_like(enter, math.inf)
    for k in range(3):
        slope = directions[:, k]
        slope = torch.where(slope.abs() < 1e-9, 1e-9, slope)
        first = (grid.low[k] - origins[:, k]) / slope
        second = (grid.high[k] - origins[:, k]) / slope
        enter = torch.maximum(enter, torch.minimum(first, second))
        leave = torch.minimum(leave, torch.maximum(first, second))
    return enter, leave


def free_distance(grid: CandidateGrid, points: Points) -> tuple[Values, Int[Tensor, " M"]]:
    """A step that is safe at each point, and the indices of the points where it is the exact sdf.

    Far from all surfaces the grid's bound is used (one look-up); within a cell or so of a surface,
    the exact distance.
    """
    cells = grid.cell_of(points)
    step = grid.lower_bound(cells)
    near = (step < grid.cell).nonzero().squeeze(-1)
    if len(near):
        step[near] = grid.sdf(take(points, near), cells[near])
    return step, near


def trace(grid: CandidateGrid, origins: Points, directions: Points, newton_steps: int = 3) -> Hits:
    """First intersection of each ray with the scene, to about 1e-5 of a unit.

    One Newton step instead of three is enough where only the colour matters.
    """
    enter, leave = clip_to_grid(grid, origins, directions)
    ray = (enter < leave).nonzero().squeeze(-1)
    t, end = enter[ray], leave[ray]
    o, d = take(origins, ray), take(directions, ray)
    found_ray, found_t = [], []
    for count in range(_MAX_STEPS):
        if not len(ray):
            break
        step, near = free_distance(grid, o + d * t[:, None])
        is_hit = torch.zeros(len(ray), dtype=torch.bool)
        is_hit[near] = step[near] < _HIT_DISTANCE
        least = _MIN_STEP * _MIN_STEP_GROWTH**count
        t = t + torch.where(is_hit, step, step.clamp_min(least))
        is_done = is_hit | (t > end)
        if is_done.any():
            found_ray.append(ray[is_hit])
            found_t.append(t[is_hit])
            alive = (~is_done).nonzero().squeeze(-1)
            ray, t, end, o, d = ray[alive], t[alive], end[alive], take(o, alive), take(d, alive)
    found_ray, order = torch.cat([*found_ray, ray[:0]]).sort()
    distance = torch.cat([*found_t, t[:0]])[order]
    o, d = take(origins, found_ray), take(directions, found_ray)
    for _ in range(newton_steps):
        distance = _closer(grid, distance, o, d)
    points = o + d * distance[:, None]
    return Hits(found_ray, distance, points, grid.sdf_and_owner(points, grid.cell_of(points))[1])


def _closer(grid: CandidateGrid, t: Values, origins: Points, directions: Points) -> Values:
    """A Newton step along the ray, from up to a least step below the surface back onto it."""
    points = origins + directions * t[:, None]
    gap, owner = grid.sdf_and_owner(points, grid.cell_of(points))
    approach = -(grid.scene.normal(points, owner) * directions).sum(-1)
    return t + gap / approach.clamp_min(0.1)


def soft_shadow(
    grid: CandidateGrid,
    points: Points,
    normals: Points,
    light: Float[Tensor, " 3"],
    sharpness: float,
) -> Values:
    """How much of a round light at infinity each point sees, 0 to 1.

    The narrowest miss sdf(t) / t along the way to the light, times ``sharpness``, is the fraction
    of the light's disc left uncovered (I. Quilez).
    """
    origins = points + normals * 2e-3
    directions = columnwise(light.expand(len(points), 3))
    _, end = clip_to_grid(grid, origins, directions)
    visible = torch.ones_like(end)
    index = torch.arange(len(points))
    t = torch.full_like(end, 4e-3)
    o, d = origins, directions
    for _ in range(64):
        if not len(index):
            break
        step, _ = free_distance(grid, o + d * t[:, None])
        seen = torch.minimum(visible[index], (sharpness * step / t).clamp(0, 1))
        visible[index] = seen
        t = t + torch.maximum(step.clamp(6e-3, 0.2), 0.04 * t)
        alive = ((seen > 0.004) & (t < end)).nonzero().squeeze(-1)
        if len(alive) < len(index):
            index, t, end = index[alive], t[alive], end[alive]
            o, d = take(o, alive), take(d, alive)
    return visible * visible * (3 - 2 * visible)


def ambient_occlusion(grid: CandidateGrid, points: Points, normals: Points) -> Values:
    """Open fraction of the hemisphere above each point, from five cones of three taps each."""
    side = torch.where(normals[:, 2:].abs() < 0.9, _axis(normals, 2), _axis(normals, 0))
    tangent = torch.linalg.cross(normals, side)
    tangent = tangent / tangent.norm(dim=-1, keepdim=True)
    bitangent = torch.linalg.cross(normals, tangent)
    total = 0.28 * _cone_openness(grid, points, normals)
    for k in range(4):
        a, b = math.cos(math.pi / 2 * k + 0.6), math.sin(math.pi / 2 * k + 0.6)
        tilted = 0.62 * normals + 0.78 * (a * tangent + b * bitangent)
        total = total + 0.18 * _cone_openness(grid, points, columnwise(tilted))
    return total


def _axis(like: Points, k: int) -> Points:
    axis = torch.zeros_like(like)
    axis[:, k] = 1
    return axis


def _cone_openness(grid: CandidateGrid, points: Points, directions: Points) -> Values:
    openness = torch.ones_like(points[:, 0])
    for reach in (0.05, 0.14, 0.36):
        taps = points + directions * reach
        cells = grid.cell_of(taps)
        width = 0.6 * reach
        distance = grid.lower_bound(cells)
        near = (distance < width).nonzero().squeeze(-1)
        if len(near):
            distance[near] = grid.sdf(take(taps, near), cells[near])
        fade = 1 - 0.5 * reach / 0.36
        openness = torch.minimum(openness, 1 - fade * (1 - (distance / width).clamp(0, 1)))
    return openness

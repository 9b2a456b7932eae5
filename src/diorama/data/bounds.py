# SPDX-License-Identifier: Apache-2.0
"""Sphere, box and depth range of interest, from cameras and points, robust to outliers."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from diorama.data.normalize import focus_point, thinned
from diorama.data.scene import Kind, SceneBounds, Vector, vector

Box = tuple[Vector, Vector]
Depths = tuple[float, float]
MARGIN = 1.05


def cube(half: float) -> Box:
    """The axis-aligned cube around the origin whose sides are twice `half`."""
    return (-half, -half, -half), (half, half, half)


def scene_bounds(
    poses: Float[Tensor, "N 3 4"],
    tangents: Float[Tensor, "N 2"],
    xyz: Float[Tensor, "P 3"] | None,
    kind: Kind,
    box: Box | None = None,
    depths: Depths | None = None,
) -> SceneBounds:
    """Bounds in the frame of `poses`; a `box` or `depths` that the format defines are kept.

    `tangents` are those of the cameras' half angles of view, horizontal and vertical.
    """
    if xyz is not None and len(xyz) < 8:
        xyz = None
    if box is None and xyz is not None and kind != "forward-facing":
        box = _box_of_points(xyz)
    if box is None and kind == "forward-facing":
        depths = depths or _depths_of_points(poses, tangents, xyz) or (0.1, 10.0)
        box = _box_of_frusta(poses, tangents, depths)
    if box is None:
        box = _box_of_cameras(poses, tangents, kind)
    lower, upper = torch.tensor(box[0]), torch.tensor(box[1])
    center = (lower + upper) / 2
    radius = float((upper - lower).max()) / 2
    depths = depths or _depths_of_points(poses, tangents, xyz) or _depths_of_box(poses, box)
    return SceneBounds(vector(center), radius, box[0], box[1], depths[0], depths[1])


def _box_of_points(xyz: Float[Tensor, "P 3"]) -> Box:
    """The 1st to 99th percentile of the points on each axis, widened a little."""
    sample = thinned(xyz)
    lower, upper = torch.quantile(sample, 0.01, dim=0), torch.quantile(sample, 0.99, dim=0)
    half = (upper - lower) / 2 * MARGIN
    # A flat or single-point cloud still needs a box with an inside.
    half = half.clamp(min=max(1e-3 * float(half.max()), 1e-6))
    center = (lower + upper) / 2
    return vector(center - half), vector(center + half)


def _box_of_cameras(
    poses: Float[Tensor, "N 3 4"], tangents: Float[Tensor, "N 2"], kind: Kind
) -> Box:
    """A cube around what the cameras look at: what fills their images, or, unbounded, them too."""
    center = focus_point(poses)
    distance = (poses[:, :, 3] - center).norm(dim=-1)
    reach = float(distance.median())
    if reach < 1e-6:
        half = 2.0 * max(1.0, float(distance.max()))
    elif kind == "object":
        tangent = float(tangents.amin(dim=-1).median())
        half = reach * tangent / math.hypot(1, tangent) * MARGIN
    else:
        half = 1.5 * min(float(distance.max()), 2 * float(torch.quantile(distance, 0.9)))
    return vector(center - half), vector(center + half)


def _box_of_frusta(
    poses: Float[Tensor, "N 3 4"], tangents: Float[Tensor, "N 2"], depths: Depths
) -> Box:
    """The box of everything that the cameras see between the two depths."""
    signs = poses.new_tensor([[x, y] for x in (-1, 1) for y in (-1, 1)])
    flat = torch.cat(
        [signs * tangents[:, None], torch.ones_like(signs[:, :1]).expand(len(poses), 4, 1)], -1
    )
    corners = torch.cat([flat * depth for depth in depths], dim=1)
    world = corners @ poses[:, :, :3].transpose(1, 2) + poses[:, None, :, 3]
    return vector(world.amin(dim=(0, 1))), vector(world.amax(dim=(0, 1)))


def _depths_of_box(poses: Float[Tensor, "N 3 4"], box: Box) -> Depths:
    """From just before the box, seen from the nearest camera, to its farthest corner."""
    lower, upper = poses.new_tensor(box[0]), poses.new_tensor(box[1])
    centers = poses[:, :, 3]
    beyond = torch.maximum(lower - centers, centers - upper).clamp(min=0).norm(dim=-1)
    far = torch.maximum((centers - lower).abs(), (centers - upper).abs()).norm(dim=-1)
    farthest = float(torch.quantile(far, 0.98))
    return max(float(beyond.min()), 0.02 * farthest), farthest


def _depths_of_points(
    poses: Float[Tensor, "N 3 4"],
    tangents: Float[Tensor, "N 2"],
    xyz: Float[Tensor, "P 3"] | None,
) -> Depths | None:
    """The depths at which cameras see points, widened by a quarter; None when too few are seen."""
    if xyz is None:
        return None
    sample, nearest, farthest = thinned(xyz, 20_000), [], []
    for pose, tangent in zip(thinned(poses, 200), thinned(tangents, 200), strict=True):
        local = (sample - pose[:, 3]) @ pose[:, :3]
        depth = local[:, 2]
        is_seen = (depth > 0) & (local[:, :2].abs() < tangent * depth[:, None]).all(-1)
        if int(is_seen.sum()) >= 4:
            seen = depth[is_seen]
            nearest.append(float(torch.quantile(seen, 0.005)))
            farthest.append(float(torch.quantile(seen, 0.995)))
    if not nearest:
        return None
    low = float(torch.quantile(torch.tensor(nearest), 0.02))
    high = float(torch.quantile(torch.tensor(farthest), 0.98))
    return 0.75 * low, 1.25 * high

# SPDX-License-Identifier: Apache-2.0
"""The orthographic view of a scene plot: where to stand, and what must be in the picture."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from diorama.cameras import CameraModel
from diorama.data.scene import Scene

_FAR_LARGER = 8
"""Bounds this many times the cameras' extent are left out of the picture's frame."""


@dataclass(frozen=True)
class PlotView:
    """Maps world points to pixels: rows of `axes` are screen right, screen down and away."""

    axes: np.ndarray
    offset: np.ndarray
    scale: float

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """x, y in pixels and the distance away in world units, for points (..., 3)."""
        local = points @ self.axes.T
        return np.concatenate([local[..., :2] * self.scale + self.offset, local[..., 2:]], axis=-1)


def plot_view(
    scene: Scene, corners: np.ndarray, size: tuple[int, int], stand: Literal["corner", "top"]
) -> PlotView:
    """A view that shows all frustum corners and, unless it is far larger, the sphere of interest.

    `corner` stands behind the cameras, to their side and above; `top` looks down.
    """
    up, ahead = up_and_ahead(scene)
    side = np.cross(ahead, up)
    if stand == "top":
        away, right = -up, side
    else:
        turn, tilt = math.radians(32), math.radians(24)
        level = math.cos(turn) * ahead - math.sin(turn) * side
        away = math.cos(tilt) * level - math.sin(tilt) * up
        right = np.cross(level, up)
    axes = np.stack([right, np.cross(away, right), away])
    shown = _shown(scene, corners) @ axes[:2].T
    low, high = shown.min(0), shown.max(0)
    margin = 0.07 * min(size)
    room = np.array(size) - 2 * margin - np.array([0, 0.06 * size[1]])
    scale = float((room / np.maximum(high - low, 1e-9)).min())
    middle = np.array(size) / 2 + np.array([0, 0.03 * size[1]])
    return PlotView(axes, middle - scale * (low + high) / 2, scale)


def up_and_ahead(scene: Scene) -> tuple[np.ndarray, np.ndarray]:
    """The cameras' mean up, and a direction across it: where they look on average, if anywhere."""
    poses = scene.cameras.world_from_camera.double().numpy()
    up = -poses[:, :, 1].mean(0)
    up = up / np.linalg.norm(up) if np.linalg.norm(up) > 0.2 else np.array([0.0, 0.0, 1.0])
    axis = np.eye(3)[np.abs(up).argmax()] * np.sign(up[np.abs(up).argmax()])
    # Close to an axis it is that axis: a level floor is easier to read.
    up = axis if up @ axis > math.cos(math.radians(20)) else up
    ahead = poses[:, :, 2].mean(0)
    ahead = ahead - (ahead @ up) * up
    if np.linalg.norm(ahead) < 0.4:
        ahead = np.eye(3)[np.abs(up).argmin()]
        ahead = ahead - (ahead @ up) * up
    return up, ahead / np.linalg.norm(ahead)


def frustums(scene: Scene) -> np.ndarray:
    """(N, 5, 3): each camera's centre and the four corners of its image, drawn close to it."""
    cameras = scene.cameras
    count = len(cameras)
    width, height = cameras.size.double().unbind(-1)
    zero = torch.zeros_like(width)
    xy = torch.stack(
        [
            torch.stack(p, -1)
            for p in ((zero, zero), (width, zero), (width, height), (zero, height))
        ],
        dim=1,
    )
    index = torch.arange(count).repeat_interleave(4)
    local = cameras.unproject(index, xy.view(-1, 2).to(cameras.intrinsics)).view(count, 4, 3)
    local = local.double().numpy()
    panorama = (cameras.model == int(CameraModel.EQUIRECTANGULAR)).numpy()
    square = np.array([[-1, -1, 1], [1, -1, 1], [1, 1, 1], [-1, 1, 1]]) * 0.5
    local = np.where(panorama[:, None, None], square, local / np.maximum(local[..., 2:], 0.35))
    poses = cameras.world_from_camera.double().numpy()
    corners = np.einsum("nij,nkj->nki", poses[:, :, :3], local) * _frustum_depth(scene)
    centers = poses[:, None, :, 3]
    return np.concatenate([centers, centers + corners], axis=1)


def _frustum_depth(scene: Scene) -> float:
    """Small enough that neighbours do not hide each other, large enough to be seen."""
    centers = scene.cameras.world_from_camera[:, :, 3].double()
    extent = float((centers.amax(0) - centers.amin(0)).norm())
    extent = max(extent, 1e-3 * scene.bounds.radius, 1e-9)
    if len(centers) < 3:
        return 0.15 * extent if len(centers) > 1 else 0.3 * scene.bounds.radius
    some = centers[:: max(1, len(centers) // 500)]
    distance = torch.cdist(some, some)
    distance.fill_diagonal_(math.inf)
    spacing = float(distance.amin(1).median())
    picture = max(extent, 2 * scene.bounds.radius * (scene.bounds.radius < _FAR_LARGER * extent))
    return max(min(0.6 * spacing, 0.09 * extent), 0.022 * picture)


def _shown(scene: Scene, corners: np.ndarray) -> np.ndarray:
    points = corners.reshape(-1, 3)
    extent = max(float(np.linalg.norm(points.max(0) - points.min(0))), 1e-12)
    bounds = scene.bounds
    if bounds.radius < _FAR_LARGER * extent:
        # Directions all around, so that the sphere fits from wherever it is seen.
        around = np.random.default_rng(0).normal(size=(200, 3))
        around /= np.linalg.norm(around, axis=1, keepdims=True)
        points = np.concatenate([points, np.array(bounds.center) + bounds.radius * around])
    box = box_corners(scene)
    if float(np.linalg.norm(box[7] - box[0])) < 2 * _FAR_LARGER * extent:
        points = np.concatenate([points, box])
    return points


def box_corners(scene: Scene) -> np.ndarray:
    """(8, 3): bit k of a corner's number says lower or upper along axis k."""
    box = np.array([scene.bounds.aabb_min, scene.bounds.aabb_max])
    return np.array([[box[i & 1, 0], box[i >> 1 & 1, 1], box[i >> 2 & 1, 2]] for i in range(8)])

# SPDX-License-Identifier: Apache-2.0
"""A 3-D plot of cameras, points and bounds, drawn with plain lines."""

from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from diorama.data.scene import Scene
from diorama.export.plot_view import (
    PlotView,
    box_corners,
    frustums,
    plot_view,
    up_and_ahead,
)

COLORS = {"train": (38, 104, 190), "val": (30, 150, 110), "test": (226, 110, 28)}
_UNUSED = (150, 150, 150)
_PAPER, _INK, _GRID = (250, 250, 248), (45, 48, 54), (226, 226, 222)
_VOLUME = (38, 104, 190)
_SPHERE, _BOX = (120, 96, 170), (96, 130, 96)
_AXES = (("x", (205, 60, 50)), ("y", (60, 150, 60)), ("z", (50, 90, 210)))
_FINE = 2  # Drawn twice as large and reduced: smooth lines without a drawing library.
_MAX_POINTS = 40_000


def scene_plot(
    scene: Scene,
    size: tuple[int, int] = (1000, 700),
    stand: Literal["corner", "top"] = "corner",
) -> UInt8[Tensor, "H W 3"]:
    """Cameras by split, sparse points, the sphere and the box of interest, and a floor grid."""
    from PIL import Image, ImageDraw

    fine = (size[0] * _FINE, size[1] * _FINE)
    corners = frustums(scene)
    view = plot_view(scene, corners, fine, stand)
    canvas = Image.new("RGB", fine, _PAPER)
    _draw_floor(ImageDraw.Draw(canvas, "RGBA"), scene, view, fine)
    canvas = Image.fromarray(_with_points(np.array(canvas), scene, view))
    draw = ImageDraw.Draw(canvas, "RGBA")
    _draw_bounds(draw, scene, view)
    _draw_cameras(draw, scene, view, corners)
    _draw_axes(draw, view, fine)
    _draw_legend(draw, scene, fine, stand)
    return torch.from_numpy(np.array(canvas.resize(size, Image.Resampling.BOX)))


def _draw_floor(draw: Any, scene: Scene, view: PlotView, size: tuple[int, int]) -> None:
    up, ahead = up_and_ahead(scene)
    side = np.cross(ahead, up)
    center = np.array(scene.bounds.center)
    bottom = float((box_corners(scene) @ up).min())
    origin = center - up * (center @ up - bottom)
    reach = 0.75 * max(size) / view.scale
    step = 10 ** np.floor(np.log10(reach / 2))
    step *= next(m for m in (1, 2, 5, 10) if reach / (step * m) <= 12)
    for k in np.arange(-np.ceil(reach / step), np.ceil(reach / step) + 1) * step:
        for along, across in ((side, ahead), (ahead, side)):
            ends = np.stack(
                [origin + k * across - reach * along, origin + k * across + reach * along]
            )
            draw.line(_flat(view(ends)), fill=_GRID, width=_FINE)


def _with_points(pixels: np.ndarray, scene: Scene, view: PlotView) -> np.ndarray:
    """Points over the picture, near ones last; far ones fade into the paper."""
    if scene.points is None or len(scene.points) == 0:
        return pixels
    every = max(1, len(scene.points) // _MAX_POINTS)
    xyz = scene.points.xyz[::every].double().numpy()
    rgb = scene.points.rgb[::every].numpy().astype(float)
    projected = view(xyz)
    order = np.argsort(-projected[:, 2])
    place = np.floor(projected[order, :2]).astype(int)
    haze = np.linspace(0.45, 0.0, len(order))[:, None]
    color = (rgb[order] * (1 - haze) + np.array(_PAPER) * haze).astype(np.uint8)
    height, width = pixels.shape[:2]
    for dx in range(3):
        for dy in range(3):
            x, y = place[:, 0] + dx, place[:, 1] + dy
            inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
            pixels[y[inside], x[inside]] = color[inside]
    return pixels


def _draw_bounds(draw: Any, scene: Scene, view: PlotView) -> None:
    bounds = scene.bounds
    angle = np.linspace(0, 2 * np.pi, 97)
    circle = np.stack([np.cos(angle), np.sin(angle), 0 * angle], -1)
    for shift in range(3):
        ring = np.array(bounds.center) + bounds.radius * np.roll(circle, shift, axis=1)
        draw.line(_flat(view(ring)), fill=(*_SPHERE, 120), width=_FINE)
    # The outline of the sphere is a circle about the centre in this view.
    outline = np.array(bounds.center) + bounds.radius * circle @ view.axes
    draw.line(_flat(view(outline)), fill=(*_SPHERE, 220), width=_FINE + 1)
    corners = box_corners(scene)
    for i in range(8):
        for bit in (1, 2, 4):
            if not i & bit:
                draw.line(_flat(view(corners[[i, i | bit]])), fill=(*_BOX, 220), width=_FINE + 1)


def _draw_cameras(draw: Any, scene: Scene, view: PlotView, corners: np.ndarray) -> None:
    color: list[tuple[int, int, int]] = [_UNUSED] * len(corners)
    for split, chosen in COLORS.items():
        for index in scene.splits.get(split, ()):
            color[index] = chosen
    if scene.kind == "forward-facing":
        _draw_volume(draw, scene, view, corners)
    projected = view(corners)
    for i in np.argsort(-projected[:, 0, 2]):
        center, image = projected[i, 0], projected[i, 1:]
        draw.polygon(_flat(image), fill=(*color[i], 50))
        draw.line(_flat(image[[0, 1, 2, 3, 0]]), fill=(*color[i], 235), width=_FINE)
        for corner in image:
            draw.line(_flat(np.stack([center, corner])), fill=(*color[i], 170), width=_FINE)
        # The thick edge is the top of the photograph.
        draw.line(_flat(image[[0, 1]]), fill=(*color[i], 255), width=2 * _FINE + 1)


def _draw_volume(draw: Any, scene: Scene, view: PlotView, corners: np.ndarray) -> None:
    """What the middle camera sees between near and far, because all others see about the same."""
    offset = np.linalg.norm(corners[:, 0] - np.median(corners[:, 0], axis=0), axis=-1)
    middle = int(offset.argmin())
    center, image = corners[middle, 0], corners[middle, 1:]
    forward = scene.cameras.world_from_camera[middle, :, 2].double().numpy()
    depth = float((image.mean(0) - center) @ forward)
    near, far = (
        center + (image - center) * (limit / max(depth, 1e-12))
        for limit in (scene.bounds.near, scene.bounds.far)
    )
    for plane in (near, far):
        draw.polygon(_flat(view(plane)), fill=(*_VOLUME, 22))
        draw.line(_flat(view(plane[[0, 1, 2, 3, 0]])), fill=(*_VOLUME, 150), width=_FINE)
    for corner in far:
        draw.line(_flat(view(np.stack([center, corner]))), fill=(*_VOLUME, 150), width=_FINE)


def _draw_axes(draw: Any, view: PlotView, size: tuple[int, int]) -> None:
    """The world's axes, in the lower left corner."""
    origin, length = np.array([46.0 * _FINE, size[1] - 46.0 * _FINE]), 30 * _FINE
    for k in np.argsort(-view.axes[2]):
        name, color = _AXES[k]
        tip = origin + length * view.axes[:2, k]
        draw.line([*origin, *tip], fill=color, width=2 * _FINE)
        label = origin + 1.35 * length * view.axes[:2, k]
        if np.linalg.norm(view.axes[:2, k]) > 0.15:
            draw.text(tuple(label), name, fill=color, font=_font(13), anchor="mm")


def _draw_legend(draw: Any, scene: Scene, size: tuple[int, int], stand: str) -> None:
    title = {"corner": "seen from a corner", "top": "from above"}[stand]
    entries = [(title, _INK), *(_legend(scene) if stand == "corner" else [])]
    left, top = 14.0 * _FINE, 12.0 * _FINE
    draw.rectangle([0, 0, size[0], 40 * _FINE], fill=(*_PAPER, 225))
    for k, (text, color) in enumerate(entries):
        if k > 0:
            dot = [left, top + 4 * _FINE, left + 9 * _FINE, top + 13 * _FINE]
            draw.ellipse(dot, fill=color)
            left += 14 * _FINE
        draw.text((left, top), text, fill=_INK, font=_font(14))
        left += draw.textlength(text, font=_font(14)) + 18 * _FINE


def _legend(scene: Scene) -> list[tuple[str, tuple[int, int, int]]]:
    # A frame of several splits has the colour of the last one, and so has its entry.
    sets = {name: scene.splits.get(name, ()) for name in COLORS}
    is_shared = sets["val"] == sets["test"]
    entries = [
        (
            f"{len(indices)} val and test"
            if is_shared and name == "test"
            else f"{len(indices)} {name}",
            COLORS[name],
        )
        for name, indices in sets.items()
        if indices and not (is_shared and name == "val")
    ]
    if scene.points is not None:
        entries.append((f"{len(scene.points):,} points", _UNUSED))
    return [*entries, ("sphere of interest", _SPHERE), ("box", _BOX)]


def _font(size: int) -> Any:
    from PIL import ImageFont

    return ImageFont.load_default(size * _FINE)


def _flat(points: np.ndarray) -> list[float]:
    """x y x y ..., kept within what the drawing code can count."""
    return np.clip(points[..., :2], -30_000, 30_000).reshape(-1).tolist()

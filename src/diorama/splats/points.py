# SPDX-License-Identifier: Apache-2.0
"""Coloured points from any file that has them, to start a training from."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from diorama.errors import UserError
from diorama.splats.disk import read_file
from diorama.splats.files import decode_splats, sniff
from diorama.splats.ply_table import read_ply_tables
from diorama.splats.sh_basis import SH_DC
from diorama.splats.splats import Splats
from diorama.splats.taichi_parquet import decode_taichi_points, is_trained

_GREY = 128


@dataclass(frozen=True, eq=False)
class PointColors:
    """N points in the file's coordinates."""

    points: Float[Tensor, "N 3"]

    colors: UInt8[Tensor, "N 3"]
    """Red, green, blue; grey where the file has none."""


def read_points(path: Path) -> PointColors:
    """The points of a PLY or Parquet cloud, or the centres and base colours of a splat file."""
    found = read_points_or_splats(path)
    return _centers(found) if isinstance(found, Splats) else found


def read_points_or_splats(path: Path) -> PointColors | Splats:
    """Whichever of the two a file holds."""
    raw = read_file(path)
    kind = sniff(raw, path)
    if kind == "taichi" and not is_trained(raw, path):
        return _cloud(*decode_taichi_points(raw, path), path)
    if kind == "ply":
        vertices = read_ply_tables(raw, path).elements.get("vertex")
        if vertices is not None and "opacity" not in (vertices.dtype.names or ()):
            return _cloud(*_ply_points(vertices, path), path)
    return decode_splats(raw, path)


def _ply_points(vertices: np.ndarray, path: Path) -> tuple[np.ndarray, np.ndarray | None]:
    names = vertices.dtype.names or ()
    if not {"x", "y", "z"} <= set(names):
        raise UserError(f"{path}: the PLY file's vertices have no x, y and z; export it again.")
    points = np.stack([vertices[axis] for axis in ("x", "y", "z")], axis=-1)
    if not {"red", "green", "blue"} <= set(names):
        return points, None
    colors = np.stack([vertices[name] for name in ("red", "green", "blue")], axis=-1)
    return points, np.clip(np.nan_to_num(colors), 0, 255)


def _cloud(points: np.ndarray, colors: np.ndarray | None, path: Path) -> PointColors:
    if len(points) == 0:
        raise UserError(f"{path}: holds no points; export it again.")
    if num_bad := int((~np.isfinite(points)).any(axis=1).sum()):
        raise UserError(
            f"{path}: {num_bad} of {len(points)} points have a position that is not finite;"
            " remove them with the tool that wrote the file."
        )
    if colors is None:
        colors = np.full(points.shape, _GREY)
    return PointColors(
        torch.from_numpy(points.astype(np.float32)), torch.from_numpy(colors.astype(np.uint8))
    )


def _centers(splats: Splats) -> PointColors:
    base = SH_DC * splats.sh[:, 0]
    colors = base.sigmoid() if splats.color == "sigmoid" else (base + 0.5).clamp(0, 1)
    return PointColors(splats.means, (255 * colors).round().to(torch.uint8))

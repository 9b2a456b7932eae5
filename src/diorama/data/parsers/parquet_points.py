# SPDX-License-Identifier: Apache-2.0
"""Coloured points from a parquet table with the columns x, y, z and perhaps r, g, b (0-255)."""

from pathlib import Path

import numpy as np

from diorama.data.paths import check_file
from diorama.data.pose_check import sane_points
from diorama.errors import UserError

MAX_PARQUET_BYTES = 2 * 2**30
MAX_POINTS = 20_000_000
"""A small file can declare very many equal rows."""


def read_parquet_points(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Positions (N 3, float64) and colours (N 3, uint8; grey where the file has none)."""
    check_file(path, MAX_PARQUET_BYTES)
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise UserError(f"{path}: reading it needs pyarrow; pip install pyarrow.") from None
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            count, names = file.metadata.num_rows, set(file.schema_arrow.names)
            _check(path, count, names)
            wanted = [name for name in ("x", "y", "z", "r", "g", "b") if name in names]
            table = file.read(columns=wanted, use_threads=False)
        columns = {name: _numbers(table.column(name)) for name in wanted}
    except (pyarrow.ArrowException, OSError, ValueError, TypeError, MemoryError) as error:
        told = " ".join(str(error).split())
        raise UserError(
            f"{path}: not a readable parquet file ({told:.80}); copy it again."
        ) from error
    xyz = np.stack([columns[axis] for axis in "xyz"], axis=-1)
    rgb = np.full(xyz.shape, 128, dtype=np.uint8)
    if all(name in columns for name in "rgb"):
        colors = np.stack([columns[name] for name in "rgb"], axis=-1)
        rgb = np.nan_to_num(colors, nan=128).clip(0, 255).round().astype(np.uint8)
    keep = sane_points(xyz)
    return xyz[keep], rgb[keep]


def _check(path: Path, count: int, names: set[str]) -> None:
    if count > MAX_POINTS:
        raise UserError(f"{path}: declares {count} points, more than the {MAX_POINTS} we read.")
    if not {"x", "y", "z"} <= names:
        raise UserError(f"{path}: a point cloud needs the columns x, y and z.")


def _numbers(column: object) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # a damaged file may hold any bit pattern
        return np.asarray(column, dtype=np.float64)

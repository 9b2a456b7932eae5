# SPDX-License-Identifier: Apache-2.0
"""The Parquet tables of taichi_3d_gaussian_splatting: trained scenes and raw clouds of points."""

import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from diorama.errors import UserError
from diorama.splats.arrays import SplatArrays
from diorama.splats.disk import check_inflation
from diorama.splats.splats import Splats

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

_POSITION = ("x", "y", "z")
_RGB = ("r", "g", "b")
_ROTATION = tuple(f"cov_q{index}" for index in range(4))  # x y z w
_SCALES = tuple(f"cov_s{index}" for index in range(3))
_HARMONICS = tuple(f"{channel}_sh{index}" for channel in _RGB for index in range(16))
COLUMNS = (*_POSITION, *_ROTATION, *_SCALES, "alpha0", *_HARMONICS)


def decode_taichi(raw: bytes, path: Path) -> Splats:
    """A trained scene: colours are sigmoid(SH), opacities always compensated for the blur."""
    file = _open(raw, path)
    missing = [name for name in COLUMNS if name not in file.schema_arrow.names]
    if missing and not set(_POSITION) & set(missing):
        raise UserError(
            f"{path}: a raw cloud of points, not a trained scene ({len(missing)} of"
            f" {len(COLUMNS)} columns are missing, such as {missing[0]}); use it to start a"
            " training instead."
        )
    values = _columns(file, COLUMNS, len(raw), path)
    sh = values[:, 11:].reshape(-1, 3, 16).transpose(0, 2, 1)
    arrays = SplatArrays(values[:, :3], values[:, [6, 3, 4, 5]], values[:, 7:10], values[:, 10], sh)
    return arrays.to_splats(path, color="sigmoid", antialiased=True)


def is_trained(raw: bytes, path: Path) -> bool:
    """Whether the table has all columns of a trained scene."""
    return set(COLUMNS) <= set(_open(raw, path).schema_arrow.names)


def decode_taichi_points(raw: bytes, path: Path) -> tuple[np.ndarray, np.ndarray | None]:
    """Positions (N 3, float32) of a raw table and, where it has them, r g b (uint8)."""
    file = _open(raw, path)
    has_color = set(_RGB) <= set(file.schema_arrow.names)
    values = _columns(file, _POSITION + _RGB * has_color, len(raw), path)
    colors = np.clip(np.nan_to_num(np.rint(values[:, 3:])), 0, 255).astype(np.uint8)
    return values[:, :3], colors if has_color else None


def encode_taichi(splats: Splats) -> bytes:
    """The 59 columns in the order of the original program; `splats.color` must be "sigmoid"."""
    import pyarrow
    import pyarrow.parquet

    if splats.color != "sigmoid":
        raise ValueError("color must be 'sigmoid' for a taichi scene, got 'shifted'")
    arrays = SplatArrays.of(splats.with_degree(3))
    values = np.concatenate(
        [
            arrays.means,
            arrays.quaternions[:, [1, 2, 3, 0]],
            arrays.log_scales,
            arrays.opacity_logits[:, None],
            arrays.sh.transpose(0, 2, 1).reshape(len(splats), -1),
        ],
        axis=1,
    )
    columns = {name: np.ascontiguousarray(values[:, i]) for i, name in enumerate(COLUMNS)}
    sink = io.BytesIO()
    # Floats hardly repeat: a dictionary of them would only add to the file.
    pyarrow.parquet.write_table(pyarrow.table(columns), sink, use_dictionary=False)
    return sink.getvalue()


def _open(raw: bytes, path: Path) -> "ParquetFile":
    import pyarrow
    import pyarrow.parquet

    try:
        return pyarrow.parquet.ParquetFile(pyarrow.BufferReader(raw))
    except (pyarrow.ArrowException, OSError) as error:
        raise UserError(
            f"{path}: not a readable Parquet file ({_brief(error)}); copy it again."
        ) from error


def _columns(file: "ParquetFile", names: tuple[str, ...], present: int, path: Path) -> np.ndarray:
    """Numeric columns side by side (N columns, float32)."""
    import pyarrow

    schema = file.schema_arrow
    for name in names:
        found = schema.names.count(name)
        kind = schema.field(name).type if found == 1 else None
        if kind is None or not (pyarrow.types.is_floating(kind) or pyarrow.types.is_integer(kind)):
            raise UserError(
                f"{path}: the column {name} is {kind or 'missing or there twice'}, expected"
                " numbers; export it again."
            )
    check_inflation(path, file.metadata.num_rows * len(names) * 4, present)
    try:
        table = file.read(columns=list(names))
        columns = [table.column(name).to_numpy() for name in names]
    except (pyarrow.ArrowException, OSError) as error:
        raise UserError(
            f"{path}: damaged Parquet data ({_brief(error)}); copy it again."
        ) from error
    return np.stack(columns, axis=-1).astype(np.float32)


def _brief(error: Exception) -> str:
    """The beginning of a message that may have many lines."""
    return " ".join(str(error).split())[:80]

# SPDX-License-Identifier: Apache-2.0
"""The .ply of 3-D Gaussian splatting: one float per parameter, nothing lost."""

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from diorama.errors import UserError
from diorama.splats.arrays import SplatArrays
from diorama.splats.ply_table import PlyTables, ply_header, read_ply_tables
from diorama.splats.splats import Splats

_POSITION = ("x", "y", "z")
_NORMAL = ("nx", "ny", "nz")
_DC = ("f_dc_0", "f_dc_1", "f_dc_2")
_SCALES = ("scale_0", "scale_1", "scale_2")
_ROTATION = ("rot_0", "rot_1", "rot_2", "rot_3")
_IS_ANTIALIASED = re.compile(r"antialiased[:\s]+1|SplatRenderMode:\s*mip", re.IGNORECASE)
_IS_2DGS = re.compile(r"SplatRenderMode:\s*2dgs", re.IGNORECASE)
_ANTIALIASED = ["SplatRenderMode: mip", "antialiased 1"]


def decode_ply(raw: bytes, path: Path) -> Splats:
    """Splats of any degree, with columns in any order and others between them.

    Header comments say whether opacities are compensated: Brush's `SplatRenderMode: mip` or
    Postshot's `antialiased 1`.
    """
    return splats_from_tables(read_ply_tables(raw, path), path)


def splats_from_tables(tables: PlyTables, path: Path) -> Splats:
    """The splats of a parsed file."""
    table = tables.elements.get("vertex")
    if table is None:
        raise UserError(f"{path}: the PLY file has no vertices, hence no splats.")
    names = table.dtype.names or ()
    _check_columns(names, path)
    if "scale_2" not in names or any(map(_IS_2DGS.search, tables.comments)):
        raise UserError(
            f"{path}: holds flat splats of two scales (2DGS), which are not supported; train 3-D"
            " Gaussians instead."
        )
    arrays = SplatArrays(
        means=_columns(table, _POSITION, path),
        quaternions=_columns(table, _ROTATION, path),
        log_scales=_columns(table, _SCALES, path),
        opacity_logits=_columns(table, ("opacity",), path)[:, 0],
        sh=_harmonics(table, path),
    )
    return arrays.to_splats(path, antialiased=is_antialiased(tables))


def is_antialiased(tables: PlyTables) -> bool:
    """Whether a header comment says so."""
    return any(map(_IS_ANTIALIASED.search, tables.comments))


def antialiased_comments(splats: Splats) -> list[str]:
    """Header comments that `is_antialiased` and other programs understand."""
    return _ANTIALIASED if splats.antialiased else []


def encode_ply(splats: Splats) -> bytes:
    """The columns of the original trainer, in its order; the normals are zeros."""
    arrays = SplatArrays.of(splats)
    count, num_coefficients = arrays.sh.shape[:2]
    rest = arrays.sh[:, 1:].transpose(0, 2, 1).reshape(count, 3 * (num_coefficients - 1))
    names = [*_POSITION, *_NORMAL, *_DC, *rest_names(3 * (num_coefficients - 1))]
    columns = [arrays.means, np.zeros_like(arrays.means), arrays.sh[:, 0], rest]
    names += ["opacity", *_SCALES, *_ROTATION]
    columns += [arrays.opacity_logits[:, None], arrays.log_scales, arrays.quaternions]
    values = np.concatenate(columns, axis=1).astype("<f4")
    table = values.view(np.dtype([(name, "<f4") for name in names]))[:, 0]
    return ply_header(antialiased_comments(splats), {"vertex": table}) + values.tobytes()


def rest_names(count: int) -> list[str]:
    """The columns of all harmonics but the constant one: all reds, then greens, then blues."""
    return [f"f_rest_{index}" for index in range(count)]


def _check_columns(names: Iterable[str], path: Path) -> None:
    wanted = [*_POSITION, *_DC, "opacity", *_SCALES[:2], *_ROTATION]
    missing = [name for name in wanted if name not in names]
    if set(missing) >= {"opacity", *_ROTATION} and not set(_POSITION) & set(missing):
        raise UserError(
            f"{path}: a cloud of points, not splats (no opacity, scales and rotations); use it to"
            " start a training instead."
        )
    if missing:
        raise UserError(
            f"{path}: not a Gaussian splatting PLY: {', '.join(missing)} missing; export it again."
        )


def _columns(table: np.ndarray, names: Iterable[str], path: Path) -> np.ndarray:
    for name in names:
        if table.dtype[name].kind != "f":
            raise UserError(
                f"{path}: the column {name} holds {table.dtype[name].name} where splats have"
                " floats; export it again."
            )
    return np.stack([table[name] for name in names], axis=-1).astype(np.float32)


def _harmonics(table: np.ndarray, path: Path) -> np.ndarray:
    constant = _columns(table, _DC, path)[:, None]
    count = sum(name.startswith("f_rest_") for name in table.dtype.names or ())
    names = rest_names(count)
    if count not in (0, 9, 24, 45, 72) or not set(names) <= set(table.dtype.names or ()):
        raise UserError(
            f"{path}: {count} columns f_rest_*, expected f_rest_0 onwards, 0, 9, 24 or 45 of them."
        )
    if count == 0:
        return constant
    rest = _columns(table, names, path).reshape(len(table), 3, count // 3)
    return np.concatenate([constant, rest.transpose(0, 2, 1)], axis=1)

# SPDX-License-Identifier: Apache-2.0
"""Coloured points from a PLY file, ASCII or binary; only the vertices are looked at."""

from pathlib import Path

import numpy as np

from diorama.data.paths import read_bytes
from diorama.data.pose_check import sane_points
from diorama.errors import UserError

MAX_PLY_BYTES = 2 * 2**30
MAX_HEADER = 64 * 2**10
_TYPES = {
    "char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4",
    "float": "f4", "double": "f8", "int8": "i1", "uint8": "u1", "int16": "i2", "uint16": "u2",
    "int32": "i4", "uint32": "u4", "float32": "f4", "float64": "f8",
}  # fmt: skip
_FORMATS = {"ascii": None, "binary_little_endian": "<", "binary_big_endian": ">"}


def read_ply(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Positions (N 3, float64) and colours (N 3, uint8; grey where the file has none)."""
    raw = read_bytes(path, MAX_PLY_BYTES)
    end = raw.find(b"end_header", 0, MAX_HEADER)
    start = raw.find(b"\n", end) + 1
    if not raw.startswith(b"ply") or end < 0 or not start:
        raise UserError(f"{path}: not a PLY file (no header).")
    style, count, names, kinds = _header(raw[:end].decode("latin-1"), path)
    if style == "ascii":
        table = _ascii_rows(raw[start:], count, len(names), path)
    else:
        row = np.dtype([(n, f"{_FORMATS[style]}{k}") for n, k in zip(names, kinds, strict=True)])
        if count * row.itemsize > len(raw) - start:
            raise UserError(
                f"{path}: declares {count} vertices but the file is too short for them."
            )
        rows = np.frombuffer(raw, row, count, start)
        table = {name: rows[name] for name in names}
        return _points(table)
    return _points({name: table[:, i] for i, name in enumerate(names)})


def _header(text: str, path: Path) -> tuple[str, int, list[str], list[str]]:
    style, count, element, names, kinds = "", -1, "", [], []
    for words in (line.split() for line in text.splitlines()):
        if words[:1] == ["format"] and len(words) > 1:
            style = words[1]
        elif words[:1] == ["element"] and len(words) == 3:
            element = words[1]
            if count < 0 and element != "vertex":
                raise UserError(f"{path}: the vertices must be the PLY file's first element.")
            if element == "vertex" and words[2].isdigit() and len(words[2]) < 16:
                count = int(words[2])
        elif words[:1] == ["property"] and element == "vertex":
            if len(words) != 3 or words[1] not in _TYPES or words[2] in names:
                raise UserError(f"{path}: cannot read the vertex property {' '.join(words)!r:.60}.")
            kinds.append(_TYPES[words[1]])
            names.append(words[2])
    if style not in _FORMATS or count < 0 or not {"x", "y", "z"} <= set(names):
        raise UserError(f"{path}: the PLY header needs a format and vertices with x, y and z.")
    return style, count, names, kinds


def _ascii_rows(body: bytes, count: int, width: int, path: Path) -> np.ndarray:
    lines = body.splitlines()[:count]
    try:
        rows = np.array([[float(word) for word in line.split()[:width]] for line in lines])
    except ValueError as error:
        raise UserError(f"{path}: a vertex is not {width} numbers ({error!s:.80}).") from error
    if len(lines) < count or (count and rows.shape != (count, width)):
        raise UserError(f"{path}: declares {count} vertices but the file is too short for them.")
    return rows.reshape(count, width)


def _points(table: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    xyz = np.stack([table[axis].astype(np.float64) for axis in "xyz"], axis=-1)
    colours = [table.get(name) for name in ("red", "green", "blue")]
    if any(column is None for column in colours):
        rgb = np.full(xyz.shape, 128, dtype=np.uint8)
    else:
        rgb = np.stack([np.clip(column, 0, 255) for column in colours if column is not None], -1)
        rgb = np.nan_to_num(rgb).astype(np.uint8)
    keep = sane_points(xyz)
    return xyz[keep], rgb[keep]

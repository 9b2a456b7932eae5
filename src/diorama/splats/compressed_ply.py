# SPDX-License-Identifier: Apache-2.0
"""PlayCanvas' compressed .ply: 16 bytes a splat within the bounds of its chunk of 256, plus SH."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from diorama.errors import UserError
from diorama.splats.arrays import (
    SplatArrays,
    byte_to_logit,
    from_unorm,
    opacity_to_byte,
    to_unorm,
    unit_quaternions,
)
from diorama.splats.morton import morton_order
from diorama.splats.ply import antialiased_comments, is_antialiased, rest_names
from diorama.splats.ply_table import PlyTables, ply_header, read_ply_tables
from diorama.splats.sh_basis import SH_DC
from diorama.splats.smallest_three import drop_largest, restore_largest
from diorama.splats.splats import Splats

CHUNK = 256
_AXES = ("x", "y", "z")
_SCALES = ("scale_x", "scale_y", "scale_z")
_CHANNELS = ("r", "g", "b")
_PACKED = ("packed_position", "packed_rotation", "packed_scale", "packed_color")
_MAX_LOG_SCALE = 20.0
# Spherical harmonics lie within +-4 and are stored in 256 steps of 1/32.
_SH_RANGE = 8.0


def decode_compressed_ply(raw: bytes, path: Path) -> Splats:
    """Splats in the file's (spatial) order; colour bounds and the table `sh` may be missing."""
    tables = read_ply_tables(raw, path)
    chunks, packed = _checked(tables, path)
    owner = np.arange(len(packed)) // CHUNK
    color = np.stack([from_unorm(packed["packed_color"], shift, 8) for shift in (24, 16, 8)], -1)
    if "min_r" in (chunks.dtype.names or ()):
        color = _lerp(chunks, _CHANNELS, owner, color)
    constant = (color - 0.5) / SH_DC
    arrays = SplatArrays(
        means=_lerp(chunks, _AXES, owner, _unpack_11_10_11(packed["packed_position"])),
        quaternions=_unpack_rotation(packed["packed_rotation"]),
        log_scales=_lerp(chunks, _SCALES, owner, _unpack_11_10_11(packed["packed_scale"])),
        opacity_logits=byte_to_logit(packed["packed_color"] & np.uint32(0xFF)),
        sh=np.concatenate([constant[:, None], _harmonics(tables, len(packed), path)], axis=1),
    )
    return arrays.to_splats(path, antialiased=is_antialiased(tables))


def encode_compressed_ply(splats: Splats) -> bytes:
    """Splats in Morton order, so that the bounds of each chunk are tight."""
    arrays = SplatArrays.of(splats)
    order = morton_order(arrays.means)
    means, sh = arrays.means[order], arrays.sh[order]
    scales = np.clip(arrays.log_scales[order], -_MAX_LOG_SCALE, _MAX_LOG_SCALE)
    color = sh[:, 0] * np.float32(SH_DC) + np.float32(0.5)
    position, size, shade = (_place_in_chunks(values) for values in (means, scales, color))
    bounds = position.bounds(_AXES) | size.bounds(_SCALES) | shade.bounds(_CHANNELS)
    packed = np.zeros(len(order), [(name, "<u4") for name in _PACKED])
    packed["packed_position"] = _pack_11_10_11(position.inside)
    packed["packed_rotation"] = _pack_rotation(arrays.quaternions[order])
    packed["packed_scale"] = _pack_11_10_11(size.inside)
    packed["packed_color"] = _pack_color(shade.inside, arrays.opacity_logits[order])
    tables = {"chunk": _table(bounds), "vertex": packed}
    if splats.degree > 0:
        tables["sh"] = _pack_harmonics(sh[:, 1:])
    header = ply_header(antialiased_comments(splats), tables)
    return header + b"".join(table.tobytes() for table in tables.values())


def _checked(tables: PlyTables, path: Path) -> tuple[np.ndarray, np.ndarray]:
    chunks, packed = tables.elements.get("chunk"), tables.elements.get("vertex")
    if chunks is None or packed is None:
        raise UserError(
            f"{path}: a compressed PLY has the tables chunk and vertex; export it again."
        )
    for table, names, kind in ((chunks, _bound_names(chunks), "f"), (packed, _PACKED, "u")):
        have = {name: table.dtype[name] for name in table.dtype.names or ()}
        wrong = [name for name in names if name not in have or have[name].kind != kind]
        if wrong or any(have[name].itemsize != 4 for name in names):
            raise UserError(
                f"{path}: the columns {', '.join(wrong or names)} of the compressed PLY are missing"
                " or of a wrong type; export it again."
            )
    if len(chunks) != -(-len(packed) // CHUNK):
        raise UserError(
            f"{path}: {len(packed)} splats need {-(-len(packed) // CHUNK)} chunks, the file has"
            f" {len(chunks)}; export it again."
        )
    return chunks, packed


def _bound_names(chunks: np.ndarray) -> list[str]:
    has_color = any(name.endswith("_r") for name in chunks.dtype.names or ())
    values = (*_AXES, *_SCALES, *(_CHANNELS if has_color else ()))
    return [f"{end}_{value}" for end in ("min", "max") for value in values]


def _lerp(
    chunks: np.ndarray, names: tuple[str, ...], owner: np.ndarray, inside: np.ndarray
) -> np.ndarray:
    """Values from their place (0 to 1) within the bounds of the chunk that owns them."""
    low = np.stack([chunks[f"min_{name}"] for name in names], axis=-1).astype(np.float64)[owner]
    high = np.stack([chunks[f"max_{name}"] for name in names], axis=-1).astype(np.float64)[owner]
    return low * (1 - inside) + high * inside


@dataclass(frozen=True)
class _Placed:
    """Each chunk's lower and upper bounds, and each value's place between them, 0 to 1."""

    low: np.ndarray
    high: np.ndarray
    inside: np.ndarray

    def bounds(self, names: tuple[str, ...]) -> dict[str, np.ndarray]:
        """The columns of the table of chunks."""
        low = {f"min_{name}": self.low[:, axis] for axis, name in enumerate(names)}
        return low | {f"max_{name}": self.high[:, axis] for axis, name in enumerate(names)}


def _place_in_chunks(values: np.ndarray) -> _Placed:
    starts = np.arange(0, len(values), CHUNK)
    low, high = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
    owner = np.arange(len(values)) // CHUNK
    size = (high.astype(np.float64) - low)[owner]
    return _Placed(low, high, (values - low[owner]) / np.where(size > 0, size, 1))


def _table(columns: dict[str, np.ndarray]) -> np.ndarray:
    table = np.zeros(len(next(iter(columns.values()))), [(name, "<f4") for name in columns])
    for name, values in columns.items():
        table[name] = values
    return table


def _pack_11_10_11(inside: np.ndarray) -> np.ndarray:
    x, y, z = (to_unorm(inside[:, axis], bits) for axis, bits in enumerate((11, 10, 11)))
    return x << np.uint32(21) | y << np.uint32(11) | z


def _unpack_11_10_11(packed: np.ndarray) -> np.ndarray:
    fields = ((21, 11), (11, 10), (0, 11))
    return np.stack([from_unorm(packed, shift, bits) for shift, bits in fields], axis=-1)


def _pack_rotation(quaternions: np.ndarray) -> np.ndarray:
    largest, three = drop_largest(unit_quaternions(quaternions))
    a, b, c = to_unorm(three / np.sqrt(2) + 0.5, 10).T
    return largest.astype(np.uint32) << np.uint32(30) | a << np.uint32(20) | b << np.uint32(10) | c


def _unpack_rotation(packed: np.ndarray) -> np.ndarray:
    three = np.stack([from_unorm(packed, shift, 10) for shift in (20, 10, 0)], axis=-1)
    return restore_largest(packed >> np.uint32(30), (three - 0.5) * np.sqrt(2))


def _pack_color(inside: np.ndarray, opacity_logits: np.ndarray) -> np.ndarray:
    r, g, b = to_unorm(inside, 8).T
    alpha = opacity_to_byte(opacity_logits).astype(np.uint32)
    return r << np.uint32(24) | g << np.uint32(16) | b << np.uint32(8) | alpha


def _pack_harmonics(rest: np.ndarray) -> np.ndarray:
    flat = rest.transpose(0, 2, 1).reshape(len(rest), -1)
    steps = np.clip(np.floor((flat / _SH_RANGE + 0.5) * 256), 0, 255).astype(np.uint8)
    return steps.view(np.dtype([(name, "u1") for name in rest_names(flat.shape[1])]))[:, 0]


def _harmonics(tables: PlyTables, count: int, path: Path) -> np.ndarray:
    table = tables.elements.get("sh")
    if table is None:
        return np.zeros((count, 0, 3))
    names = rest_names(len(table.dtype.names or ()))
    is_right = set(names) == set(table.dtype.names or ()) and len(names) in (9, 24, 45)
    if not is_right or len(table) != count or any(table.dtype[n] != np.uint8 for n in names):
        raise UserError(
            f"{path}: the table sh must hold 9, 24 or 45 uchar columns f_rest_* for each of the"
            f" {count} splats; export it again."
        )
    steps = np.stack([table[name] for name in names], axis=-1).astype(np.float64)
    # The first and the last step stand for the ends of the range, the others for their middles.
    place = np.where(steps == 0, 0, np.where(steps == 255, 1, (steps + 0.5) / 256))
    return ((place - 0.5) * _SH_RANGE).reshape(count, 3, len(names) // 3).transpose(0, 2, 1)

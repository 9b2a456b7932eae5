# SPDX-License-Identifier: Apache-2.0
"""Niantic's .spz: about 20 bytes a splat, packed. Files are in right-up-back axes."""

from pathlib import Path
from typing import Literal

import numpy as np

from diorama.errors import UserError
from diorama.splats.arrays import (
    SplatArrays,
    byte_to_logit,
    opacity_to_byte,
    unit_quaternions,
)
from diorama.splats.smallest_three import drop_largest, restore_largest
from diorama.splats.splats import Splats
from diorama.splats.spz_container import SpzFile, read_spz, write_spz
from diorama.splats.transform import flip_axes

SpzVersion = Literal[2, 3, 4]

_RIGHT_UP_BACK = (1, -1, -1)
_FRACTIONAL_BITS = 12
_POSITION_BITS = 23
# Wider than the 0.2821 of a colour in 0 to 1: other harmonics may bring it back into range.
_COLOR_SCALE = 0.15
_ROTATION_TOP = 511
# 8-bit harmonics are rounded to these many steps, because zeros pack well: degree 1, and above.
_SH_BUCKETS = (8, 16)


def decode_spz(raw: bytes, path: Path) -> Splats:
    """Splats in .ply axes (right, down, forward), turned there from the file's.

    The degree 4 that version 4 allows is cut off after degree 3, which `notes` tells.
    """
    file = read_spz(raw, path)
    signs = _signs(file.axes, path)

    def stream(name: str, width: int) -> np.ndarray:
        return np.frombuffer(file.streams[name], np.uint8).reshape(file.count, width)

    num_rest = (file.degree + 1) ** 2 - 1
    rest = (stream("sh", 3 * num_rest).astype(np.float64) - 128) / 128
    constant = (stream("colors", 3) / 255 - 0.5) / _COLOR_SCALE
    arrays = SplatArrays(
        means=_positions(file),
        quaternions=_quaternions(file),
        log_scales=stream("scales", 3) / 16 - 10,
        opacity_logits=byte_to_logit(stream("alphas", 1)[:, 0]),
        sh=np.concatenate([constant[:, None], rest.reshape(file.count, num_rest, 3)], axis=1),
    )
    return flip_axes(arrays.to_splats(path, antialiased=file.is_antialiased), signs)


def encode_spz(splats: Splats, version: SpzVersion = 4) -> bytes:
    """Splats turned to right-up-back axes; version 2 has coarser rotations and the widest use."""
    if version not in (2, 3, 4):
        raise ValueError(f"version must be 2, 3 or 4, got {version}")
    arrays = SplatArrays.of(flip_axes(splats, _RIGHT_UP_BACK))
    bits = _fractional_bits(arrays)
    xyzw = unit_quaternions(arrays.quaternions)[:, [1, 2, 3, 0]]
    streams = {
        "positions": _pack_positions(arrays.means, bits),
        "alphas": opacity_to_byte(arrays.opacity_logits),
        "colors": _to_byte(arrays.sh[:, 0] * (_COLOR_SCALE * 255) + 127.5),
        "scales": _to_byte((arrays.log_scales + 10) * 16),
        "rotations": _pack_three_bytes(xyzw) if version == 2 else _pack_smallest_three(xyzw),
        "sh": _pack_harmonics(arrays.sh[:, 1:]),
    }
    packed = {name: values.tobytes() for name, values in streams.items()}
    return write_spz(SpzFile(version, len(splats), splats.degree, bits, splats.antialiased, packed))


def spz_losses(splats: Splats) -> list[str]:
    """What of these splats lies outside the ranges of the format and is clipped to them."""
    arrays = SplatArrays.of(splats)
    inside = {
        "coordinates beyond ±8388607": np.abs(arrays.means) < 2**_POSITION_BITS,
        "sizes outside e^-10 to e^5.9": (arrays.log_scales + 10 >= 0) & (arrays.log_scales < 5.97),
        "base colours beyond ±3.33": np.abs(arrays.sh[:, 0]) <= 0.5 / _COLOR_SCALE,
        "harmonics beyond ±1": np.abs(arrays.sh[:, 1:]) <= 1,
    }
    counts = {name: int((~values).sum()) for name, values in inside.items()}
    return [
        f"{count} of {inside[name].size} {name} are clipped: .spz cannot hold them."
        for name, count in counts.items()
        if count
    ]


def _signs(axes: int | None, path: Path) -> tuple[int, int, int]:
    """Signs that lead from the file's axes to right-down-forward.

    Codes 1 to 8 count through left/right, down/up, back/forward, the first varying fastest.
    """
    if axes is None or axes == 0:
        return _RIGHT_UP_BACK
    code = axes - 1
    signs = (1 if code & 1 else -1, -1 if code & 2 else 1, 1 if code & 4 else -1)
    if not 0 <= code < 8 or signs[0] * signs[1] * signs[2] < 0:
        raise UserError(
            f"{path}: the .spz file is in left-handed or swapped axes (code {axes}); export it in"
            " right-up-back axes, the format's default."
        )
    return signs


def _positions(file: SpzFile) -> np.ndarray:
    raw = file.streams["positions"]
    if file.version == 1:
        return np.frombuffer(raw, "<f2").reshape(file.count, 3)
    low, middle, high = np.frombuffer(raw, np.uint8).reshape(-1, 3).astype(np.int32).T
    unsigned = low | middle << 8 | high << 16
    signed = (unsigned ^ 0x800000) - 0x800000
    return signed.reshape(file.count, 3) / 2.0**file.fractional_bits


def _fractional_bits(arrays: SplatArrays) -> int:
    """12 as everywhere; more for scenes of tiny splats, fewer where coordinates need the room."""
    size = float(np.exp(np.median(arrays.log_scales)))
    # A step of at most a quarter of the typical splat.
    wanted = max(_FRACTIONAL_BITS, int(np.ceil(np.log2(4 / size))))
    farthest = max(float(np.abs(arrays.means).max()), 1.0)
    return int(np.clip(_POSITION_BITS - np.floor(np.log2(farthest)) - 1, 0, min(wanted, 23)))


def _pack_positions(means: np.ndarray, bits: int) -> np.ndarray:
    top = (1 << _POSITION_BITS) - 1
    steps = np.clip(np.rint(means.astype(np.float64) * 2.0**bits), -top, top).astype("<i4")
    return np.ascontiguousarray(steps).view(np.uint8).reshape(-1, 4)[:, :3]


def _quaternions(file: SpzFile) -> np.ndarray:
    """Unit quaternions, w first."""
    if file.version < 3:
        three = np.frombuffer(file.streams["rotations"], np.uint8).reshape(file.count, 3)
        xyz = three / 127.5 - 1
        w = np.sqrt(np.maximum(0, 1 - (xyz**2).sum(axis=1, keepdims=True)))
        return np.concatenate([w, xyz], axis=1)
    packed = np.frombuffer(file.streams["rotations"], "<u4")
    fields = np.stack([packed >> np.uint32(shift) for shift in (20, 10, 0)], axis=-1)
    size = (fields & np.uint32(_ROTATION_TOP)) / (_ROTATION_TOP * np.sqrt(2))
    three = np.where(fields & np.uint32(0x200), -size, size)
    return restore_largest(packed >> np.uint32(30), three)[:, [3, 0, 1, 2]]


def _pack_three_bytes(xyzw: np.ndarray) -> np.ndarray:
    return _to_byte(xyzw[:, :3] * np.where(xyzw[:, 3:] < 0, -127.5, 127.5) + 127.5)


def _pack_smallest_three(xyzw: np.ndarray) -> np.ndarray:
    largest, three = drop_largest(xyzw)
    steps = np.minimum(np.rint(np.abs(three) * (_ROTATION_TOP * np.sqrt(2))), _ROTATION_TOP)
    fields = steps.astype(np.uint32) | np.where(three < 0, 0x200, 0).astype(np.uint32)
    a, b, c = fields.T
    packed = (
        largest.astype(np.uint32) << np.uint32(30) | a << np.uint32(20) | b << np.uint32(10) | c
    )
    return packed.astype("<u4")


def _pack_harmonics(rest: np.ndarray) -> np.ndarray:
    steps = np.rint(rest.astype(np.float64) * 128).astype(np.int64) + 128
    bucket = np.where(np.arange(rest.shape[1]) < 3, *_SH_BUCKETS)[None, :, None]
    return np.clip((steps + bucket // 2) // bucket * bucket, 0, 255).astype(np.uint8)


def _to_byte(values: np.ndarray) -> np.ndarray:
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)

# SPDX-License-Identifier: Apache-2.0
"""NumPy files from strangers: never unpickled, never allocated beyond what the file holds."""

import io
import math
import tokenize
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from diorama.data.paths import disk_error, read_bytes
from diorama.errors import UserError

MAX_ARRAY_BYTES = 256 * 2**20
# NumPy parses its headers as Python text, hence the last three.
_DAMAGED = (ValueError, EOFError, OverflowError, SyntaxError, RecursionError, tokenize.TokenError)


def read_npy(path: Path) -> np.ndarray:
    """The numeric array in an .npy file, as float64."""
    return _array(read_bytes(path, MAX_ARRAY_BYTES), str(path))


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """The numeric arrays in an .npz file by name, as float64."""
    raw = read_bytes(path, MAX_ARRAY_BYTES)
    arrays: dict[str, np.ndarray] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            members = archive.infolist()
            if sum(member.file_size for member in members) > MAX_ARRAY_BYTES:
                raise UserError(f"{path}: unpacks to more than {MAX_ARRAY_BYTES >> 20} MB.")
            for member in members:
                name = member.filename.removesuffix(".npy")
                arrays[name] = _array(archive.read(member), f"{path}: {name}")
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, *_DAMAGED) as error:
        raise UserError(
            f"{path}: not a readable .npz file ({error!s:.80}); copy it again."
        ) from error
    except OSError as error:
        raise disk_error(path, error) from error
    return arrays


def _array(raw: bytes, where: str) -> np.ndarray:
    """An .npy image in memory; its declared size is compared with its real one first."""
    stream = io.BytesIO(raw)
    try:
        shape, dtype = _header(stream)
    except _DAMAGED as error:
        raise UserError(f"{where}: not a readable NumPy array; copy the file again.") from error
    if dtype.hasobject:
        raise UserError(
            f"{where}: holds pickled Python objects, which are never run; save numbers."
        )
    if dtype.kind not in "fiub":
        raise UserError(f"{where}: expected an array of numbers, got {dtype}.")
    if math.prod(shape) * dtype.itemsize > len(raw) - stream.tell():
        raise UserError(
            f"{where}: declares the shape {shape} but the file is too short; copy it again."
        )
    stream.seek(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            array = np.load(stream, allow_pickle=False)
    except _DAMAGED as error:
        raise UserError(f"{where}: not a readable NumPy array ({error!s:.80}).") from error
    if not np.isfinite(array).all():
        raise UserError(f"{where}: holds values that are not finite numbers.")
    return array.astype(np.float64)


def _header(stream: io.BytesIO) -> tuple[tuple[int, ...], Any]:
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        read = np.lib.format.read_array_header_1_0
    elif version == (2, 0):
        read = np.lib.format.read_array_header_2_0
    else:
        raise ValueError(f"format version {version}")
    with warnings.catch_warnings():
        # A damaged header makes NumPy guess at Python 2 and say so; our sentence is enough.
        warnings.simplefilter("ignore")
        shape, _, dtype = read(stream)
    if any(not isinstance(size, int) or size < 0 for size in shape):
        raise ValueError(f"shape {shape}")
    return shape, dtype

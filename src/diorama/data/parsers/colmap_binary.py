# SPDX-License-Identifier: Apache-2.0
"""COLMAP's .bin files, in which no declared count is believed before the bytes are there."""

import mmap
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from diorama.cameras import COLMAP_MODELS, from_colmap
from diorama.data.draft import Lens
from diorama.data.parsers.colmap_model import ColmapImage, ColmapPoints
from diorama.data.paths import check_file, disk_error
from diorama.errors import UserError

MAX_BYTES = 64 * 2**30
MAX_NAME = 4096
_NUM_PARAMETERS = {entry.number: len(entry.parameters) for entry in COLMAP_MODELS.values()}
_KEYPOINT = np.dtype([("xy", "<f8", 2), ("point", "<i8")])


class _Reader:
    """A cursor over mapped bytes that refuses to run over the end."""

    def __init__(self, data: mmap.mmap, path: Path):
        self.data, self.path, self.at = data, path, 0

    def take(self, layout: struct.Struct) -> tuple:
        start = self.skip(layout.size)
        return layout.unpack_from(self.data, start)

    def skip(self, size: int) -> int:
        """Move on by `size` bytes and return where they begin."""
        start = self.at
        if size < 0 or size > len(self.data) - start:
            raise UserError(f"{self.path}: ends too early (truncated or corrupt); copy it again.")
        self.at += size
        return start

    def count(self, smallest: int) -> int:
        """A declared number of records that the rest of the file has room for."""
        (count,) = self.take(_COUNT)
        if count * smallest > len(self.data) - self.at:
            raise UserError(
                f"{self.path}: declares {count} records but the file is too short for them"
                " (truncated or corrupt); copy it again."
            )
        return count

    def name(self) -> str:
        end = self.data.find(b"\0", self.at, self.at + MAX_NAME)
        if end < 0:
            raise UserError(f"{self.path}: an image name does not end; the file is corrupt.")
        raw = self.data[self.at : end]
        self.at = end + 1
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise UserError(
                f"{self.path}: an image name is not UTF-8; the file is corrupt."
            ) from error


_COUNT = struct.Struct("<Q")
_CAMERA = struct.Struct("<IiQQ")
_IMAGE = struct.Struct("<I7dI")
_POINT = struct.Struct("<Q3d3BdQ")


def count_images(path: Path) -> int:
    """The number of registered images that images.bin declares."""
    with _opened(path) as reader:
        return reader.count(_IMAGE.size + 9)


def read_cameras(path: Path) -> dict[int, Lens]:
    """Every camera's lens by its id."""
    lenses = {}
    with _opened(path) as reader:
        for _ in range(reader.count(_CAMERA.size)):
            number, model, width, height = reader.take(_CAMERA)
            if model not in _NUM_PARAMETERS:
                raise UserError(f"{path}: camera {number} has the unknown model {model}.")
            params = reader.take(struct.Struct(f"<{_NUM_PARAMETERS[model]}d"))
            lenses[number] = lens_of(model, params, width, height, f"{path}: camera {number}")
    return lenses


def lens_of(model: str | int, params: tuple, width: int, height: int, where: str) -> Lens:
    """Our lens for a COLMAP camera."""
    kind, (fx, fy, cx, cy), distortion = from_colmap(model, params, where)
    if width < 1 or height < 1:
        raise UserError(f"{where}: a camera of {width} x {height} pixels cannot be.")
    return Lens(kind, float(width), float(height), fx, fy, cx=cx, cy=cy, distortion=distortion)


def read_images(path: Path) -> list[ColmapImage]:
    """Every registered image with its keypoints."""
    images = []
    with _opened(path) as reader:
        for _ in range(reader.count(_IMAGE.size + 9)):
            number, qw, qx, qy, qz, tx, ty, tz, camera = reader.take(_IMAGE)
            name = reader.name()
            num_keypoints = reader.count(_KEYPOINT.itemsize)
            start = reader.skip(num_keypoints * _KEYPOINT.itemsize)
            # Copied, because the mapping is closed when we leave.
            rows = np.frombuffer(reader.data, _KEYPOINT, num_keypoints, start).copy()
            images.append(
                ColmapImage(
                    number, name, (qw, qx, qy, qz), (tx, ty, tz), camera, rows["xy"], rows["point"]
                )
            )
    return images


def read_points(path: Path) -> ColmapPoints:
    """The sparse points; their tracks are skipped."""
    ids, xyz, rgb = [], [], []
    with _opened(path) as reader:
        for _ in range(reader.count(_POINT.size)):
            number, x, y, z, red, green, blue, _, track = reader.take(_POINT)
            reader.skip(track * 8)
            ids.append(number)
            xyz.append((x, y, z))
            rgb.append((red, green, blue))
    return ColmapPoints.of([min(i, 2**63 - 1) for i in ids], xyz, rgb)


@contextmanager
def _opened(path: Path) -> Iterator[_Reader]:
    if check_file(path, MAX_BYTES) < 8:
        raise UserError(f"{path}: ends too early (truncated or corrupt); copy it again.")
    try:
        file = path.open("rb")
    except OSError as error:
        raise disk_error(path, error) from error
    with file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        yield _Reader(data, path)

# SPDX-License-Identifier: Apache-2.0
"""COLMAP's .txt files."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import numpy as np

from diorama.data.draft import Lens
from diorama.data.parsers.colmap_binary import lens_of
from diorama.data.parsers.colmap_model import ColmapImage, ColmapPoints
from diorama.data.paths import check_file, disk_error
from diorama.errors import UserError

MAX_BYTES = 64 * 2**30
MAX_LINE = 64 * 2**20
T = TypeVar("T")


def count_images(path: Path) -> int:
    """The number of registered images in images.txt."""
    return sum(1 for _ in _image_lines(path))


def read_cameras(path: Path) -> dict[int, Lens]:
    """Every camera's lens by its id: `id MODEL width height params...`."""

    def read(words: list[str], where: str) -> tuple[int, Lens]:
        params = tuple(float(word) for word in words[4:])
        return int(words[0]), lens_of(words[1], params, int(words[2]), int(words[3]), where)

    return dict(_parsed(path, read_lines(path), read))


def read_images(path: Path) -> list[ColmapImage]:
    """Every registered image: two lines, the second with `x y point_id` triples or empty."""

    def read(pair: tuple[str, str], where: str) -> ColmapImage:
        words = pair[0].split(maxsplit=9)
        qw, qx, qy, qz, tx, ty, tz = (float(word) for word in words[1:8])
        rows = np.array(pair[1].split(), dtype=np.float64).reshape(-1, 3)
        return ColmapImage(
            int(words[0]), words[9].strip(), (qw, qx, qy, qz), (tx, ty, tz), int(words[8]),
            rows[:, :2], rows[:, 2].astype(np.int64),
        )  # fmt: skip

    return list(_parsed(path, _image_lines(path), read))


def read_points(path: Path) -> ColmapPoints:
    """The sparse points: `id x y z r g b error track...`."""

    def read(words: list[str], where: str) -> tuple[int, tuple[float, ...], tuple[int, ...]]:
        del where
        colour = tuple(min(max(int(word), 0), 255) for word in words[4:7])
        x, y, z = (float(word) for word in words[1:4])
        return int(words[0]), (x, y, z), (*colour, 0, 0, 0)[:3]

    rows = list(_parsed(path, read_lines(path), read))
    return ColmapPoints.of([r[0] for r in rows], [r[1] for r in rows], [r[2] for r in rows])


def _parsed(path: Path, lines: Iterator[tuple[int, object]], read: Callable[..., T]) -> Iterator[T]:
    """Each line read, with its number in the message when it is wrong."""
    for number, line in lines:
        where = f"{path}: line {number}"
        try:
            yield read(line.split() if isinstance(line, str) else line, where)
        except (ValueError, IndexError, OverflowError) as error:
            raise UserError(f"{where} is not what COLMAP writes ({error!s:.80}).") from error


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Lines with content, numbered from 1."""
    return ((n, line) for n, line in _all_lines(path) if line)


def _image_lines(path: Path) -> Iterator[tuple[int, tuple[str, str]]]:
    """Pairs of lines: an image's own and that of its keypoints, which may be empty."""
    lines = _all_lines(path)
    for number, line in lines:
        if line:
            yield number, (line, next(lines, (0, ""))[1])


def _all_lines(path: Path) -> Iterator[tuple[int, str]]:
    check_file(path, MAX_BYTES)
    try:
        with path.open(encoding="utf-8") as file:
            number = 0
            while line := file.readline(MAX_LINE):
                number += 1
                if len(line) >= MAX_LINE:
                    raise UserError(f"{path}: line {number} is too long; the file is corrupt.")
                if not line.startswith("#"):
                    yield number, line.strip()
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text; the file is corrupt.") from error
    except OSError as error:
        raise disk_error(path, error) from error

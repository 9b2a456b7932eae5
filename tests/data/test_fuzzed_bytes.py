# SPDX-License-Identifier: Apache-2.0
"""Files with a few wrong bytes are read or refused by UserError; nothing else ever comes out."""

from pathlib import Path

import numpy as np
import pytest

from diorama.config.data import DataConfig
from diorama.data.load import load_scene
from diorama.errors import UserError
from tests.data import tiny_sets as tiny

FILES = {
    "images.bin": (tiny.write_colmap_binary, "sparse/0/images.bin"),
    "cameras.bin": (tiny.write_colmap_binary, "sparse/0/cameras.bin"),
    "points3D.bin": (tiny.write_colmap_binary, "sparse/0/points3D.bin"),
    "images.txt": (tiny.write_colmap_text, "colmap/sparse/0/images.txt"),
    "transforms.json": (tiny.write_transforms, "transforms.json"),
    "cameras_sphere.npz": (tiny.write_neus, "cameras_sphere.npz"),
    "poses_bounds.npy": (tiny.write_llff, "poses_bounds.npy"),
}


def damaged(raw: bytes, rng: np.random.Generator) -> bytes:
    """A few bytes flipped or set to extremes, near the front more often, or the end cut off."""
    data = bytearray(raw)
    for _ in range(rng.integers(1, 5)):
        reach = len(data) if rng.random() < 0.5 else min(len(data), 200)
        at = int(rng.integers(reach))
        width = int(rng.choice([1, 1, 4, 8]))
        fill = [rng.bytes(width), b"\xff" * width, b"\0" * width][rng.integers(3)]
        data[at : at + width] = fill
    return bytes(data[: int(rng.integers(len(data)))]) if rng.random() < 0.2 else bytes(data)


@pytest.mark.parametrize("name", FILES)
def test_damaged_files_never_crash_the_parser(tmp_path, name):
    write, where = FILES[name]
    write(tmp_path, tiny.rig(4) if name != "images.txt" else tiny.rig(3))
    path: Path = tmp_path / where
    good = path.read_bytes()
    rng = np.random.default_rng(sum(name.encode()))
    refused = 0
    for _ in range(30):
        path.write_bytes(damaged(good, rng))
        try:
            load_scene(DataConfig(path=tmp_path))
        except UserError:
            refused += 1
    assert refused > 5

# SPDX-License-Identifier: Apache-2.0
"""Files with a few wrong bytes are read or refused by UserError; nothing else ever comes out."""

import copy
import json
import random
from pathlib import Path
from typing import Any

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
    "train.json": (tiny.write_taichi, "train.json"),
    "point_cloud.parquet": (tiny.write_taichi, "point_cloud.parquet"),
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
    for i in range(40):
        path.write_bytes(damaged(good, rng))
        try:
            load_scene(DataConfig(path=tmp_path, adjust_cameras=i % 2 == 1))
        except UserError:
            refused += 1
    assert refused > 5


STRANGE = [
    None, "", "x", "../x", "images/001.png", -1, 0, 2, 0.5, 1e-320, 1e7, 1e308, -1e308, 10**30,
    True, False, [], {}, [[1]], [1, 2, 3], [None] * 4, {"a": 1},
]  # fmt: skip
RICH = {
    "camera_model": "OPENCV", "k1": 0.01, "p1": 0.0, "aabb_scale": 4, "applied_scale": 1.0,
    "applied_transform": [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]], "orientation_override": "up",
    "sphere_center": [0, 0, 0], "sphere_radius": 1.0, "aabb_range": [[0, 1]] * 3,
    "is_fisheye": False, "camera_angle_x": 0.7, "distortion_params": [0, 0, 0, 0, 0, 0],
    "train_filenames": ["images/000.png"], "test_filenames": ["images/002.png"],
    "depth_unit_scale_factor": 0.001,
}  # fmt: skip


def with_strange_value(data: Any, chance: random.Random) -> Any:
    """A deep copy in which one value, somewhere, is removed or strange."""
    node = data = copy.deepcopy(data)
    while True:
        key = chance.choice(list(node) if isinstance(node, dict) else range(len(node)))
        if isinstance(node[key], (dict, list)) and node[key] and chance.random() < 0.7:
            node = node[key]
            continue
        if chance.random() < 0.15:
            del node[key]
        else:
            node[key] = chance.choice(STRANGE)
        return data


def test_strange_values_anywhere_in_transforms_json(tmp_path):
    tiny.write_transforms(tmp_path, tiny.rig(4), **RICH)
    path = tmp_path / "transforms.json"
    good, chance = json.loads(path.read_text()), random.Random(0)
    works = 0
    for _ in range(150):
        tiny.write_json(path, with_strange_value(good, chance))
        try:
            scene = load_scene(DataConfig(path=tmp_path))
        except UserError:
            continue
        works += 1
        assert bool(scene.cameras.world_from_camera.isfinite().all())
        assert bool(scene.cameras.intrinsics.isfinite().all())
        assert 0 < scene.bounds.near < scene.bounds.far < 1e9
    assert works > 10

# SPDX-License-Identifier: Apache-2.0
"""The taichi system's data sets: whose split counts, which points are read, what is noted."""

from pathlib import Path

import numpy as np
import torch

from diorama.config.data import DataConfig
from diorama.data.load import load_scene
from diorama.data.scene import Scene
from tests.data import tiny_sets as tiny


def load(path: Path, **options) -> Scene:
    return load_scene(DataConfig(path=path, **options))


def names(scene: Scene, split: str) -> list[str]:
    return [scene.frames[i].name for i in scene.splits[split]]


def test_the_val_file_is_held_out(tmp_path):
    tiny.write_taichi(tmp_path, tiny.rig())
    scene = load(tmp_path)
    assert names(scene, "train") == [f"images/{i:03d}.png" for i in range(7)]
    assert names(scene, "val") == names(scene, "test") == [f"images/{i:03d}.png" for i in (7, 8, 9)]
    assert scene.notes[0] == "Data of the taichi Gaussian-splatting system: train.json."


def test_a_file_may_be_named_and_finds_its_val_file(tmp_path):
    tiny.write_taichi(tmp_path, tiny.rig())
    (tmp_path / "train.json").rename(tmp_path / "truck_train.json")
    (tmp_path / "val.json").rename(tmp_path / "truck_val.json")
    for path in (tmp_path, tmp_path / "truck_train.json"):
        scene = load(path)
        assert [len(scene.splits[split]) for split in ("train", "val")] == [7, 3]
    assert not any("could also be read" in note for note in scene.notes)


def test_one_list_alone_is_split_by_rule(tmp_path):
    tiny.write_taichi(tmp_path, tiny.rig(), val=0)
    (tmp_path / "val.json").unlink()
    assert load(tmp_path).splits["test"] == (0, 8)


def test_points_come_from_the_parquet_beside_it(tmp_path):
    known = tiny.rig()
    tiny.write_taichi(tmp_path, known)
    tiny.write_parquet(tmp_path / "scene_7000.parquet", np.ones((3, 3)))
    points = load(tmp_path, normalize="none").points
    assert points is not None
    torch.testing.assert_close(points.xyz, torch.from_numpy(known.points).float())
    assert points.rgb.unique(dim=0).tolist() == [[10, 20, 30]]


def test_of_several_tables_none_is_guessed(tmp_path):
    tiny.write_taichi(tmp_path, tiny.rig())
    (tmp_path / "point_cloud.parquet").rename(tmp_path / "a.parquet")
    assert load(tmp_path).points is not None
    tiny.write_parquet(tmp_path / "b.parquet", np.ones((3, 3)))
    scene = load(tmp_path)
    assert scene.points is None
    assert any("2 .parquet files" in note for note in scene.notes)


def test_points_that_are_absurdly_far_are_left_out(tmp_path):
    tiny.write_taichi(tmp_path, tiny.rig())
    points = np.array([[0.0, 0, 0], [1e20, 0, 0], [1, 1, 1]])
    tiny.write_parquet(tmp_path / "point_cloud.parquet", points, r=[5.0, 1.0, 300.0])
    cloud = load(tmp_path, normalize="none").points
    assert cloud is not None
    assert cloud.xyz.tolist() == [[0, 0, 0], [1, 1, 1]]
    assert cloud.rgb.tolist() == [[5, 20, 30], [255, 20, 30]]

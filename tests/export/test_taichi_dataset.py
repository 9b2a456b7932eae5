# SPDX-License-Identifier: Apache-2.0
"""A scene written for the taichi system is the same scene when it is read again."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from diorama.config.data import DataConfig
from diorama.data.image_store import load_rgba
from diorama.data.load import load_scene
from diorama.errors import UserError
from diorama.export.taichi_dataset import write_taichi_dataset
from tests.data import tiny_sets as tiny
from tests.data.test_parsers import projected


def test_the_same_scene_comes_back(tmp_path):
    known = tiny.rig()
    tiny.write_colmap_binary(tmp_path / "in", known)
    scene = load_scene(DataConfig(path=tmp_path / "in"))
    written = write_taichi_dataset(scene, tmp_path / "out")
    assert [path.name for path in written] == ["train.json", "val.json", "point_cloud.parquet"]
    again = load_scene(DataConfig(path=tmp_path / "out"))
    assert again.format == "taichi"
    assert again.splits["test"] == scene.splits["test"]
    assert again.splits["train"] == scene.splits["train"]
    assert np.abs(projected(again, known.points) - projected(scene, known.points)).max() < 2e-3
    assert scene.points is not None and again.points is not None
    for one in (scene, again):
        assert one.points is not None
        user = one.scene_from_user.inverse().apply(one.points.xyz)
        torch.testing.assert_close(user, torch.from_numpy(known.points).float())
    assert torch.equal(again.points.rgb, scene.points.rgb)
    for index in range(len(scene.frames)):
        assert torch.equal(load_rgba(scene, index), load_rgba(again, index))


def test_records_are_in_the_users_coordinates(tmp_path):
    known = tiny.rig()
    tiny.write_transforms(tmp_path / "in", known)
    scene = load_scene(DataConfig(path=tmp_path / "in", split="all"))
    train, _ = write_taichi_dataset(scene, tmp_path / "out")
    first = json.loads(train.read_text())[0]
    pose = np.array(first["T_pointcloud_camera"])
    np.testing.assert_allclose(pose[:3], known.poses[0], atol=1e-5)
    expected = [[tiny.FOCAL, 0, tiny.CX], [0, tiny.FOCAL, tiny.CY], [0, 0, 1]]
    np.testing.assert_allclose(first["camera_intrinsics"], expected, rtol=1e-6)
    assert (first["camera_width"], first["camera_height"]) == (tiny.WIDTH, tiny.HEIGHT)
    assert first["image_path"] == "images/000.png"


def test_distorted_and_reduced_images_fit_their_matrix(tmp_path):
    known = tiny.rig()
    tiny.write_transforms(tmp_path / "in", known, k1=0.1)
    scene = load_scene(DataConfig(path=tmp_path / "in", downscale=2.0))
    write_taichi_dataset(scene, tmp_path / "out")
    again = load_scene(DataConfig(path=tmp_path / "out"))
    assert again.cameras.size.unique(dim=0).tolist() == [[tiny.WIDTH // 2, tiny.HEIGHT // 2]]
    assert not bool(again.cameras.distortion.any())
    # A pinhole of the same pose sees the optical axis where its principal point is.
    forward = again.cameras.world_from_camera[0] @ torch.tensor([0.0, 0.0, 1.0, 1.0])
    pixel = again.cameras[0].project(forward[None])[0].flatten()
    torch.testing.assert_close(pixel, again.cameras.intrinsics[0, 2:])


def test_what_cannot_be_written_is_refused(tmp_path):
    tiny.write_transforms(tmp_path / "in", tiny.rig(4))
    scene = load_scene(DataConfig(path=tmp_path / "in"))
    with pytest.raises(UserError, match="in: it is not empty; name a new folder"):
        write_taichi_dataset(scene, tmp_path / "in")
    with pytest.raises(ValueError, match="has no images"):
        write_taichi_dataset(replace(scene, has_files=False), tmp_path / "out")

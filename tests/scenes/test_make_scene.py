# SPDX-License-Identifier: Apache-2.0
"""Data sets on disk: readable, reproducible, cached, never half there."""

import json
import math
import multiprocessing
import os
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from diorama.cameras import Cameras, flip_yz
from diorama.errors import UserError
from diorama.scenes import SCENES, load_procedural, make_scene
from diorama.scenes.dataset import split_cameras

SMALL = {"size": 24, "num_train": 3, "num_val": 1, "num_test": 2}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def files_of(folder: Path) -> dict[str, bytes]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def read_cameras(folder: Path, split: str) -> Cameras:
    """What any reader of the format does."""
    meta = json.loads((folder / f"transforms_{split}.json").read_text())
    poses = torch.tensor([frame["transform_matrix"] for frame in meta["frames"]])
    width, height = Image.open(folder / (meta["frames"][0]["file_path"] + ".png")).size
    focal = 0.5 * width / math.tan(0.5 * meta["camera_angle_x"])
    return Cameras.pinhole(
        flip_yz(poses)[:, :3], focal, focal, width / 2, height / 2, width, height
    )


@pytest.mark.parametrize("name", SCENES)
def test_images_and_cameras_read_back_as_rendered(name):
    folder = make_scene(name, **SMALL)
    splits = {"train": 3, "val": 1, "test": 2}
    cameras = {split: read_cameras(folder, split) for split in splits}
    for split, count in splits.items():
        expected = split_cameras(split, count, 24)
        assert torch.equal(cameras[split].world_from_camera, expected.world_from_camera)
        assert torch.equal(cameras[split].intrinsics, expected.intrinsics)
    firsts = Cameras.cat([cameras[split][0] for split in splits])
    for split, rendered in zip(splits, load_procedural(name).render_rgba(firsts), strict=True):
        image = np.array(Image.open(folder / split / "r_0.png"))
        assert image.shape == (24, 24, 4)
        assert not image[[0, -1], :, 3].any(), "the scene is cut off above or below"
        assert not image[:, [0, -1], 3].any(), "the scene is cut off at the sides"
        np.testing.assert_allclose(image, rendered.numpy() * 255, atol=0.51)


def test_cameras_stand_above_the_table_and_near_far_enclose_the_scene():
    for split in ("train", "val", "test"):
        cameras = split_cameras(split, 20, 32)
        centers = cameras.world_from_camera[:, :, 3]
        assert float(centers[:, 2].min()) > 0.2
        torch.testing.assert_close(centers.norm(dim=-1), torch.full((20,), 4.0311289))
        _, z, is_valid = cameras.project(torch.zeros(20, 1, 3))
        assert bool(is_valid.all())
        assert float((z - 4.0311289).abs().max()) < 1e-4


def test_same_bytes_on_any_number_of_threads(tmp_path):
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        first = make_scene("spheres", tmp_path / "one", size=24, num_train=20)
        torch.set_num_threads(2)
        second = make_scene("spheres", tmp_path / "two", size=24, num_train=20)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert files_of(first) == files_of(second)


def test_second_call_is_instant_and_in_the_cache(cache):
    folder = make_scene("spheres", **SMALL)
    assert folder.parent.parent == cache / "diorama" / "scenes"
    started = time.perf_counter()
    assert make_scene("spheres", **SMALL) == folder
    assert time.perf_counter() - started < 0.2
    assert make_scene("spheres", **{**SMALL, "num_test": 1}) != folder


@pytest.mark.parametrize("damage", ["missing image", "truncated image", "no manifest", "bad json"])
def test_damaged_cache_is_made_again(damage):
    folder = make_scene("spheres", **SMALL)
    intact = files_of(folder)
    image = folder / "train" / "r_1.png"
    if damage == "missing image":
        image.unlink()
    elif damage == "truncated image":
        image.write_bytes(image.read_bytes()[:100])
    elif damage == "no manifest":
        (folder / "diorama_scene.json").unlink()
    else:
        (folder / "diorama_scene.json").write_text("{")
    assert files_of(make_scene("spheres", **SMALL)) == intact
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_interruption_leaves_nothing(cache, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("diorama.scenes.dataset.save_png", interrupted)
    with pytest.raises(KeyboardInterrupt):
        make_scene("spheres", **SMALL)
    assert [path for path in cache.rglob("*") if path.is_file()] == []


def _make(_: int) -> str:
    return str(make_scene("spheres", **SMALL))


def test_two_processes_at_once_get_one_complete_folder():
    # Spawned, not forked: torch's threads do not survive a fork.
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        first, second = pool.map(_make, range(2), chunksize=1)
    assert first == second
    assert make_scene("spheres", **SMALL) == Path(first)
    assert [path.name for path in Path(first).parent.iterdir()] == [Path(first).name]


def test_a_folder_with_other_things_in_it_is_left_alone(tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.txt").write_text("mine")
    with pytest.raises(UserError, match="precious exists and is not a scene made by Diorama"):
        make_scene("spheres", tmp_path / "precious", **SMALL)
    assert (tmp_path / "precious" / "thesis.txt").read_text() == "mine"


def test_unwritable_cache_gets_a_sentence(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(UserError, match=r"could not be written .*XDG_CACHE_HOME"):
        make_scene("spheres", **SMALL)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_cache_gets_a_sentence(cache):
    cache.mkdir(mode=0o500)
    with pytest.raises(UserError, match="Permission denied"):
        make_scene("spheres", **SMALL)


def test_bad_requests_are_named():
    with pytest.raises(
        UserError, match="no procedural scene 'lego'; choose from tabletop, spheres"
    ):
        make_scene("lego")
    with pytest.raises(ValueError, match="size must be between 8 and 4096, got 4"):
        make_scene("spheres", size=4)

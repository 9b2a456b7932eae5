# SPDX-License-Identifier: Apache-2.0
"""`diorama inspect`: the report, the picture, the suspicions and the refusals."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from diorama.cli.inspect import main
from diorama.data.scene import PointCloud, Scene
from diorama.data.survey import choose_images, evenly, survey
from diorama.data.suspicions import suspicions
from diorama.errors import UserError
from tests.data.made_scene import made_scene, with_masks

SHARED = Path(__file__).parents[3] / "shared" / "data"


def blender_folder(folder: Path, num_train: int = 12, num_test: int = 2) -> Path:
    """A ring of cameras around noise, in Blender's format."""
    rng = np.random.default_rng(0)
    for split, count in (("train", num_train), ("test", num_test)):
        frames = []
        (folder / split).mkdir(parents=True)
        for i in range(count):
            angle = 2 * math.pi * i / count + (0.1 if split == "test" else 0)
            c, s = math.cos(angle), math.sin(angle)
            pose = [[-s, 0, c, 4 * c], [c, 0, s, 4 * s], [0, 1, 0, 0], [0, 0, 0, 1]]
            noise = rng.integers(60, 200, (20, 24, 4)).astype(np.uint8)
            noise[:5, :, 3] = 0
            Image.fromarray(noise).save(folder / split / f"r_{i}.png")
            frames.append({"file_path": f"./{split}/r_{i}", "transform_matrix": pose})
        content = {"camera_angle_x": 0.7, "frames": frames}
        (folder / f"transforms_{split}.json").write_text(json.dumps(content))
    return folder


def test_the_report_says_what_is_there(tmp_path, capsys):
    folder = blender_folder(tmp_path / "a [set]")
    picture = tmp_path / "out" / "look.png"
    main([str(folder), "--output", str(picture)])
    told = capsys.readouterr().out
    for word in (
        "a [set]",
        "blender",
        "12 train",
        "2 test",
        "24 x 20",
        "40.1°",
        "near 2",
        str(picture),
    ):
        assert word in told
    assert "Nothing looks suspicious." in told
    with Image.open(picture) as image:
        assert image.width == 1600
        assert len(np.unique(np.asarray(image).reshape(-1, 3), axis=0)) > 100


def test_flags_of_the_data_config_apply_in_any_order(tmp_path, capsys, monkeypatch):
    folder = blender_folder(tmp_path / "set")
    monkeypatch.chdir(tmp_path)
    main(["--data.downscale", "2", "--data.format", "blender", str(folder)])
    assert "12 x 10 (on disk 24 x 20)" in capsys.readouterr().out
    assert (tmp_path / "inspect-set.png").is_file()
    main(["--data", str(folder), "--full"])
    assert "all were decoded" in capsys.readouterr().out


def test_a_truncated_image_is_found(tmp_path):
    folder = blender_folder(tmp_path / "set")
    path = folder / "train" / "r_7.png"
    path.write_bytes(path.read_bytes()[:600])
    with pytest.raises(UserError, match=r"r_7\.png: the image is truncated or corrupt"):
        main([str(folder), "--output", str(tmp_path / "out.png")])
    assert not (tmp_path / "out.png").exists()


def test_what_cannot_be_inspected_is_named(tmp_path):
    with pytest.raises(UserError, match="inspect what"):
        main([])
    with pytest.raises(UserError, match="no such folder"):
        main([str(tmp_path / "none")])
    with pytest.raises(UserError, match="no procedural scene 'none'"):
        main(["scene:none"])
    folder = blender_folder(tmp_path / "set")
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        main([str(folder), "--output", str(tmp_path / "file" / "out.png")])


def told_about(scene: Scene) -> str:
    return " ".join(suspicions(scene, list(survey(scene, choose_images(scene)))))


@pytest.fixture
def calm(tmp_path) -> Scene:
    """Fourteen cameras in a ring, about which there is nothing to say."""
    return made_scene(tmp_path, [(20, 16)] * 14, num_test=2)


def test_a_calm_scene_raises_no_suspicion(calm):
    assert told_about(calm) == ""


def _with(scene: Scene, **changes) -> Scene:
    return replace(scene, cameras=replace(scene.cameras, **changes))


def test_odd_placements_are_noticed(calm):
    poses = calm.cameras.world_from_camera
    together = poses.clone()
    together[:, :, 3] = poses[0, :, 3]
    assert "in one place" in told_about(_with(calm, world_from_camera=together))
    outward = poses.clone()
    outward[:, :, [0, 2]] *= -1
    told = told_about(_with(calm, world_from_camera=outward))
    assert "look away from each other" in told
    assert "14 of 14 cameras look away" in told
    upside_down = poses.clone()
    upside_down[:, :, :2] *= -1
    assert "180° from +z" in told_about(_with(calm, world_from_camera=upside_down))
    bounds = replace(calm.bounds, radius=5.0)
    assert "14 cameras stand inside" in told_about(replace(calm, bounds=bounds))


def test_odd_lenses_are_noticed(calm):
    lens = calm.cameras.intrinsics
    shifted = lens + torch.tensor([0.0, 0, 5, 0])
    assert "principal point of 14 images" in told_about(_with(calm, intrinsics=shifted))
    stretched = lens * torch.tensor([2.0, 1, 1, 1])
    assert "fx and fy differ by 100%" in told_about(_with(calm, intrinsics=stretched))
    wide = lens * torch.tensor([0.1, 0.1, 1, 1])
    assert "are extreme" in told_about(_with(calm, intrinsics=wide))
    bent = torch.zeros(14, 9)
    bent[:, 0] = -3.0
    assert "does not reach their corners" in told_about(_with(calm, distortion=bent))


def test_odd_pictures_are_noticed(calm, tmp_path):
    Image.new("RGBA", (20, 16), (9, 9, 9, 255)).save(calm.frames[3].image_path)
    assert "003.png is one colour only." in told_about(calm)
    masks: list = [np.full((16, 20), 255, np.uint8)] * 14
    assert "keep every pixel" in told_about(with_masks(calm, masks, is_alpha=False))
    masks[5] = np.zeros((16, 20), np.uint8)
    assert "005.png is masked out" in told_about(with_masks(calm, masks, is_alpha=False))
    calm.frames[13].image_path.write_bytes(calm.frames[2].image_path.read_bytes())
    assert "013.png equals 002.png" in told_about(calm)
    (tmp_path / "opaque").mkdir()
    opaque = replace(made_scene(tmp_path / "opaque", [(20, 16)] * 12, alpha=False), has_alpha=True)
    assert "opaque everywhere" in told_about(opaque)
    for i in range(6):
        path = opaque.frames[i].image_path
        Image.fromarray(np.asarray(Image.open(path)) // 2 + 120).save(path)
    assert "exposure" in told_about(opaque)


def test_odd_collections_are_noticed(tmp_path):
    few = made_scene(tmp_path, [(20, 16)] * 4 + [(10, 8)], num_test=0)
    told = told_about(few)
    assert "5 training images are very few" in told
    assert "No image is held out" in told
    assert "2 different sizes" in told
    rgb = torch.zeros(500, 3, dtype=torch.uint8)
    behind = PointCloud(torch.rand(500, 3) + torch.tensor([0.0, 0.0, 500.0]), rgb)
    assert "poses and points disagree" in told_about(replace(few, points=behind))
    seen = PointCloud(torch.rand(500, 3) - 0.5, rgb)
    assert "disagree" not in told_about(replace(few, points=seen))


def test_large_sets_are_sampled_evenly(calm):
    large = [replace(frame, raw_size=(20_000, 15_000)) for frame in calm.frames] * 8
    scene = replace(calm, frames=tuple(large))
    chosen = choose_images(scene)
    assert chosen == evenly(112, 24)
    assert (chosen[0], chosen[-1]) == (0, 111)
    assert choose_images(scene, is_full=True) == list(range(112))
    assert evenly(5, 1) == [0]


@pytest.mark.parametrize("name", ["fern", "dtu_scan65"])
def test_real_data(name, tmp_path, capsys):
    if not (SHARED / name).is_dir():
        pytest.skip(f"{name} is not among the shared data")
    main([str(SHARED / name), "--output", str(tmp_path / "look.png"), "--data.downscale", "4"])
    assert "are intact" in capsys.readouterr().out
    assert (tmp_path / "look.png").stat().st_size > 50_000

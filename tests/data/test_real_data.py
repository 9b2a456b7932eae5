# SPDX-License-Identifier: Apache-2.0
"""Real data sets, where they lie beside the repository: counts, conventions and reprojection."""

from pathlib import Path

import numpy as np
import pytest
import torch

from diorama.cameras import CameraModel
from diorama.config.data import DataConfig
from diorama.data.images import read_mask
from diorama.data.load import load_scene
from diorama.data.parsers.colmap import read_model

DATA = Path(__file__).resolve().parents[2] / ".." / "shared" / "data"


def load(name: str, **options):
    if not (DATA / name).is_dir():
        pytest.skip(f"no {name} in ../shared/data")
    return load_scene(DataConfig(path=DATA / name, **options))


@pytest.mark.parametrize("name", ["lego400", "chair400"])
def test_nerf_synthetic(name):
    scene = load(name)
    assert {k: len(v) for k, v in scene.splits.items()} == {"train": 100, "val": 25, "test": 25}
    assert scene.cameras.intrinsics[0].tolist() == pytest.approx([555.5555, 555.5555, 200, 200])
    distance = scene.cameras.world_from_camera[:, :, 3].norm(dim=-1)
    assert float(distance.min()) > 4.0
    assert float(distance.max()) < 4.1
    assert scene.has_alpha
    assert (scene.bounds.near, scene.bounds.far) == (2.0, 6.0)


def test_fox_has_fifty_of_its_images():
    scene = load("fox")
    assert len(scene.frames) == 50
    assert scene.kind == "unbounded"
    assert "17 of 67 listed images do not exist and were skipped." in scene.notes
    assert scene.cameras.size[0].tolist() == [1080, 1920]
    assert int(scene.cameras.model[0]) == int(CameraModel.PERSPECTIVE)
    assert scene.cameras.distortion[0, :6].tolist() == pytest.approx(
        [0.0578421, -0.0805099, 0, 0, -0.000980296, 0.00015575]
    )
    assert scene.frames[0].name == "images/0001.jpg"


def test_fern_is_forward_facing():
    scene = load("fern")
    assert len(scene.frames) == 20
    assert scene.kind == "forward-facing"
    assert scene.splits["test"] == (0, 8, 16)
    assert scene.cameras.intrinsics[0].tolist() == pytest.approx([407.5658, 407.5658, 252, 189])
    assert scene.bounds.near == pytest.approx(1.2)
    mean = scene.cameras.world_from_camera[:, :, 3].mean(0)
    assert float(mean.norm()) < 1e-5
    assert scene.render_path is not None
    assert len(scene.render_path) == 120


def test_cup_points_reproject_onto_their_keypoints():
    """Half a pixel, a flipped axis or a wrong camera would each be seen here."""
    scene = load("cup_colmap")
    assert scene.format == "colmap"
    assert len(scene.frames) == 77
    model = read_model(DATA / "cup_colmap/sparse/0")
    row = {int(point): i for i, point in enumerate(model.points.ids)}
    by_name = {image.name: image for image in model.images}
    offsets = []
    for index, frame in enumerate(scene.frames):
        image = by_name[frame.name]
        seen = image.point_ids >= 0
        rows = [row[int(point)] for point in image.point_ids[seen]]
        xyz = scene.scene_from_user.apply(torch.from_numpy(model.points.xyz[rows])).float()
        pixels, _, is_valid = scene.cameras[index].project(xyz)
        assert bool(is_valid.all())
        offsets.append(pixels.numpy() - image.xy[seen])
    error = np.concatenate(offsets)
    assert np.linalg.norm(error, axis=-1).mean() < 1.0
    assert np.abs(error.mean(0)).max() < 0.05


def test_cup_has_photographs_that_were_cropped():
    """Structure from motion with free principal points found two kinds of lenses, 593 and 577."""
    scene = load("cup_colmap", adjust_cameras=True)
    assert any("The cameras were adjusted" in note for note in scene.notes)
    lens = {frame.name: scene.cameras.intrinsics[i] for i, frame in enumerate(scene.frames)}
    for number in (47, 54, 58, 75, 78, 80):
        fx, _, cx, cy = lens[f"{number}.jpg"].tolist()
        assert 565 < fx < 590
        assert 340 < cx < 372
        assert 290 < cy < 315
    for number in (1, 20, 32, 57, 61, 72):
        fx, _, cx, cy = lens[f"{number}.jpg"].tolist()
        assert 575 < fx < 610
        assert 388 < cx < 410
        assert 285 < cy < 315


def test_cup_is_the_same_through_llff():
    """poses_bounds.npy came from the same reconstruction: focal lengths and geometry must agree."""
    colmap, llff = load("cup_colmap"), load("cup_colmap", format="llff")
    assert llff.kind == colmap.kind == "unbounded"
    by_name = {Path(frame.name).name: i for i, frame in enumerate(colmap.frames)}
    order = [by_name[Path(frame.name).name] for frame in llff.frames]
    a = llff.cameras.world_from_camera[:, :, 3]
    b = colmap.cameras.world_from_camera[order][:, :, 3]
    ratio = torch.pdist(a) / torch.pdist(b)
    assert float(ratio.std() / ratio.mean()) < 1e-3


def test_dtu_masks_contain_what_the_cameras_look_at():
    scene = load("dtu_scan65")
    assert len(scene.frames) == 49
    assert scene.has_alpha
    assert scene.bounds.radius == 1.0
    assert all(frame.mask_path is not None and frame.mask_is_alpha for frame in scene.frames)
    centers = scene.cameras.world_from_camera[:, :, 3]
    assert float(centers.norm(dim=-1).min()) > 2.0
    assert float(centers.norm(dim=-1).max()) < 5.0
    # The unit sphere's centre lies on the object, or close, in every view.
    pixels = scene.cameras.project(torch.zeros(49, 1, 3))[0][:, 0].long()
    hits = 0
    for frame, (x, y) in zip(scene.frames, pixels.tolist(), strict=True):
        assert frame.mask_path is not None
        mask = read_mask(frame.mask_path)
        hits += int(mask[max(y - 20, 0) : y + 20, max(x - 20, 0) : x + 20].max()) > 127
    assert hits == 49

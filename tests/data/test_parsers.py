# SPDX-License-Identifier: Apache-2.0
"""Known points must land on known pixels, whatever format the cameras came in."""

from pathlib import Path

import numpy as np
import pytest
import torch

from diorama.config.data import DataConfig
from diorama.data.load import load_scene
from diorama.data.scene import Scene
from diorama.errors import UserError
from tests.data import tiny_sets as tiny


def load(path: Path, **options) -> Scene:
    return load_scene(DataConfig(path=path, **options))


def projected(scene: Scene, points: np.ndarray) -> np.ndarray:
    """User points through the scene's own similarity and cameras."""
    xyz = scene.scene_from_user.apply(torch.from_numpy(points)).float()
    pixels = scene.cameras.project(xyz.expand(len(scene.cameras), -1, -1))
    assert bool(pixels[2].all())
    return pixels[0].numpy()


WRITERS = {
    "blender": (tiny.write_blender, tiny.WIDTH / 2, tiny.HEIGHT / 2),
    "transforms": (tiny.write_transforms, tiny.CX, tiny.CY),
    "colmap": (tiny.write_colmap_binary, tiny.CX, tiny.CY),
    "colmap text": (tiny.write_colmap_text, tiny.CX, tiny.CY),
    "llff": (tiny.write_llff, tiny.WIDTH / 2, tiny.HEIGHT / 2),
    "deepvoxels": (tiny.write_deepvoxels, tiny.CX, tiny.CY),
    "linemod": (tiny.write_linemod, tiny.CX, tiny.CY),
    "neus": (tiny.write_neus, tiny.CX, tiny.CY),
    "taichi": (tiny.write_taichi, tiny.CX, tiny.CY),
}


@pytest.mark.parametrize("downscale", [1.0, 2.0])
@pytest.mark.parametrize("name", WRITERS)
def test_known_points_land_on_known_pixels(tmp_path, name, downscale):
    write, cx, cy = WRITERS[name]
    known = tiny.rig()
    write(tmp_path, known)
    scene = load(tmp_path, downscale=downscale)
    assert scene.format == name.split()[0]
    order = _written_order(scene, name)
    expected = known.pixels(cx, cy)[order] / downscale
    assert np.abs(projected(scene, known.points) - expected).max() < 2e-3
    assert scene.cameras.size[0].tolist() == [tiny.WIDTH // downscale, tiny.HEIGHT // downscale]
    assert all(frame.raw_size == (tiny.WIDTH, tiny.HEIGHT) for frame in scene.frames)


def _written_order(scene: Scene, name: str) -> list[int]:
    """The rig's camera of each frame."""
    starts = {"train": 0, "test": 7}
    if name == "deepvoxels":
        starts = {"train": 0, "validation": 6, "test": 8}
    order = []
    for frame in scene.frames:
        number = int("".join(filter(str.isdigit, frame.image_path.stem)))
        folder = frame.name.split("/")[0]
        order.append(number + (starts.get(folder, 0)))
    return order


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize(
    "options",
    [{"normalize": "none"}, {"normalize": "cameras"}, {"orientation": "up"}, {"split": "fraction"}],
)
def test_reprojection_does_not_depend_on_the_normalisation(tmp_path, name, options):
    write, cx, cy = WRITERS[name]
    known = tiny.rig()
    write(tmp_path, known)
    scene = load(tmp_path, **options)
    expected = known.pixels(cx, cy)[_written_order(scene, name)]
    assert np.abs(projected(scene, known.points) - expected).max() < 2e-3
    centers = scene.cameras.world_from_camera[:, :, 3]
    if options.get("normalize") == "cameras":
        assert 0.9 < float(centers.abs().max()) <= 1.0001
    bounds = scene.bounds
    assert 0 < bounds.near < bounds.far
    assert bounds.radius > 0


def test_blender_conventions(tmp_path):
    tiny.write_blender(tmp_path, tiny.rig())
    scene = load(tmp_path)
    bounds = scene.bounds
    assert (bounds.near, bounds.far, bounds.aabb_max) == (2.0, 6.0, (1.5, 1.5, 1.5))
    assert scene.background == (1.0, 1.0, 1.0)
    assert scene.has_alpha
    assert scene.kind == "object"
    assert scene.splits["val"] == scene.splits["test"] == (0, 1, 2)
    assert [scene.frames[i].name for i in scene.splits["train"]] == [
        f"train/r_{i}.png" for i in range(7)
    ]
    assert scene.render_path is not None
    assert len(scene.render_path) == 40
    first = scene.render_path.world_from_camera[0, :, 3]
    torch.testing.assert_close(first, torch.tensor([0.0, -3.464102, 2.0]), atol=1e-5, rtol=0)


def test_blender_near_and_far_follow_unusual_cameras(tmp_path):
    tiny.write_blender(tmp_path, tiny.rig(radius=40.0))
    bounds = load(tmp_path).bounds
    assert 10 < bounds.near < 40 < bounds.far < 80


def test_blender_focal_length_belongs_to_its_split(tmp_path):
    tiny.write_blender(tmp_path, tiny.rig())
    tiny.edit_json(tmp_path / "transforms_test.json", lambda d: d.update(camera_angle_x=1.0))
    scene = load(tmp_path)
    focal = {
        frame.name.split("/")[0]: float(f[0])
        for frame, f in zip(scene.frames, scene.cameras.intrinsics, strict=True)
    }
    assert focal["train"] == pytest.approx(tiny.FOCAL)
    assert focal["test"] == pytest.approx(tiny.WIDTH / 2 / np.tan(0.5), rel=1e-6)


def test_test_skip_counts_in_file_order_and_drops_the_rest(tmp_path):
    tiny.write_blender(tmp_path, tiny.rig(20), test=12)
    scene = load(tmp_path, test_skip=4)
    names = [scene.frames[i].name for i in scene.splits["test"]]
    # In sorted order r_10 would come second; the file lists r_0 r_1 r_2 ...
    assert sorted(names) == ["test/r_0.png", "test/r_4.png", "test/r_8.png"]
    assert len(scene.frames) == 8 + 3


def test_llff_has_its_frame_and_path(tmp_path):
    known = tiny.forward_rig()
    tiny.write_llff(tmp_path, known)
    scene = load(tmp_path)
    assert scene.kind == "forward-facing"
    near, far = tiny.llff_rows(known)[:, 15].min(), tiny.llff_rows(known)[:, 16].max()
    assert scene.scene_from_user.scale == pytest.approx(1 / (0.75 * near))
    assert scene.bounds.near == pytest.approx(0.9 / 0.75)
    assert scene.bounds.far == pytest.approx(far / (0.75 * near))
    mean = scene.cameras.world_from_camera.mean(0)
    torch.testing.assert_close(mean, torch.eye(4)[:3], atol=1e-5, rtol=0)
    assert scene.render_path is not None
    assert len(scene.render_path) == 120
    expected = known.pixels(tiny.WIDTH / 2, tiny.HEIGHT / 2)
    assert np.abs(projected(scene, known.points) - expected).max() < 2e-3


def test_a_forward_facing_scene_in_another_frame_is_not_for_ndc(tmp_path):
    tiny.write_llff(tmp_path, tiny.forward_rig())
    rows = tiny.llff_rows(tiny.forward_rig())
    scene = load(tmp_path, normalize="none")
    assert scene.kind == "unbounded"
    assert any("NDC" in note for note in scene.notes)
    assert scene.bounds.near == pytest.approx(0.9 * rows[:, 15].min())
    assert scene.bounds.far == pytest.approx(rows[:, 16].max())


def test_llff_around_an_object_is_spherified(tmp_path):
    tiny.write_llff(tmp_path, tiny.rig())
    scene = load(tmp_path)
    assert scene.kind == "unbounded"
    radius = scene.cameras.world_from_camera[:, :, 3].norm(dim=-1)
    assert float(radius.square().mean().sqrt()) == pytest.approx(1.0, abs=1e-4)


def test_llff_takes_the_folder_for_the_downscale(tmp_path):
    tiny.write_llff(tmp_path, tiny.forward_rig(), factor=1)
    for i in range(9):
        tiny.save_image(tmp_path / "images_4" / f"image{i:03d}.png", 6, 4)
    scene = load(tmp_path, downscale=4.0)
    assert scene.frames[0].image_path == tmp_path / "images_4" / "image000.png"
    assert scene.cameras.intrinsics[0].tolist() == pytest.approx([7.5, 7.5, 3, 2])


def test_neus_masks_are_alpha_and_the_sphere_is_the_frame(tmp_path):
    tiny.write_neus(tmp_path, tiny.rig())
    scene = load(tmp_path)
    assert scene.has_alpha
    assert all(frame.mask_is_alpha for frame in scene.frames)
    assert [frame.mask_path.name for frame in scene.frames if frame.mask_path][:2] == [
        "000.png",
        "001.png",
    ]
    moved = scene.scene_from_user.apply(torch.full((3,), 0.1, dtype=torch.float64))
    assert float(moved.norm()) < 1e-9
    assert scene.scene_from_user.scale == pytest.approx(0.8)
    assert scene.bounds.radius == 1.0
    plain = load(tmp_path, mask_as="none")
    assert all(frame.mask_path is None for frame in plain.frames)
    assert not plain.has_alpha


def test_linemod_rounds_near_and_far_outwards(tmp_path):
    tiny.write_linemod(tmp_path, tiny.rig())
    bounds = load(tmp_path).bounds
    assert (bounds.near, bounds.far) == (2.0, 6.0)


def test_deepvoxels_near_and_far_and_inverse_poses(tmp_path):
    known = tiny.rig()
    tiny.write_deepvoxels(tmp_path, known)
    scene = load(tmp_path)
    assert (scene.bounds.near, scene.bounds.far) == pytest.approx((3.0, 5.0))
    assert scene.render_path is not None
    assert len(scene.render_path) == 2
    poses = scene.cameras.world_from_camera
    with (tmp_path / "train/cube/intrinsics.txt").open("a") as file:
        file.write("1\n")
    for path in tmp_path.glob("*/cube/pose/*.txt"):
        matrix = np.linalg.inv(np.loadtxt(path).reshape(4, 4))
        path.write_text(" ".join(map(str, matrix.ravel())))
    torch.testing.assert_close(load(tmp_path).cameras.world_from_camera, poses)


def test_colmap_takes_the_largest_model(tmp_path):
    small, large = tiny.rig(4), tiny.rig(10)
    tiny.write_colmap_binary(tmp_path, small, "sparse/0")
    tiny.write_colmap_binary(tmp_path, large, "sparse/1")
    scene = load(tmp_path)
    assert len(scene.frames) == 10
    assert any("sparse/1" in note for note in scene.notes)


def test_colmap_points_masks_lists_and_missing_images(tmp_path):
    known = tiny.rig()
    tiny.write_colmap_binary(tmp_path, known)
    (tmp_path / "images/003.png").unlink()
    tiny.save_image(tmp_path / "masks/001.png.png", mode="L")
    tiny.save_image(tmp_path / "masks/002.png", mode="L")
    (tmp_path / "test_list.txt").write_text("005.png\n006.png\n")
    scene = load(tmp_path)
    assert scene.points is not None
    assert len(scene.points) == len(known.points)
    assert scene.points.rgb[0].tolist() == [10, 20, 30]
    back = scene.scene_from_user.inverse().apply(scene.points.xyz.double())
    np.testing.assert_allclose(back.numpy(), known.points, atol=1e-6)
    assert any("1 of 10" in note for note in scene.notes)
    assert [scene.frames[i].name for i in scene.splits["test"]] == ["005.png", "006.png"]
    masks = [frame.mask_path.name for frame in scene.frames if frame.mask_path]
    assert masks == ["001.png.png", "002.png"]
    assert not scene.has_alpha


def test_colmap_sightings_say_who_saw_what(tmp_path):
    known = tiny.rig()
    tiny.write_colmap_binary(tmp_path, known)
    (tmp_path / "images" / "001.png").unlink()
    scene = load(tmp_path)
    assert scene.points is not None
    sightings = scene.points.sightings
    assert sightings is not None
    # Every camera of the rig saw every point; the missing image is gone from both lists.
    assert len(sightings) == len(scene.frames) * len(known.points)
    assert len(sightings.unique(dim=0)) == len(sightings)
    frames, points = sightings.unbind(dim=1)
    xy, _, is_valid = scene.cameras.project(scene.points.xyz.expand(len(scene.frames), -1, 3))
    wanted = known.pixels(tiny.CX, tiny.CY)
    for frame, point in zip(frames.tolist(), points.tolist(), strict=True):
        number = int(scene.frames[frame].name.removesuffix(".png"))
        assert is_valid[frame, point]
        assert xy[frame, point].tolist() == pytest.approx(wanted[number][point], abs=1e-2)


def test_forward_facing_colmap_gets_the_frame_of_ndc(tmp_path):
    known = tiny.forward_rig()
    tiny.write_colmap_binary(tmp_path, known)
    scene = load(tmp_path)
    assert scene.kind == "forward-facing"
    assert scene.points is not None
    assert float(scene.points.xyz[:, 2].min()) > 1.0
    assert np.abs(projected(scene, known.points) - known.pixels(tiny.CX, tiny.CY)).max() < 2e-3


def test_order_of_formats_and_the_message(tmp_path):
    tiny.write_llff(tmp_path, tiny.rig(), factor=8)
    tiny.write_colmap_binary(tmp_path, tiny.rig())
    scene = load(tmp_path)
    assert scene.format == "colmap"
    assert "sparse/0" in scene.notes[0]
    assert any("--data.format llff" in note for note in scene.notes)
    assert load(tmp_path, format="llff").format == "llff"


def test_nothing_found_says_what_was_looked_for(tmp_path):
    with pytest.raises(UserError, match=r"transforms\.json.*poses_bounds\.npy"):
        load(tmp_path)
    tiny.write_transforms(tmp_path / "inner", tiny.rig())
    with pytest.raises(UserError, match=r"did you mean .*inner"):
        load(tmp_path)
    for i in range(3):
        tiny.save_image(tmp_path / f"photo{i}.jpg")
    with pytest.raises(UserError, match="3 images need camera poses"):
        load(tmp_path)


def test_scene_round_trip_through_plain_data(tmp_path):
    import json

    tiny.write_llff(tmp_path, tiny.forward_rig())
    scene = load(tmp_path)
    plain = json.loads(json.dumps(scene.to_plain()))
    again = Scene.from_plain(plain)
    assert str(tmp_path) not in json.dumps(plain)
    assert again.splits == scene.splits
    assert again.bounds == scene.bounds
    assert [f.name for f in again.frames] == [f.name for f in scene.frames]
    torch.testing.assert_close(again.cameras.world_from_camera, scene.cameras.world_from_camera)
    torch.testing.assert_close(again.scene_from_user.rotation, scene.scene_from_user.rotation)
    for broken in ({}, [], {**plain, "splits": {}}, {**plain, "frames": []}, {**plain, "kind": 3}):
        with pytest.raises(UserError, match=r"scene\.json"):
            Scene.from_plain(broken)

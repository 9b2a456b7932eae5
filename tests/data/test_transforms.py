# SPDX-License-Identifier: Apache-2.0
"""Every field of transforms.json does what docs/formats.md says."""

import numpy as np
import pytest
import torch

from diorama.cameras import CameraModel
from diorama.config.data import DataConfig
from diorama.data.image_store import ImageStore
from diorama.data.load import load_scene
from diorama.errors import UserError
from tests.data import tiny_sets as tiny


def load(path, **options):
    return load_scene(DataConfig(path=path, **options))


def frames(change):
    """An edit of every frame: change(frame, index)."""

    def edit(data):
        for index, frame in enumerate(data["frames"]):
            change(frame, index)

    return edit


@pytest.fixture
def root(tmp_path):
    tiny.write_transforms(tmp_path, tiny.rig())
    return tmp_path


def edit(root, change):
    tiny.edit_json(root / "transforms.json", change)


def test_a_json_file_is_data_too(root):
    (root / "transforms.json").rename(root / "poses of mine.json")
    assert len(load(root / "poses of mine.json").frames) == 10


def test_missing_images_are_counted(root):
    for i in (2, 5):
        (root / f"images/{i:03d}.png").unlink()
    scene = load(root)
    assert len(scene.frames) == 8
    assert "2 of 10 listed images do not exist and were skipped." in scene.notes


def test_intrinsics_and_model_per_frame(root):
    def change(frame, i):
        frame.update(fl_x=40.0 + i, cy=5.0, k1=0.01 * i)
        if i == 3:
            frame.update(camera_model="OPENCV_FISHEYE", k4=0.5)

    edit(root, frames(change))
    edit(root, lambda d: d.update(k1=0.9, p1=0.001, camera_model="OPENCV"))
    cameras = load(root).cameras
    assert cameras.intrinsics[:, 0].tolist() == [40.0 + i for i in range(10)]
    assert cameras.intrinsics[0].tolist() == [40.0, tiny.FOCAL, tiny.CX, 5.0]
    assert cameras.model.tolist() == [int(CameraModel.FISHEYE) if i == 3 else 0 for i in range(10)]
    # A frame that mentions distortion says all of it: the file's k1 and p1 do not leak in.
    assert cameras.distortion[2].tolist() == pytest.approx([0.02, *[0.0] * 8])
    assert cameras.distortion[3].tolist() == pytest.approx([0.03, 0, 0, 0.5, *[0.0] * 5])


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"k1": 0.1, "k2": 0.2, "k3": 0.3, "k4": 0.4, "p1": 0.01, "p2": 0.02},
         [0.1, 0.2, 0.3, 0.4, 0.01, 0.02, 0, 0, 0]),
        ({"distortion_params": [0.1, 0.2, 0.3, 0.4, 0.01, 0.02]},
         [0.1, 0.2, 0.3, 0.4, 0.01, 0.02, 0, 0, 0]),
        ({"camera_model": "FULL_OPENCV", "k1": 1, "k2": 2, "k3": 3, "k4": 4, "k5": 5, "k6": 6,
          "p1": 0.1, "p2": 0.2}, [1, 2, 3, 0, 0.1, 0.2, 4, 5, 6]),
        ({"camera_model": "PINHOLE", "k1": 0.1}, [0] * 9),
        ({"is_fisheye": True, "k1": 0.1, "k4": 0.2}, [0.1, 0, 0, 0.2, 0, 0, 0, 0, 0]),
    ],
)  # fmt: skip
def test_distortion_goes_to_its_slots(root, fields, expected):
    edit(root, lambda d: d.update(fields))
    scene = load(root)
    assert scene.cameras.distortion[0].tolist() == pytest.approx(expected)
    is_fisheye = int(scene.cameras.model[0]) == int(CameraModel.FISHEYE)
    assert is_fisheye == bool(fields.get("is_fisheye"))


@pytest.mark.parametrize(
    "fields",
    [{"camera_angle_x": 0.9}, {"x_fov": float(np.degrees(0.9))}],
)
def test_angles_stand_in_for_focal_lengths(root, fields):
    def change(data):
        for key in ("fl_x", "fl_y", "w", "h"):
            del data[key]
        data.update(fields)

    edit(root, change)
    focal = tiny.WIDTH / 2 / np.tan(0.45)
    assert load(root).cameras.intrinsics[0, :2].tolist() == pytest.approx([focal, focal])


def test_equirectangular(root):
    for i in range(10):
        tiny.save_image(root / f"images/{i:03d}.png", 32, 16)
    edit(root, lambda d: d.update(camera_model="EQUIRECTANGULAR", w=32))
    scene = load(root)
    assert scene.cameras.model.unique().tolist() == [int(CameraModel.EQUIRECTANGULAR)]
    assert 0 < scene.bounds.near < scene.bounds.far


@pytest.mark.parametrize("downscale", [1.0, 2.0])
def test_the_dark_border_of_a_fisheye_carries_no_loss(root, downscale):
    edit(root, lambda d: d.update(camera_model="OPENCV_FISHEYE", fisheye_crop_radius=6.0))
    scene = load(root, downscale=downscale)
    mask = ImageStore(scene, 0.1).loss_mask(0)
    assert mask is not None
    cx, cy = scene.cameras.intrinsics[0, 2:].tolist()
    y, x = np.mgrid[: mask.shape[0], : mask.shape[1]] + 0.5
    is_lit = np.hypot(x - cx, y - cy) <= 6.0 / downscale
    assert np.array_equal(mask.numpy() > 0, is_lit) and is_lit.any() and not is_lit.all()
    edit(root, lambda d: d.update(camera_model="OPENCV"))
    assert ImageStore(load(root), 0.1).loss_mask(0) is None


def test_images_of_another_size_scale_the_intrinsics(root):
    for i in range(10):
        tiny.save_image(root / f"images/{i:03d}.png", tiny.WIDTH * 2, tiny.HEIGHT * 2)
    intrinsics = load(root).cameras.intrinsics[0].tolist()
    assert intrinsics == pytest.approx([60.0, 60.0, 25.5, 14.5])


def test_large_images_are_reduced_to_a_side(root):
    scene = load(root, max_side=12)
    assert scene.cameras.size[0].tolist() == [12, 8]
    assert scene.cameras.intrinsics[0, 0].item() == pytest.approx(tiny.FOCAL / 2)
    assert ImageStore(scene, 0.1).rgba(0).shape == (8, 12, 4)
    assert any("--data.max-side" in note for note in scene.notes)
    assert load(root, max_side=24).cameras.size[0].tolist() == [24, 16]
    with pytest.raises(UserError, match=r"--data\.max-side"):
        load(root, max_side=0)


def test_downscaled_folders_are_used_when_they_fit(root):
    for i in range(10):
        tiny.save_image(root / f"images_2/{i:03d}.png", 12, 8)
        tiny.save_image(root / f"images_4/{i:03d}.png", 24, 16)
    scene = load(root, downscale=2.0)
    assert scene.frames[0].image_path.parent.name == "images_2"
    assert scene.frames[0].raw_size == (12, 8)
    other = load(root, downscale=4.0)
    assert other.frames[0].image_path.parent.name == "images"
    assert other.cameras.size[0].tolist() == [6, 4]


def test_applied_transform_and_scale_lead_back_to_the_user(tmp_path):
    known = tiny.rig()
    # The saved frame is 2 (A x + t): build the file in it, ask for the user's frame.
    axes, shift = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]]), np.array([0.1, 0.2, 0.3])
    saved = known.poses.copy()
    saved[:, :, :3] = axes @ known.poses[:, :, :3]
    saved[:, :, 3] = 2 * (known.poses[:, :, 3] @ axes.T + shift)
    applied = np.concatenate([axes, shift[:, None]], axis=1).tolist()
    tiny.write_transforms(
        tmp_path, tiny.Rig(saved, known.points), applied_transform=applied, applied_scale=2.0
    )
    scene = load(tmp_path)
    xyz = scene.scene_from_user.apply(torch.from_numpy(known.points)).float()
    pixels = scene.cameras.project(xyz.expand(10, -1, -1))[0].numpy()
    assert np.abs(pixels - known.pixels(tiny.CX, tiny.CY)).max() < 2e-3


def test_orientation(root):
    def up_of(scene):
        return -scene.cameras.world_from_camera[:, :, 1].mean(0)

    turned = tiny.rig().poses[:, [2, 0, 1]]
    tiny.write_transforms(root, tiny.Rig(turned, tiny.rig().points))
    up = up_of(load(root))
    assert float(up[2] / up.norm()) > 0.999
    edit(root, lambda d: d.update(orientation_override="none"))
    up = up_of(load(root))
    assert float(up[0] / up.norm()) > 0.8
    assert float(up_of(load(root, orientation="up"))[2]) > 0.8


def test_aabb_scale_is_instant_ngps_frame(root):
    edit(root, lambda d: d.update(aabb_scale=4))
    scene = load(root)
    assert scene.scene_from_user.scale == pytest.approx(0.33)
    assert scene.bounds.aabb_max == (2.0, 2.0, 2.0)
    assert scene.kind == "unbounded"
    assert load(root, normalize="cameras").scene_from_user.scale == pytest.approx(0.25, rel=0.1)


def test_neuralangelos_sphere_is_the_frame(root):
    edit(root, lambda d: d.update(sphere_center=[0.1, 0, 0], sphere_radius=2.0))
    scene = load(root)
    assert scene.scene_from_user.scale == pytest.approx(0.5)
    assert scene.bounds.radius == 1.0


def test_split_lists(root):
    lists = {
        "train_filenames": [f"images/{i:03d}.png" for i in range(5)],
        "val_filenames": ["images/005.png"],
        "test_filenames": ["images/006.png", "images/007.png"],
    }
    edit(root, lambda d: d.update(lists))
    scene = load(root)
    assert scene.splits == {"train": (0, 1, 2, 3, 4), "val": (5,), "test": (6, 7)}
    assert len(scene.frames) == 8
    assert load(root, split="every").splits["test"] == (0, 8)
    edit(root, lambda d: [d.pop(key) for key in ("val_filenames", "test_filenames")])
    assert load(root).splits["test"] == (5, 6, 7, 8, 9)


def test_masks_depths_and_time(root):
    def change(frame, i):
        frame.update(mask_path=f"masks/{i}.png", depth_file_path=f"d/{i}.npy", time=i / 10)

    for i in range(10):
        tiny.save_image(root / f"masks/{i}.png", mode="L")
        (root / "d").mkdir(exist_ok=True)
        np.save(root / f"d/{i}.npy", np.full((tiny.HEIGHT, tiny.WIDTH), 2000.0))
    edit(root, frames(change))
    scene = load(root)
    frame = scene.frames[4]
    assert frame.time == pytest.approx(0.4)
    assert not frame.mask_is_alpha
    assert frame.mask_path == root / "masks/4.png"
    # 2000 mm are 2 units of the file, in the normalised frame as long as any other 2 units.
    assert frame.depth_unit == pytest.approx(1e-3 * scene.scene_from_user.scale)
    assert load(root, mask_as="alpha").frames[0].mask_is_alpha
    (root / "masks/4.png").unlink()
    with pytest.raises(UserError, match=r"mask_path .*4\.png does not exist"):
        load(root)


PLY = """ply
format {style} 1.0
comment made by hand
element vertex 9
property float x
property float y
property float z
{colour}element face 0
property list uchar int vertex_indices
end_header
"""
COLOUR = "property uchar red\nproperty uchar green\nproperty uchar blue\n"


@pytest.mark.parametrize("style", ["ascii", "binary_little_endian", "binary_big_endian"])
@pytest.mark.parametrize("colour", [True, False])
def test_ply_points(root, style, colour):
    rng = np.random.default_rng(0)
    xyz, rgb = rng.uniform(-1, 1, (9, 3)).astype("f4"), rng.integers(0, 255, (9, 3))
    header = PLY.format(style=style, colour=COLOUR if colour else "").encode()
    if style == "ascii":
        rows = [
            [*map(repr, map(float, p)), *map(str, c if colour else [])]
            for p, c in zip(xyz, rgb, strict=True)
        ]
        body = "\n".join(" ".join(row) for row in rows).encode()
    else:
        order = "<" if "little" in style else ">"
        row = np.dtype([("p", order + "f4", 3), *([("c", "u1", 3)] if colour else [])])
        table = np.zeros(9, row)
        table["p"] = xyz
        if colour:
            table["c"] = rgb
        body = table.tobytes()
    (root / "points.ply").write_bytes(header + body)
    edit(root, lambda d: d.update(ply_file_path="points.ply"))
    scene = load(root)
    assert scene.points is not None
    back = scene.scene_from_user.inverse().apply(scene.points.xyz.double())
    np.testing.assert_allclose(back.numpy(), xyz, atol=1e-5)
    assert scene.points.rgb.tolist() == (rgb.tolist() if colour else [[128] * 3] * 9)


def test_noisy_poses_are_repaired_with_a_note(root):
    def change(frame, i):
        matrix = np.array(frame["transform_matrix"])
        matrix[:3, :3] *= 1.5
        frame["transform_matrix"] = matrix.tolist()

    edit(root, frames(change))
    scene = load(root)
    assert any("10 poses" in note for note in scene.notes)
    axes = scene.cameras.world_from_camera[:, :, :3]
    torch.testing.assert_close(axes @ axes.mT, torch.eye(3).expand(10, 3, 3), atol=1e-5, rtol=0)

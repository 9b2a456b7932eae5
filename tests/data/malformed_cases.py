# SPDX-License-Identifier: Apache-2.0
"""Broken and odd data sets: a builder, and the message it must cause or None if it must work."""

import io
import os
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from tests.data import tiny_sets as tiny

CASES: dict[str, "Case"] = {}


class Case(NamedTuple):
    """How to build the data, and a pattern of the error's sentence (None: it must work)."""

    build: Callable[[Path], Any]
    message: str | None
    options: dict[str, Any]


def case(message: str | None, **options: Any) -> Callable:
    """Register a builder; `options` go to DataConfig."""

    def register(build: Callable[[Path], Any]) -> Callable[[Path], Any]:
        CASES[build.__name__] = Case(build, message, options)
        return build

    return register


def transforms(root: Path, change: Callable[[Any], Any] | None = None) -> Path:
    """A good transforms.json data set, changed."""
    tiny.write_transforms(root, tiny.rig(4))
    if change:
        tiny.edit_json(root / "transforms.json", change)
    return root / "transforms.json"


def first(**fields: Any) -> Callable[[Any], None]:
    """A change of the first frame."""
    return lambda data: data["frames"][0].update(fields)


def matrix(change: Callable[[np.ndarray], Any]) -> Callable[[Any], None]:
    """A change of the first frame's pose."""

    def edit(data: Any) -> None:
        pose = np.array(data["frames"][0]["transform_matrix"])
        result = change(pose)
        data["frames"][0]["transform_matrix"] = (pose if result is None else result).tolist()

    return edit


# JSON


@case(r"transforms\.json: not valid JSON at line 1")
def json_empty_file(root):
    transforms(root).write_text("")


@case(r"transforms\.json: not valid JSON")
def json_truncated(root):
    path = transforms(root)
    path.write_text(path.read_text()[:200])


@case(r"transforms\.json: the number NaN is not allowed")
def json_nan(root):
    transforms(root, lambda d: d.update(fl_x=float("nan")))


@case(r"transforms\.json: the number -?Infinity is not allowed")
def json_infinity(root):
    transforms(root, matrix(lambda m: m.__setitem__((0, 3), float("inf"))))


@case(r"transforms\.json: fl_x must be a finite number")
def json_overflowing_float(root):
    path = transforms(root)
    path.write_text(path.read_text().replace('"fl_x": 30.0', '"fl_x": 1e999'))


@case(r"transforms\.json: fl_x must be a finite number")
def json_gigantic_integer(root):
    path = transforms(root)
    path.write_text(path.read_text().replace('"fl_x": 30.0', '"fl_x": 1' + "0" * 400))


@case(r"transforms\.json: .*digits")
def json_integer_of_a_million_digits(root):
    path = transforms(root)
    path.write_text(path.read_text().replace('"fl_x": 30.0', '"fl_x": 1' + "0" * 1_000_000))


@case(r"transforms\.json: nested too deeply")
def json_nested_a_million_deep(root):
    transforms(root).write_text("[" * 1_000_000)


@case(r"transforms\.json: not UTF-8")
def json_binary(root):
    transforms(root).write_bytes(b"\xff\xfe\x00\x80" * 10)


@case(None)
def json_with_byte_order_mark(root):
    path = transforms(root)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())


@case(r"transforms\.json: expected an object")
def json_is_a_list(root):
    transforms(root).write_text("[1, 2]")


@case(r"transforms\.json: frames is missing")
def json_without_frames(root):
    transforms(root, lambda d: d.pop("frames"))


@case(r"transforms\.json: frames is missing")
def json_zero_frames(root):
    transforms(root, lambda d: d.update(frames=[]))


@case(r"transforms\.json: frames must be a list")
def json_frames_is_a_text(root):
    transforms(root, lambda d: d.update(frames="all of them"))


@case(r"transforms\.json: frame 0: expected an object")
def json_frame_is_a_number(root):
    transforms(root, lambda d: d["frames"].insert(0, 7))


@case(r"frame 0: file_path: a file name must be")
def json_without_file_path(root):
    transforms(root, lambda d: d["frames"][0].pop("file_path"))


@case(r"frame 0: transform_matrix is missing")
def json_without_pose(root):
    transforms(root, lambda d: d["frames"][0].pop("transform_matrix"))


@case(r"frame 0: transform_matrix must be 4x4 or 3x4 numbers, got 3x3")
def pose_of_wrong_shape(root):
    transforms(root, matrix(lambda m: m[:3, :3]))


@case(r"frame 0: transform_matrix must be 4x4 or 3x4 numbers, got a ragged")
def pose_ragged(root):
    transforms(root, lambda d: d["frames"][0]["transform_matrix"][1].pop())


@case(r"frame 0: transform_matrix must be a number, got str")
def pose_of_texts(root):
    transforms(root, first(transform_matrix=[["1", "0", "0", "0"]] * 4))


@case(r"frame 0: transform_matrix: the pose's axes have lengths")
def pose_of_zeros(root):
    transforms(root, matrix(lambda m: m.__setitem__((slice(3), slice(3)), 0)))


@case(r"frame 0: transform_matrix: the pose's axes have lengths")
def pose_skewed(root):
    transforms(root, matrix(lambda m: m.__setitem__((slice(3), 0), m[:3, 0] * 2)))


@case(r"frame 0: transform_matrix: the pose mirrors the scene")
def pose_mirrored(root):
    transforms(root, matrix(lambda m: m.__setitem__((slice(3), 0), -m[:3, 0])))


@case(r"frame 0: transform_matrix: the pose's last row")
def pose_transposed(root):
    transforms(root, matrix(lambda m: m.T))


@case(r"frame 0: transform_matrix: .*absurdly large")
def pose_far_away(root):
    transforms(root, matrix(lambda m: m.__setitem__((0, 3), 1e30)))


@case(None)
def poses_all_the_same(root):
    transforms(
        root,
        lambda d: [
            f.update(transform_matrix=d["frames"][0]["transform_matrix"]) for f in d["frames"]
        ],
    )


@case(r"transforms\.json: fl_x must be above zero")
def focal_length_negative(root):
    transforms(root, lambda d: d.update(fl_x=-10))


@case(r"images.000\.png: the camera has no focal length")
def focal_length_missing(root):
    transforms(root, lambda d: [d.pop(key) for key in ("fl_x", "fl_y")])


@case(r"camera_angle_x must lie between 0 and 180 degrees")
def field_of_view_impossible(root):
    def change(data):
        data.pop("fl_x")
        data["camera_angle_x"] = 4.0

    transforms(root, change)


@case(r"a focal length of 1e\+300, 30 and a centre")
def focal_length_gigantic(root):
    transforms(root, lambda d: d.update(fl_x=1e300))


@case(r"sphere_radius must lie between")
def sphere_radius_tiny(root):
    transforms(root, lambda d: d.update(sphere_center=[0, 0, 0], sphere_radius=1e-320))


@case(r"camera_model 'VR180_L' is not supported")
def camera_model_unknown(root):
    transforms(root, lambda d: d.update(camera_model="VR180_L"))


@case(r"distortion .* is not that of a lens")
def distortion_absurd(root):
    transforms(root, lambda d: d.update(k1=1e20))


@case(r"camera of 1e\+30 x 16 pixels cannot be")
def camera_size_gigantic(root):
    transforms(root, lambda d: d.update(w=1e30))


# File names


@case(r"leads out of the data folder")
def name_absolute(root):
    transforms(root, first(file_path="/etc/hostname"))


@case(r"leads out of the data folder")
def name_with_parent(root):
    tiny.save_image(root.parent / "outside.png")
    transforms(root, first(file_path="images/../../outside.png"))


@case(r"leads out of the data folder")
def name_of_a_windows_drive(root):
    transforms(root, first(file_path="C:\\photos\\1.png"))


@case(r"is too long or not a file name")
def name_with_nul(root):
    transforms(root, first(file_path="images/\0.png"))


@case(r"is too long or not a file name")
def name_endless(root):
    transforms(root, first(file_path="a" * 100_000))


@case(None)
def name_with_component_too_long_is_missing(root):
    transforms(root, first(file_path="a" * 500 + ".png"))


@case(r"mask_path: the file name .* leads out of the data folder")
def mask_name_with_parent(root):
    transforms(root, first(mask_path="../mask.png"))


@case(r"ply_file_path: the file name .* leads out")
def points_name_absolute(root):
    transforms(root, lambda d: d.update(ply_file_path="/tmp/points.ply"))


@case(None)
def name_with_unicode_and_spaces(root):
    tiny.save_image(root / "images/Größe 東京 🦊 .png")
    transforms(root, first(file_path="images/Größe 東京 🦊 .png"))


@case(None)
def name_with_backslashes(root):
    transforms(root, first(file_path="images\\000.png"))


@case(r"'images/001\.png' is listed twice")
def name_listed_twice(root):
    transforms(root, first(file_path="./images/001.png"))


@case(r"none of the 4 listed images exists")
def all_images_missing(root):
    transforms(root)
    for path in (root / "images").iterdir():
        path.unlink()


@case(None)
def image_is_an_endless_link(root):
    transforms(root)
    loop = root / "images/000.png"
    loop.unlink()
    loop.symlink_to(loop)


@case(r"no such folder")
def folder_is_an_endless_link(root):
    (root / "a").symlink_to(root / "b")
    (root / "b").symlink_to(root / "a")
    return root / "a"


@case(None)
def folder_links_to_itself(root):
    transforms(root)
    (root / "images/again").symlink_to(root, target_is_directory=True)
    (root / "sparse").symlink_to(root, target_is_directory=True)


@case(None)
def image_is_a_pipe(root):
    transforms(root)
    (root / "images/000.png").unlink()
    os.mkfifo(root / "images/000.png")


@case(r"no data set found there")
def json_is_a_pipe(root):
    os.mkfifo(root / "transforms.json")


@case(None)
def image_is_a_folder(root):
    transforms(root)
    (root / "images/000.png").unlink()
    (root / "images/000.png").mkdir()


# Images


@case(r"images.000\.png: not an image|images.000\.png: .*truncated or corrupt")
def image_empty(root):
    transforms(root)
    (root / "images/000.png").write_bytes(b"")


@case(r"images.000\.png: .*truncated or corrupt")
def image_truncated(root):
    transforms(root)
    path = root / "images/000.png"
    path.write_bytes(path.read_bytes()[:-300])


@case(r"images.000\.png: not an image")
def image_is_text(root):
    transforms(root)
    (root / "images/000.png").write_text("404 not found")


@case(r"images.000\.png: more than \d+ megapixels|images.000\.png: .*corrupt")
def image_bomb(root):
    transforms(root)
    path = root / "images/000.png"
    raw = bytearray(path.read_bytes())
    raw[16:24] = struct.pack(">II", 100_000, 100_000)
    import zlib

    raw[29:33] = struct.pack(">I", zlib.crc32(raw[12:29]))
    path.write_bytes(raw)


@case(r"000\.png: the image is 16 x 16 pixels but its camera is 24 x 16")
def image_of_another_shape(root):
    transforms(root)
    tiny.save_image(root / "images/000.png", 16, 16)


@case(r"000\.png: .* it looks turned by 90 degrees")
def image_turned(root):
    transforms(root)
    tiny.save_image(root / "images/000.png", 16, 24)


@case(None)
def image_twice_as_large(root):
    transforms(root)
    tiny.save_image(root / "images/000.png", 48, 32)


@case(None)
def images_of_one_pixel(root):
    tiny.write_transforms(root, tiny.rig(4))
    for i in range(4):
        tiny.save_image(root / f"images/{i:03d}.png", 1, 1)
    tiny.edit_json(root / "transforms.json", lambda d: d.update(w=1, h=1, cx=0.5, cy=0.5))


@case(None, downscale=1000.0)
def downscaled_to_nothing(root):
    transforms(root)


@case(None)
def images_grey_and_16_bit_and_palette(root):
    transforms(root)
    grey = np.arange(16 * 24).reshape(16, 24)
    Image.fromarray(grey.astype(np.uint8)).save(root / "images/000.png")
    Image.fromarray((grey * 100).astype(np.uint16)).save(root / "images/001.png")
    Image.fromarray(grey.astype(np.uint8)).convert("P").save(root / "images/002.png")


@case(None)
def mask_all_black(root):
    Image.new("L", (24, 16), 0).save(root / "m.png")
    transforms(root, first(mask_path="m.png"))


@case(r"m\.png: the mask is 16 x 16 pixels but its image is 24 x 16")
def mask_of_another_shape(root):
    tiny.save_image(root / "m.png", 16, 16, "L")
    transforms(root, first(mask_path="m.png"))


@case(r"m\.png: not an image")
def mask_is_text(root):
    (root / "m.png").write_text("white")
    transforms(root, first(mask_path="m.png"))


@case(r"depth.npy: .*npy")
def depth_is_pickled(root):
    np.save(root / "depth.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    transforms(root, first(depth_file_path="depth.npy"))


# Points


@case(r"points\.ply: declares 1000000000000 vertices but the file is too short")
def ply_declares_too_much(root):
    ply(root, b"element vertex 1000000000000", b"\0" * 12)


@case(r"points\.ply: not a PLY file")
def ply_without_header(root):
    transforms(root, lambda d: d.update(ply_file_path="points.ply"))
    (root / "points.ply").write_bytes(b"ply\n" + b"x" * 100_000)


@case(r"points\.ply: cannot read the vertex property")
def ply_with_lists(root):
    ply(root, b"element vertex 1\nproperty list uchar int x", b"\0" * 12)


@case(None)
def ply_without_points(root):
    ply(root, b"element vertex 0", b"")


@case(None)
def ply_with_nan(root):
    ply(root, b"element vertex 2", struct.pack("<6f", float("nan"), 0, 0, 1, 1, 1))


def ply(root: Path, element: bytes, body: bytes) -> None:
    """A binary PLY file with x y z, after this element line."""
    transforms(root, lambda d: d.update(ply_file_path="points.ply"))
    axes = b"".join(b"property float " + axis + b"\n" for axis in (b"x", b"y", b"z"))
    header = b"ply\nformat binary_little_endian 1.0\n" + element + b"\n" + axes + b"end_header\n"
    (root / "points.ply").write_bytes(header + body)


# COLMAP


def colmap(root: Path, count: int = 4) -> Path:
    """A good binary model; returns its folder."""
    tiny.write_colmap_binary(root, tiny.rig(count))
    return root / "sparse/0"


@case(r"cameras\.bin: ends too early")
def colmap_cameras_empty(root):
    (colmap(root) / "cameras.bin").write_bytes(b"")


@case(r"images\.bin: (ends too early|declares)")
def colmap_images_truncated(root):
    path = colmap(root) / "images.bin"
    path.write_bytes(path.read_bytes()[:-100])


@case(r"images\.bin: declares 18446744073709551615 records")
def colmap_huge_image_count(root):
    path = colmap(root) / "images.bin"
    path.write_bytes(b"\xff" * 8 + path.read_bytes()[8:])


@case(r"points3D\.bin: declares 1152921504606846976 records")
def colmap_huge_point_count(root):
    (colmap(root) / "points3D.bin").write_bytes(struct.pack("<Q", 2**60) + b"\0" * 43)


@case(r"points3D\.bin: ends too early")
def colmap_huge_track(root):
    row = struct.pack("<Q3d3BdQ", 1, 0, 0, 0, 1, 2, 3, 0.5, 2**61)
    (colmap(root) / "points3D.bin").write_bytes(struct.pack("<Q", 1) + row)


@case(r"images\.bin: (an image name|declares|ends too early|.*pose)")
def colmap_images_random_bytes(root):
    noise = np.random.default_rng(0).bytes(5000)
    (colmap(root) / "images.bin").write_bytes(struct.pack("<Q", 3) + noise)


@case(r"camera 1 has the unknown model 99")
def colmap_unknown_model(root):
    path = colmap(root) / "cameras.bin"
    raw = bytearray(path.read_bytes())
    raw[12:16] = struct.pack("<i", 99)
    path.write_bytes(raw)


@case(r"camera 1: camera model PINHOLE needs finite parameters")
def colmap_nan_focal(root):
    path = colmap(root) / "cameras.bin"
    raw = bytearray(path.read_bytes())
    raw[32:40] = struct.pack("<d", float("nan"))
    path.write_bytes(raw)


@case(r"image '000\.png' uses camera 77, which is missing")
def colmap_missing_camera(root):
    path = colmap(root) / "images.bin"
    raw = bytearray(path.read_bytes())
    raw[8 + 4 + 56 : 8 + 4 + 56 + 4] = struct.pack("<I", 77)
    path.write_bytes(raw)


@case(r"the pose of image '000\.png' is not a pose")
def colmap_zero_quaternion(root):
    path = colmap(root) / "images.bin"
    raw = bytearray(path.read_bytes())
    raw[12:44] = b"\0" * 32
    path.write_bytes(raw)


@case(r"the file name '\.\./\.\./x' leads out of the data folder")
def colmap_name_with_parent(root):
    path = colmap(root) / "images.bin"
    path.write_bytes(path.read_bytes().replace(b"000.png\0", b"../../x\0"))


@case(r"images\.bin: the model has no registered images")
def colmap_zero_images(root):
    (colmap(root) / "images.bin").write_bytes(struct.pack("<Q", 0))


@case(None)
def colmap_zero_points(root):
    (colmap(root) / "points3D.bin").write_bytes(struct.pack("<Q", 0))


@case(None)
def colmap_without_points_file(root):
    (colmap(root) / "points3D.bin").unlink()


@case(r"none of its 4 images was found")
def colmap_without_images(root):
    colmap(root)
    for path in (root / "images").iterdir():
        path.unlink()


@case(None)
def colmap_points_with_nan(root):
    path = colmap(root) / "points3D.bin"
    raw = bytearray(path.read_bytes())
    raw[16:24] = struct.pack("<d", float("nan"))
    path.write_bytes(raw)


@case(r"cameras\.txt: line 2 is not what COLMAP writes")
def colmap_text_words(root):
    tiny.write_colmap_text(root, tiny.rig(4))
    (root / "colmap/sparse/0/cameras.txt").write_text("# x\n1 OPENCV wide high\n")


@case(r"images\.txt: line 3 is not what COLMAP writes")
def colmap_text_short_line(root):
    tiny.write_colmap_text(root, tiny.rig(4))
    (root / "colmap/sparse/0/images.txt").write_text("# x\n# y\n1 0.5 0.5\n\n")


@case(r"images\.txt: not UTF-8 text")
def colmap_text_binary(root):
    tiny.write_colmap_text(root, tiny.rig(4))
    (root / "colmap/sparse/0/images.txt").write_bytes(b"\xff\xfe" * 50)


# NumPy formats


@case(r"poses_bounds\.npy: holds pickled Python objects")
def llff_pickled(root):
    tiny.write_llff(root, tiny.forward_rig())
    np.save(root / "poses_bounds.npy", np.array([print], dtype=object), allow_pickle=True)


@case(r"poses_bounds\.npy: expected one row of 17 numbers")
def llff_wrong_shape(root):
    tiny.write_llff(root, tiny.forward_rig())
    np.save(root / "poses_bounds.npy", np.zeros((9, 15)))


@case(r"poses_bounds\.npy: has 9 rows, but no folder")
def llff_one_image_missing(root):
    tiny.write_llff(root, tiny.forward_rig())
    (root / "images_8/image003.png").unlink()


@case(r"poses_bounds\.npy: holds values that are not finite")
def llff_nan(root):
    rows = tiny.llff_rows(tiny.forward_rig())
    tiny.write_llff(root, tiny.forward_rig())
    rows[3, 3] = np.nan
    np.save(root / "poses_bounds.npy", rows)


@case(r"poses_bounds\.npy: declares the shape .* too short")
def llff_declares_too_much(root):
    tiny.write_llff(root, tiny.forward_rig())
    stream = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": (10**12, 17)}
    np.lib.format.write_array_header_1_0(stream, header)
    (root / "poses_bounds.npy").write_bytes(stream.getvalue() + b"\0" * 100)


@case(r"poses_bounds\.npy: not a readable NumPy array")
def llff_not_numpy(root):
    tiny.write_llff(root, tiny.forward_rig())
    (root / "poses_bounds.npy").write_bytes(b"hello")


@case(r"poses_bounds\.npy: the depth bounds must be positive")
def llff_negative_bounds(root):
    rows = tiny.llff_rows(tiny.forward_rig())
    tiny.write_llff(root, tiny.forward_rig())
    rows[:, 15] = -1
    np.save(root / "poses_bounds.npy", rows)


@case(None)
def llff_one_view(root):
    tiny.write_llff(root, tiny.forward_rig(1))


@case(r"cameras_sphere\.npz: world_mat_3 is missing|has 9 world_mat matrices for 10 images")
def neus_missing_key(root):
    rewrite_npz(root, lambda arrays: arrays.pop("world_mat_3"))


@case(r"scale_mat_0 is missing")
def neus_without_scale(root):
    rewrite_npz(root, lambda arrays: arrays.pop("scale_mat_0"))


@case(r"world_mat_0 has the shape \(2, 2\)")
def neus_wrong_shape(root):
    rewrite_npz(root, lambda arrays: arrays.update(world_mat_0=np.eye(2)))


@case(r"world_mat_0 is not a projection matrix")
def neus_zero_matrix(root):
    rewrite_npz(root, lambda arrays: arrays.update(world_mat_0=np.zeros((4, 4))))


@case(r"scale_mat is not a uniform scale")
def neus_zero_scale(root):
    rewrite_npz(root, lambda arrays: arrays.update(scale_mat_0=np.zeros((4, 4))))


@case(r"cameras_sphere\.npz: not a readable \.npz file")
def neus_truncated(root):
    tiny.write_neus(root, tiny.rig())
    path = root / "cameras_sphere.npz"
    path.write_bytes(path.read_bytes()[:500])


@case(r"cameras_sphere\.npz: unpacks to more than")
def neus_zip_bomb(root):
    tiny.write_neus(root, tiny.rig())
    with (
        zipfile.ZipFile(
            root / "cameras_sphere.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1
        ) as archive,
        archive.open("world_mat_0.npy", "w", force_zip64=True) as member,
    ):
        for _ in range(257):
            member.write(b"\0" * 2**20)


@case(r"holds pickled Python objects")
def neus_pickled(root):
    rewrite_npz(root, lambda arrays: arrays.update(world_mat_0=np.array([len], dtype=object)))


@case(r"9 masks do not match 10 images")
def neus_missing_mask(root):
    tiny.write_neus(root, tiny.rig())
    (root / "mask/003.png").unlink()
    (root / "mask/004.png").rename(root / "mask/x.png")


def rewrite_npz(root: Path, change: Callable[[dict], Any]) -> None:
    """A NeuS data set whose arrays are changed."""
    tiny.write_neus(root, tiny.rig())
    arrays = dict(np.load(root / "cameras_sphere.npz"))
    change(arrays)
    np.savez(root / "cameras_sphere.npz", allow_pickle=True, **arrays)


# Other formats and folders


@case(r"transforms_test\.json: not valid JSON")
def blender_broken_test_file(root):
    tiny.write_blender(root, tiny.rig())
    (root / "transforms_test.json").write_text("{")


@case(r"none of the images in transforms_train\.json exists")
def blender_without_training_images(root):
    tiny.write_blender(root, tiny.rig())
    for path in (root / "train").iterdir():
        path.unlink()


@case(r"listed before with another pose")
def blender_one_image_two_poses(root):
    tiny.write_blender(root, tiny.rig())
    tiny.edit_json(root / "transforms_test.json", first(file_path="train/r_0"))


@case(r"frame 0: no file in .* matches the end of")
def linemod_path_of_nowhere(root):
    tiny.write_linemod(root, tiny.rig())
    tiny.edit_json(root / "transforms_train.json", first(file_path="/nowhere/else/77.png"))


@case(r"leads out of the data folder")
def linemod_path_with_parent(root):
    tiny.write_linemod(root, tiny.rig())
    tiny.edit_json(root / "transforms_train.json", first(file_path="/x/../train/0.png"))


@case(r"intrinsics\.txt: 'wide' is not a number")
def deepvoxels_bad_intrinsics(root):
    tiny.write_deepvoxels(root, tiny.rig())
    (root / "train/cube/intrinsics.txt").write_text("wide 1 2\n0\n0\n0\n4 4\n")


@case(r"expected the 16 numbers of a 4x4 matrix, got 2")
def deepvoxels_short_pose(root):
    tiny.write_deepvoxels(root, tiny.rig())
    (root / "train/cube/pose/000000.txt").write_text("1 2")


@case(r"no such folder")
def folder_missing(root):
    return root / "nowhere"


@case(r"no data set found there; looked for")
def folder_empty(root):
    del root


@case(r"--data must be a folder or a \.json file")
def data_is_an_image(root):
    tiny.save_image(root / "x.png")
    return root / "x.png"


@case(r"the 1 images need camera poses first")
def folder_of_photographs(root):
    tiny.save_image(root / "x.png")


@case(None)
def one_image_only(root):
    transforms(root, lambda d: d.update(frames=d["frames"][:1]))


@case(r"--data.downscale must be at least 1", downscale=0.0)
def downscale_zero(root):
    transforms(root)


@case(r"--data.near 3 must be less than --data.far 2", near=3.0, far=2.0)
def near_beyond_far(root):
    transforms(root)


@case(r"leaves no image to train on", eval_every=1)
def everything_held_out(root):
    transforms(root)


@case(r"this data set lists no split", split="files")
def split_files_missing(root):
    transforms(root)


@case(r"no points; use cameras", normalize="points")
def normalise_by_missing_points(root):
    transforms(root)


# the taichi system's lists


def taichi(root: Path, **changes: Any) -> None:
    """A good data set whose first training record is changed."""
    tiny.write_taichi(root, tiny.rig(6))
    tiny.edit_json(root / "train.json", lambda d: d[0].update(changes))


@case(None)
def taichi_extra_keys_and_no_size(root):
    taichi(root, note="ignored", camera_width=None, camera_height=None,
           camera_intrinsics=[[30, 0, 12], [0, 30, 8], [0, 0, 1]])  # fmt: skip


@case(None)
def taichi_file_given(root):
    taichi(root)
    return root / "train.json"


@case(r"record 0: the file name '\.\./x\.png' leads out of the data folder")
def taichi_image_outside(root):
    tiny.save_image(root.parent / "x.png")
    taichi(root, image_path="../x.png")


@case(r"record 0: no file in .* matches the end of '/etc/hostname'")
def taichi_image_elsewhere(root):
    taichi(root, image_path="/etc/hostname")


@case(r"record 0: T_pointcloud_camera is missing; expected the 4x4")
def taichi_no_pose(root):
    taichi(root, T_pointcloud_camera=None)


@case(r"T_pointcloud_camera: the pose mirrors the scene")
def taichi_mirrored_pose(root):
    taichi(root, T_pointcloud_camera=np.diag([1.0, 1, -1, 1]).tolist())


@case(r"camera_intrinsics must have no skew")
def taichi_skewed_lens(root):
    taichi(root, camera_intrinsics=[[60, 1.5, 24], [0, 60, 16], [0, 0, 1]])


@case(r"record 1: expected an object with named fields, got int 7")
def taichi_record_is_a_number(root):
    taichi(root)
    tiny.edit_json(root / "train.json", lambda d: d.insert(1, 7))


@case(r"'images/000\.png' is listed before with another pose")
def taichi_two_poses(root):
    taichi(root)
    tiny.edit_json(root / "val.json", lambda d: d[0].update(image_path="images/000.png"))


@case(r"which of a\.json, b\.json is to be trained on")
def taichi_two_lists(root):
    taichi(root)
    (root / "train.json").rename(root / "b.json")
    (root / "val.json").rename(root / "a.json")


@case(r"point_cloud\.parquet: not a readable Parquet file")
def taichi_parquet_torn(root):
    taichi(root)
    path = root / "point_cloud.parquet"
    path.write_bytes(path.read_bytes()[:-20])


@case(r"point_cloud\.parquet: the column z is missing")
def taichi_parquet_without_z(root):
    import pyarrow
    import pyarrow.parquet

    taichi(root)
    pyarrow.parquet.write_table(
        pyarrow.table({"x": [0.5], "y": [1.0]}), root / "point_cloud.parquet"
    )


@case(r"point_cloud\.parquet: claims to unpack")
def taichi_parquet_bomb(root):
    import pyarrow
    import pyarrow.parquet

    taichi(root)
    zeros = pyarrow.array(np.zeros(30_000_000, dtype=np.int8))
    table = pyarrow.table({"x": zeros, "y": zeros, "z": zeros})
    pyarrow.parquet.write_table(table, root / "point_cloud.parquet")

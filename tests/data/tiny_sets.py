# SPDX-License-Identifier: Apache-2.0
"""Tiny data sets in every format, written from one known rig of cameras and points."""

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

WIDTH, HEIGHT, FOCAL = 24, 16, 30.0
CX, CY = 12.75, 7.25
"""A principal point that is off centre, for the formats that can say so."""


@dataclass(frozen=True)
class Rig:
    """Known cameras (OpenCV world_from_camera) and points, and where the points must appear."""

    poses: np.ndarray
    points: np.ndarray

    def pixels(self, cx: float, cy: float, focal: float = FOCAL) -> np.ndarray:
        """N P 2 pixel positions, the centre of the first pixel at 0.5."""
        offset = self.points[None] - self.poses[:, None, :, 3]
        local = np.einsum("npi,nij->npj", offset, self.poses[:, :, :3])
        return focal * local[..., :2] / local[..., 2:] + (cx, cy)


def rig(count: int = 10, radius: float = 4.0, seed: int = 0) -> Rig:
    """Cameras on a wavy circle around the origin that look at it, +z up."""
    rng = np.random.default_rng(seed)
    poses = []
    for k in range(count):
        angle = 2 * np.pi * k / count
        height = radius * 0.3 * np.sin(1.7 * k) + 0.2 * radius
        flat = np.sqrt(radius**2 - height**2)
        poses.append(_look(np.array([flat * np.cos(angle), flat * np.sin(angle), height])))
    return Rig(np.stack(poses), rng.uniform(-0.5, 0.5, (40, 3)))


def forward_rig(count: int = 9) -> Rig:
    """Cameras side by side that all look along +y at points 4 to 10 away."""
    rng = np.random.default_rng(1)
    poses = []
    for _ in range(count):
        center = rng.uniform(-0.4, 0.4, 3)
        axes = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])
        poses.append(np.concatenate([axes, center[:, None]], axis=1))
    points = rng.uniform((-1, 4, -0.8), (1, 10, 0.8), (60, 3))
    return Rig(np.stack(poses), points)


def _look(center: np.ndarray) -> np.ndarray:
    forward = -center / np.linalg.norm(center)
    right = np.cross(forward, (0, 0, 1))
    right /= np.linalg.norm(right)
    return np.stack([right, np.cross(forward, right), forward, center], axis=-1)


def opengl(pose: np.ndarray) -> list[list[float]]:
    """4x4 camera-to-world with axes right, up, back."""
    flipped = pose * (1, -1, -1, 1)
    return np.concatenate([flipped, [[0, 0, 0, 1]]]).tolist()


def save_image(
    path: Path, width: int = WIDTH, height: int = HEIGHT, mode: str = "RGB", seed: int = 0
) -> None:
    """A small random picture."""
    path.parent.mkdir(parents=True, exist_ok=True)
    channels = {"L": (), "RGB": (3,), "RGBA": (4,)}[mode]
    pixels = np.random.default_rng(seed).integers(0, 255, (height, width, *channels))
    Image.fromarray(pixels.astype(np.uint8), mode).save(path)


def write_json(path: Path, data: Any) -> None:
    """JSON as Python writes it (NaN included, which is the point of some tests)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data), encoding="utf-8")


def edit_json(path: Path, change: Callable[[Any], None]) -> None:
    """Read, change in place, write."""
    data = json.loads(path.read_text(encoding="utf-8"))
    change(data)
    write_json(path, data)


def write_blender(root: Path, rig: Rig, test: int = 3) -> None:
    """transforms_train.json and transforms_test.json; the last `test` cameras are tests."""
    angle = 2 * np.arctan(WIDTH / 2 / FOCAL)
    split_at = len(rig.poses) - test
    for split, poses in (("train", rig.poses[:split_at]), ("test", rig.poses[split_at:])):
        frames = []
        for i, pose in enumerate(poses):
            frames.append({"file_path": f"./{split}/r_{i}", "transform_matrix": opengl(pose)})
            save_image(root / split / f"r_{i}.png", mode="RGBA", seed=i)
        write_json(root / f"transforms_{split}.json", {"camera_angle_x": angle, "frames": frames})


def write_transforms(root: Path, rig: Rig, **fields: Any) -> None:
    """transforms.json with pixel intrinsics."""
    frames = []
    for i, pose in enumerate(rig.poses):
        frames.append({"file_path": f"images/{i:03d}.png", "transform_matrix": opengl(pose)})
        save_image(root / f"images/{i:03d}.png", seed=i)
    meta = {"w": WIDTH, "h": HEIGHT, "fl_x": FOCAL, "fl_y": FOCAL, "cx": CX, "cy": CY}
    write_json(root / "transforms.json", {**meta, **fields, "frames": frames})


def quaternion(rotation: np.ndarray) -> np.ndarray:
    """wxyz of a rotation matrix, as the eigenvector of Bar-Itzhack's symmetric matrix."""
    r = rotation
    k = np.array([
        [r[0, 0] - r[1, 1] - r[2, 2], r[0, 1] + r[1, 0], r[0, 2] + r[2, 0], r[2, 1] - r[1, 2]],
        [r[0, 1] + r[1, 0], r[1, 1] - r[0, 0] - r[2, 2], r[1, 2] + r[2, 1], r[0, 2] - r[2, 0]],
        [r[0, 2] + r[2, 0], r[1, 2] + r[2, 1], r[2, 2] - r[0, 0] - r[1, 1], r[1, 0] - r[0, 1]],
        [r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1], np.trace(r)],
    ])  # fmt: skip
    x, y, z, w = np.linalg.eigh(k)[1][:, -1]
    return np.array([w, x, y, z])


def colmap_rows(rig: Rig) -> list[tuple[np.ndarray, np.ndarray]]:
    """Quaternion and translation of camera_from_world for each camera."""
    return [(quaternion(p[:, :3].T), -p[:, :3].T @ p[:, 3]) for p in rig.poses]


def write_colmap_binary(root: Path, rig: Rig, model: str = "sparse/0", images: bool = True) -> None:
    """One PINHOLE camera per image, points as sparse points, every point seen everywhere."""
    folder = root / model
    folder.mkdir(parents=True, exist_ok=True)
    cameras, registered = bytearray(), bytearray()
    pixels = rig.pixels(CX, CY)
    for i, (q, t) in enumerate(colmap_rows(rig)):
        cameras += struct.pack("<IiQQ4d", i + 1, 1, WIDTH, HEIGHT, FOCAL, FOCAL, CX, CY)
        registered += struct.pack("<I7dI", i + 1, *q, *t, i + 1) + f"{i:03d}.png".encode() + b"\0"
        registered += struct.pack("<Q", len(rig.points))
        for j, (x, y) in enumerate(pixels[i]):
            registered += struct.pack("<ddq", x, y, j + 1)
        if images:
            save_image(root / f"images/{i:03d}.png", seed=i)
    count = struct.pack("<Q", len(rig.poses))
    (folder / "cameras.bin").write_bytes(count + cameras)
    (folder / "images.bin").write_bytes(count + registered)
    points = struct.pack("<Q", len(rig.points))
    for j, point in enumerate(rig.points):
        points += struct.pack("<Q3d3BdQ", j + 1, *point, 10, 20, 30, 0.5, 1)
        points += struct.pack("<II", 1, j)
    (folder / "points3D.bin").write_bytes(points)


def write_colmap_text(root: Path, rig: Rig, model: str = "colmap/sparse/0") -> None:
    """The same as text, with one shared OPENCV camera."""
    folder = root / model
    folder.mkdir(parents=True, exist_ok=True)
    camera = f"1 OPENCV {WIDTH} {HEIGHT} {FOCAL} {FOCAL} {CX} {CY} 0 0 0 0"
    (folder / "cameras.txt").write_text(f"# Camera list\n{camera}\n")
    lines = ["# Image list", "# more"]
    for i, (q, t) in enumerate(colmap_rows(rig)):
        numbers = " ".join(f"{value:.17g}" for value in (*q, *t))
        lines += [f"{i + 1} {numbers} 1 my photo {i:03d}.png", "" if i % 2 else "1.5 2.5 -1"]
        save_image(root / f"images/my photo {i:03d}.png", seed=i)
    (folder / "images.txt").write_text("\n".join(lines) + "\n")
    rows = [f"{j + 1} {x} {y} {z} 10 20 30 0.5 1 {j}" for j, (x, y, z) in enumerate(rig.points)]
    (folder / "points3D.txt").write_text("\n".join(rows) + "\n")


def llff_rows(rig: Rig, factor: int = 1) -> np.ndarray:
    """N x 17 rows with the axes (down, right, back)."""
    rows = []
    for pose in rig.poses:
        right, down, forward, center = pose.T
        size = np.array([HEIGHT * factor, WIDTH * factor, FOCAL * factor])
        matrix = np.stack([down, right, -forward, center, size], axis=-1)
        depths = (rig.points - center) @ forward
        rows.append([*matrix.ravel(), depths.min(), depths.max()])
    return np.array(rows)


def write_llff(root: Path, rig: Rig, factor: int = 8) -> None:
    """poses_bounds.npy for images `factor` times as large as those in images_<factor>."""
    folder = f"images_{factor}" if factor > 1 else "images"
    for i in range(len(rig.poses)):
        save_image(root / folder / f"image{i:03d}.png", seed=i)
    np.save(root / "poses_bounds.npy", llff_rows(rig, factor))


def write_deepvoxels(root: Path, rig: Rig, scene: str = "cube") -> None:
    """train, validation and test share the rig's cameras: 6 + 2 + 2."""
    start = 0
    for split, count in (("train", 6), ("validation", 2), ("test", 2)):
        folder = root / split / scene
        (folder / "pose").mkdir(parents=True)
        for i in range(count):
            pose = np.concatenate([rig.poses[start + i], [[0, 0, 0, 1]]])
            text = " ".join(f"{value:.17g}" for value in pose.ravel())
            (folder / "pose" / f"{i:06d}.txt").write_text(text)
            save_image(folder / "rgb" / f"{i:06d}.png", seed=start + i)
        start += count
    lines = [
        f"{2 * FOCAL} {2 * CX} {2 * CY} 0.",
        "0. 0. 0.",
        "1.",
        "1.",
        f"{2 * HEIGHT} {2 * WIDTH}",
    ]
    (root / "train" / scene / "intrinsics.txt").write_text("\n".join(lines) + "\n")


def write_linemod(root: Path, rig: Rig) -> None:
    """Absolute paths of another machine; integer pixel coordinates are pixel centres."""
    matrix = [[FOCAL, 0, CX - 0.5], [0, FOCAL, CY - 0.5], [0, 0, 1]]
    for split, poses in (("train", rig.poses[:7]), ("test", rig.poses[7:])):
        frames = []
        for i, pose in enumerate(poses):
            save_image(root / split / f"{i}.png", seed=i)
            frames.append(
                {
                    "file_path": f"/home/somebody/linemod/cat/{split}/{i}.png",
                    "transform_matrix": opengl(pose),
                    "intrinsic_matrix": matrix,
                }
            )
        meta = {"camera_angle_x": 0.7, "near": 2.4, "far": 5.3, "frames": frames}
        write_json(root / f"transforms_{split}.json", meta)


def write_neus(root: Path, rig: Rig, scale: float = 1.25, shift: float = 0.1) -> None:
    """cameras_sphere.npz, image/ and mask/; integer pixel coordinates are pixel centres."""
    matrix = np.array([[FOCAL, 0, CX - 0.5], [0, FOCAL, CY - 0.5], [0, 0, 1]])
    arrays = {}
    for i, pose in enumerate(rig.poses):
        rotation = pose[:, :3].T
        world = np.eye(4)
        # A projection matrix is defined up to a factor; the parser must not care.
        world[:3] = -2.5 * matrix @ np.concatenate([rotation, -rotation @ pose[:, 3:]], axis=1)
        arrays[f"world_mat_{i}"] = world
        arrays[f"scale_mat_{i}"] = np.diag([scale, scale, scale, 1.0])
        arrays[f"scale_mat_{i}"][:3, 3] = shift
        save_image(root / f"image/{i:06d}.png", seed=i)
        save_image(root / f"mask/{i:03d}.png", mode="L", seed=i)
    np.savez(root / "cameras_sphere.npz", **arrays)


def write_taichi(root: Path, rig: Rig, val: int = 3) -> None:
    """train.json, val.json (the last `val` cameras) and point_cloud.parquet.

    Image paths are those of another working folder, and matrices are for images of twice the size.
    """
    matrix = [[2 * FOCAL, 0, 2 * CX], [0, 2 * FOCAL, 2 * CY], [0, 0, 1]]
    split_at = len(rig.poses) - val
    records = []
    for i, pose in enumerate(rig.poses):
        save_image(root / f"images/{i:03d}.png", seed=i)
        records.append(
            {
                "image_path": f"data/somewhere/images/{i:03d}.png",
                "T_pointcloud_camera": np.concatenate([pose, [[0, 0, 0, 1]]]).tolist(),
                "camera_intrinsics": matrix,
                "camera_height": 2 * HEIGHT,
                "camera_width": 2 * WIDTH,
                "camera_id": 0,
            }
        )
    write_json(root / "train.json", records[:split_at])
    write_json(root / "val.json", records[split_at:])
    write_parquet(root / "point_cloud.parquet", rig.points)


def write_parquet(path: Path, points: np.ndarray, **columns: Any) -> None:
    """Points as a table with the columns x, y, z and red 10, green 20, blue 30."""
    import pyarrow
    import pyarrow.parquet

    table = dict(zip("xyz", points.astype(np.float32).T, strict=True))
    colors = {
        name: np.full(len(points), value) for name, value in zip("rgb", (10, 20, 30), strict=True)
    }
    pyarrow.parquet.write_table(pyarrow.table({**table, **colors, **columns}), path)

# SPDX-License-Identifier: Apache-2.0
"""A scene written as a data set of the taichi Gaussian-splatting system, in the user's frame."""

import json
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from diorama.cameras import CameraModel, Cameras, undistort_image
from diorama.cameras.straight import is_straight
from diorama.data.image_store import load_rgba
from diorama.data.parsers.taichi import POINTS
from diorama.data.paths import disk_error, relative_name
from diorama.data.scene import PointCloud, Scene
from diorama.errors import UserError
from diorama.export.png import write_png


def write_taichi_dataset(scene: Scene, folder: Path) -> list[Path]:
    """Write train.json, val.json, point_cloud.parquet and PNG images; returns the first three.

    Images have the size that training uses and no distortion. val.json holds the test images (or
    those of val, where there is no test); it and the points are left out where there are none.
    """
    if not scene.has_files:
        raise ValueError("scene was read back from a run and has no images; load its data set")
    _make_empty(folder)
    written = []
    done: dict[int, dict[str, Any]] = {}
    for name, indices in (
        ("train", scene.splits["train"]),
        ("val", scene.splits["test"] or scene.splits["val"]),
    ):
        for index in indices:
            done[index] = done.get(index) or _record(scene, index, folder)
        if indices:
            written.append(folder / f"{name}.json")
            _write_text(written[-1], json.dumps([done[i] for i in indices], indent=1))
    if scene.points is not None:
        written.append(folder / POINTS)
        _write_points(scene, scene.points, written[-1])
    return written


def _make_empty(folder: Path) -> None:
    """A new or empty folder: nothing that is there already can come to harm."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        is_empty = not any(folder.iterdir())
    except OSError as error:
        raise disk_error(folder, error) from error
    if not is_empty:
        raise UserError(f"{folder}: it is not empty; name a new folder for the data set.")


def _record(scene: Scene, index: int, folder: Path) -> dict[str, Any]:
    """The record of one image, which is written on the way."""
    rgba, camera = load_rgba(scene, index), scene.cameras[index]
    model = int(camera.model[0])
    if model == int(CameraModel.EQUIRECTANGULAR):
        raise UserError(f"{scene.root}: it has panoramas, which this data format cannot hold.")
    if model != int(CameraModel.PERSPECTIVE) or not is_straight(camera):
        rgba, camera = undistort_image(rgba, camera)
    name = relative_name(scene.frames[index].name, f"{scene.root}: frames")
    name = name if name.lower().endswith(".png") else f"{name}.png"
    is_opaque = bool((rgba[..., 3] == 255).all())
    write_png(folder / name, rgba[..., :3] if is_opaque else rgba)
    return {
        "image_path": name,
        "T_pointcloud_camera": _user_pose(scene, camera).tolist(),
        "camera_intrinsics": _matrix(camera).tolist(),
        "camera_height": camera.height(),
        "camera_width": camera.width(),
        "camera_id": index,
    }


def _user_pose(scene: Scene, camera: Cameras) -> Float[Tensor, "4 4"]:
    pose = torch.eye(4, dtype=torch.float64)
    user_from_scene = scene.scene_from_user.inverse()
    pose[:3] = user_from_scene.apply_to_poses(camera.world_from_camera[0].double())
    return pose


def _matrix(camera: Cameras) -> Float[Tensor, "3 3"]:
    fx, fy, cx, cy = camera.intrinsics[0].double().tolist()
    return torch.tensor([[fx, 0, cx], [0, fy, cy], [0, 0, 1]], dtype=torch.float64)


def _write_text(path: Path, text: str) -> None:
    try:
        path.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise disk_error(path, error) from error


def _write_points(scene: Scene, points: PointCloud, path: Path) -> None:
    """x y z as float32 and r g b in 0..255, the columns that the system looks for."""
    import pyarrow
    import pyarrow.parquet

    xyz = scene.scene_from_user.inverse().apply(points.xyz.double()).float()
    columns = dict(zip("xyz", xyz.T.numpy(), strict=True))
    colors = dict(zip("rgb", points.rgb.T.numpy(), strict=True))
    try:
        pyarrow.parquet.write_table(pyarrow.table({**columns, **colors}), path)
    except OSError as error:
        raise disk_error(path, error) from error

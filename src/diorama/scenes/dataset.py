# SPDX-License-Identifier: Apache-2.0
"""Photographs of a procedural scene in the layout of NeRF's Blender data sets."""

import hashlib
import json
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from diorama.cameras import Cameras, flip_yz, look_at
from diorama.scenes.procedural import ProceduralScene

GENERATOR_VERSION = 2
"""Raised whenever the same recipe gives other files: cached folders of older versions are left."""

CAMERA_ANGLE_X = 0.6911112070083618
"""Horizontal field of view in radians, that of the Blender scenes."""

CAMERA_RADIUS = 4.0311289
"""Distance from the origin, that of the Blender scenes: near 2 and far 6 enclose the scene."""

_GOLDEN_TURN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class DatasetRecipe:
    """What determines every byte of a data set."""

    name: str
    size: int
    num_train: int
    num_val: int
    num_test: int
    supersampling: int

    def __post_init__(self) -> None:
        for field, low, high in (
            ("size", 8, 4096),
            ("num_train", 1, 10_000),
            ("num_val", 0, 10_000),
            ("num_test", 0, 10_000),
            ("supersampling", 1, 8),
        ):
            value = getattr(self, field)
            if not low <= value <= high:
                raise ValueError(f"{field} must be between {low} and {high}, got {value}")

    def to_plain(self) -> dict[str, Any]:
        """For the manifest."""
        return {"generator_version": GENERATOR_VERSION, **asdict(self)}

    def digest(self) -> str:
        """Short name of these parameters and this generator."""
        return hashlib.sha256(json.dumps(self.to_plain()).encode()).hexdigest()[:12]


def split_poses(split: str, count: int) -> Float[Tensor, "K 3 4"]:
    """OpenCV poses that look at the origin.

    Training and validation views are spread evenly over the sky between 4 and 75 degrees (a golden
    spiral, each with its own start); test views are a turntable at 30 degrees.
    """
    poses = []
    for i in range(count):
        if split == "test":
            turn, height = (i + 0.5) / count - 0.25, math.sin(math.radians(30))
        else:
            fraction = (i + 0.5) / count
            low, high = math.sin(math.radians(4)), math.sin(math.radians(75))
            turn = i * _GOLDEN_TURN + (0.37 if split == "val" else 0.0)
            height = low + (high - low) * fraction
        across = math.sqrt(1 - height * height) * CAMERA_RADIUS
        angle = 2 * math.pi * turn
        eye = (across * math.cos(angle), across * math.sin(angle), CAMERA_RADIUS * height)
        poses.append(look_at(eye, (0.0, 0.0, 0.0)))
    return torch.stack(poses) if poses else torch.zeros(0, 3, 4)


def split_cameras(split: str, count: int, size: int) -> Cameras:
    """The cameras of a split, with the focal length that readers compute from camera_angle_x."""
    focal = 0.5 * size / math.tan(0.5 * CAMERA_ANGLE_X)
    return Cameras.pinhole(split_poses(split, count), focal, focal, size / 2, size / 2, size, size)


def write_dataset(scene: ProceduralScene, recipe: DatasetRecipe, folder: Path) -> None:
    """transforms_{train,val,test}.json and {train,val,test}/r_<i>.png under ``folder``."""
    names, cameras = [], []
    for split in ("train", "val", "test"):
        count = getattr(recipe, f"num_{split}")
        if count == 0:
            continue
        views = split_cameras(split, count, recipe.size)
        (folder / split).mkdir()
        frames = [
            {"file_path": f"./{split}/r_{i}", "transform_matrix": _opengl_matrix(pose)}
            for i, pose in enumerate(views.world_from_camera)
        ]
        text = json.dumps({"camera_angle_x": CAMERA_ANGLE_X, "frames": frames}, indent=1)
        (folder / f"transforms_{split}.json").write_text(text + "\n", encoding="utf-8")
        names += [folder / split / f"r_{i}.png" for i in range(count)]
        cameras.append(views)
    _photograph(scene, Cameras.cat(cameras), names, recipe.supersampling)


def _opengl_matrix(pose: Float[Tensor, "3 4"]) -> list[list[float]]:
    return [*flip_yz(pose).tolist(), [0.0, 0.0, 0.0, 1.0]]


def _photograph(
    scene: ProceduralScene, cameras: Cameras, names: list[Path], supersampling: int
) -> None:
    """Render and save all views, in groups large enough to be fast, on torch's number of threads.

    Each group is the work of one thread, so that the bytes do not depend on how many there are.
    """
    rays_each = (cameras.width() * supersampling) ** 2
    group = max(1, min(8, (1 << 20) // rays_each))
    starts = range(0, len(names), group)

    def work(start: int) -> None:
        images = scene.render_rgba(cameras[start : start + group], supersampling)
        for image, name in zip(images, names[start : start + group], strict=True):
            save_png(image, name)

    assert scene.grid is not None, "built before the threads share it"
    with _torch_threads_restored() as count, _single_threaded_workers(count) as pool:
        for _ in pool.map(work, starts):
            pass


def _single_threaded_workers(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, initializer=torch.set_num_threads, initargs=(1,))


@contextmanager
def _torch_threads_restored() -> Iterator[int]:
    """torch.set_num_threads in a worker also sets what later threads start with; undo that."""
    num_threads = torch.get_num_threads()
    try:
        yield num_threads
    finally:
        torch.set_num_threads(num_threads)


def save_png(rgba: Float[Tensor, "H W 4"], path: Path) -> None:
    """8-bit RGBA with straight alpha."""
    from PIL import Image

    pixels = (rgba * 255).round().clamp(0, 255).to(torch.uint8).numpy()
    Image.fromarray(pixels).save(path, compress_level=6)

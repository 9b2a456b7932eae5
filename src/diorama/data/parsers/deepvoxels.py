# SPDX-License-Identifier: Apache-2.0
"""DeepVoxels data: train|validation|test/<scene>/{rgb,pose} and intrinsics.txt."""

import math
from pathlib import Path

import numpy as np

from diorama.cameras import Similarity
from diorama.config.data import DataConfig
from diorama.data.assemble import assemble
from diorama.data.bounds import cube
from diorama.data.draft import Draft, DraftFrame, Lens
from diorama.data.images import image_size
from diorama.data.paths import is_file, is_folder, list_folder, list_images, read_bytes
from diorama.data.pose_check import checked_pose, repair_note
from diorama.data.scene import Scene
from diorama.errors import UserError

MAX_TEXT = 2**20
_FOLDERS = {"train": ("train",), "val": ("validation", "val"), "test": ("test",)}


def detect(root: Path) -> str | None:
    """A sentence when a training folder with rgb, pose and intrinsics.txt is there."""
    scenes = _scenes(root)
    if not scenes:
        return None
    return f"DeepVoxels data: {scenes[0].relative_to(root).as_posix()}/{{rgb,pose}}."


def _scenes(root: Path) -> list[Path]:
    """The training folders under `root`: train/<scene>, or train itself."""
    train = root / "train"
    if not is_folder(train):
        return []
    options = [train, *(entry for entry in list_folder(train) if is_folder(entry))]
    return [
        folder
        for folder in options
        if is_folder(folder / "pose")
        and is_folder(folder / "rgb")
        and _intrinsics_file(folder, root)
    ]


def _intrinsics_file(folder: Path, root: Path) -> Path | None:
    options = (folder / "intrinsics.txt", root / "intrinsics.txt")
    return next((path for path in options if is_file(path)), None)


def parse(root: Path, config: DataConfig) -> Scene:
    """The one scene under `root`, in its own coordinates."""
    scenes = _scenes(root)
    if not scenes:
        raise UserError(f"{root}: no train/<scene> with rgb, pose and intrinsics.txt.")
    if len(scenes) > 1:
        names = ", ".join(folder.name for folder in scenes)
        raise UserError(f"{root}: holds several scenes ({names}); keep one per data folder.")
    draft = Draft("deepvoxels", root, [], kind="object", background=(1.0, 1.0, 1.0))
    draft.own_frame, draft.path_hint, draft.splits = Similarity.identity(), "test", {}
    tail = scenes[0].relative_to(root / "train")
    repaired = 0
    for split, names in _FOLDERS.items():
        folder = next((root / n / tail for n in names if is_folder(root / n / tail / "pose")), None)
        if folder is None:
            continue
        found, count = _read_folder(folder, root)
        repaired += count
        draft.splits[split] = list(range(len(draft.frames), len(draft.frames) + len(found)))
        draft.frames += found
    draft.notes += repair_note(repaired)
    distance = np.mean([np.linalg.norm(draft.frames[i].pose[:, 3]) for i in draft.splits["train"]])
    if distance > 1:
        draft.near_far = (float(distance) - 1, float(distance) + 1)
        draft.box = cube(1.0)
    return assemble(draft, config)


def _read_folder(folder: Path, root: Path) -> tuple[list[DraftFrame], int]:
    """The frames of one split; images and poses are paired in the order of their names."""
    images = list_images(folder / "rgb")
    poses = [path for path in list_folder(folder / "pose") if path.suffix == ".txt"]
    if not images or len(images) != len(poses):
        raise UserError(f"{folder}: {len(images)} images in rgb but {len(poses)} poses in pose.")
    intrinsics = _intrinsics_file(folder, root) or _intrinsics_file(_scenes(root)[0], root)
    assert intrinsics is not None, "a scene was found by its intrinsics"
    frames, repaired = [], 0
    for image, path in zip(images, poses, strict=True):
        numbers = _numbers(path)
        if len(numbers) != 16:
            raise UserError(f"{path}: expected the 16 numbers of a 4x4 matrix, got {len(numbers)}.")
        lens, is_inverse = _read_intrinsics(intrinsics, image_size(image))
        matrix = np.array(numbers).reshape(4, 4)
        pose, was_repaired = checked_pose(matrix, str(path))
        if is_inverse:
            rotation = pose[:, :3].T
            pose = np.concatenate([rotation, -(rotation @ pose[:, 3:])], axis=1)
        repaired += was_repaired
        frames.append(DraftFrame(image.relative_to(root).as_posix(), image, pose, lens))
    return frames, repaired


def _read_intrinsics(path: Path, size: tuple[int, int]) -> tuple[Lens, bool]:
    """Lines: `f cx cy ...`, the grid's centre, near, scale, `height width`, 1 for inverse poses.

    As in the original code the focal length follows the height and the centre each side.
    """
    lines = [line for line in _text(path).splitlines() if line.strip()]
    rows = [[_number(word, path) for word in line.split()] for line in lines]
    if len(rows) < 5 or len(rows[0]) < 3 or len(rows[4]) != 2:
        raise UserError(f"{path}: expected 'f cx cy', 3 more lines, then 'height width'.")
    focal, cx, cy = rows[0][:3]
    height, width = rows[4]
    if not (focal > 0 and height >= 1 and width >= 1):
        raise UserError(f"{path}: focal length and image size must be positive.")
    focal = focal * size[1] / height
    lens = Lens(
        width=size[0], height=size[1], fx=focal, fy=focal,
        cx=cx * size[0] / width, cy=cy * size[1] / height,
    )  # fmt: skip
    return lens, len(rows) > 5 and rows[5] == [1.0]


def _text(path: Path) -> str:
    try:
        return read_bytes(path, MAX_TEXT).decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not a text file.") from error


def _numbers(path: Path) -> list[float]:
    return [_number(word, path) for word in _text(path).split()]


def _number(word: str, path: Path) -> float:
    try:
        value = float(word)
    except ValueError as error:
        raise UserError(f"{path}: {word!r:.40} is not a number.") from error
    if not math.isfinite(value):
        raise UserError(f"{path}: {word!r:.40} is not a finite number.")
    return value

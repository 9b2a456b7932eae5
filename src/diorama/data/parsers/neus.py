# SPDX-License-Identifier: Apache-2.0
"""IDR / NeuS data: cameras_sphere.npz with projection matrices, images and object masks."""

from pathlib import Path

import numpy as np
import torch

from diorama.cameras import Similarity
from diorama.config.data import DataConfig
from diorama.data.array_file import read_npz
from diorama.data.assemble import assemble
from diorama.data.bounds import cube
from diorama.data.draft import Draft, DraftFrame, Lens
from diorama.data.images import image_size
from diorama.data.paths import is_file, list_images
from diorama.data.pose_check import checked_pose
from diorama.data.scene import Scene
from diorama.errors import UserError

CAMERA_FILES = ("cameras_sphere.npz", "cameras.npz", "cameras_large.npz")


def detect(root: Path) -> str | None:
    """A sentence when `root` holds one of the camera files."""
    name = next((name for name in CAMERA_FILES if is_file(root / name)), None)
    return f"IDR / NeuS data: {name}." if name else None


def parse(root: Path, config: DataConfig) -> Scene:
    """The scene in the frame of scale_mat: the object fills the unit sphere."""
    path = next((root / name for name in CAMERA_FILES if is_file(root / name)), None)
    if path is None:
        raise UserError(f"{root}: no {' or '.join(CAMERA_FILES)}.")
    arrays = read_npz(path)
    images = (
        list_images(root / "image") or list_images(root / "images") or list_images(root / "rgb")
    )
    if not images:
        raise UserError(f"{root}: no images in the folder image beside {path.name}.")
    numbers = _numbers(images, arrays, path)
    masks = _masks(root, images)
    draft = Draft("neus", root, [], kind="object", masks_are_alpha=True)
    skewed = 0
    for image, number, mask in zip(images, numbers, masks, strict=True):
        where = f"{path}: world_mat_{number}"
        intrinsics, pose = decompose(_matrix(arrays, f"world_mat_{number}", path), where)
        skewed += abs(intrinsics[0, 1]) > 1e-3 * intrinsics[0, 0]
        name = image.relative_to(root).as_posix()
        draft.frames.append(DraftFrame(name, image, pose, _lens(intrinsics, image), mask))
    if skewed:
        draft.notes.append(f"{skewed} cameras have skewed pixels; the skew was dropped.")
    draft.own_frame = _unit_sphere(_matrix(arrays, f"scale_mat_{numbers[0]}", path), path)
    draft.box = cube(1.0)
    return assemble(draft, config)


def decompose(matrix: np.ndarray, where: str) -> tuple[np.ndarray, np.ndarray]:
    """K (3 x 3, K[2, 2] = 1) and the pose (3 x 4 world_from_camera) of P = K [R | t]."""
    projection = matrix[:3, :4]
    if np.abs(projection).max() > 1e12:
        raise UserError(f"{where} is not a projection matrix.")
    # RQ by QR of the reversed matrix; signs make K's diagonal positive.
    turned, upper = np.linalg.qr(projection[::-1, :3].T)
    upper, turned = upper.T[::-1, ::-1], turned.T[::-1]
    signs = np.where(np.diag(upper) < 0, -1.0, 1.0)
    intrinsics, rotation = upper * signs, turned * signs[:, None]
    if not np.isfinite(intrinsics).all() or np.abs(np.diag(intrinsics)).min() < 1e-9:
        raise UserError(f"{where} is not a projection matrix.")
    translation = np.linalg.solve(intrinsics, projection[:, 3])
    if np.linalg.det(rotation) < 0:
        # P is defined up to its sign, which a rotation is not.
        rotation, translation = -rotation, -translation
    pose = np.concatenate([rotation.T, -(rotation.T @ translation)[:, None]], axis=1)
    return intrinsics / intrinsics[2, 2], checked_pose(pose, where)[0]


def _lens(intrinsics: np.ndarray, image: Path) -> Lens:
    """Pixel centres are integers in this format: the principal point moves by half a pixel."""
    width, height = image_size(image)
    fx, fy = float(intrinsics[0, 0]), float(intrinsics[1, 1])
    cx, cy = float(intrinsics[0, 2]) + 0.5, float(intrinsics[1, 2]) + 0.5
    if not (abs(cx - width / 2) < 2 * width and abs(cy - height / 2) < 2 * height):
        raise UserError(
            f"{image}: the image is {width} x {height} pixels but its camera looks through pixel"
            f" ({cx:.0f}, {cy:.0f}); use the images that the cameras were computed from."
        )
    return Lens(width=width, height=height, fx=fx, fy=fy, cx=cx, cy=cy)


def _matrix(arrays: dict[str, np.ndarray], key: str, path: Path) -> np.ndarray:
    matrix = arrays.get(key)
    if matrix is None or matrix.shape not in ((4, 4), (3, 4)):
        got = "is missing" if matrix is None else f"has the shape {matrix.shape}"
        raise UserError(f"{path}: {key} {got}; expected a 4x4 matrix.")
    return matrix


def _numbers(images: list[Path], arrays: dict[str, np.ndarray], path: Path) -> list[int]:
    """Which camera belongs to each image: the number in its name, or else its place."""
    stems = [image.stem for image in images]
    if all(stem.isdecimal() and len(stem) < 10 for stem in stems):
        numbers = [int(stem) for stem in stems]
        if len(set(numbers)) == len(numbers) and all(f"world_mat_{n}" in arrays for n in numbers):
            return numbers
    count = sum(key.startswith("world_mat_") and "inv" not in key for key in arrays)
    if count != len(images):
        raise UserError(f"{path}: has {count} world_mat matrices for {len(images)} images.")
    return list(range(len(images)))


def _masks(root: Path, images: list[Path]) -> list[Path | None]:
    """The mask of each image: the same stem, or the same number, or the same place."""
    masks = list_images(root / "mask") or list_images(root / "masks")
    if not masks:
        return [None] * len(images)
    by_stem = {mask.stem: mask for mask in masks}
    if all(image.stem in by_stem for image in images):
        return [by_stem[image.stem] for image in images]
    by_number = {int(m.stem): m for m in masks if m.stem.isdecimal() and len(m.stem) < 10}
    numbers = [int(i.stem) if i.stem.isdecimal() and len(i.stem) < 10 else -1 for i in images]
    if all(number in by_number for number in numbers):
        return [by_number[number] for number in numbers]
    if len(masks) != len(images):
        raise UserError(f"{root}: {len(masks)} masks do not match {len(images)} images.")
    return list(masks)


def _unit_sphere(matrix: np.ndarray, path: Path) -> Similarity:
    """scene_from_user as the inverse of scale_mat, which maps the unit sphere to the world."""
    scale = float(np.cbrt(np.linalg.det(matrix[:3, :3])))
    if not 1e-9 < scale < 1e9:
        raise UserError(f"{path}: scale_mat is not a uniform scale and a translation.")
    pose, _ = checked_pose(
        np.concatenate([matrix[:3, :3] / scale, matrix[:3, 3:]], axis=1), f"{path}: scale_mat"
    )
    user_from_scene = Similarity(scale, torch.from_numpy(pose[:, :3]), torch.from_numpy(pose[:, 3]))
    return user_from_scene.inverse()

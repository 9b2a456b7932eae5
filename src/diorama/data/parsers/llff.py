# SPDX-License-Identifier: Apache-2.0
"""LLFF data: poses_bounds.npy, a row of 17 numbers per image in the order of the sorted names."""

from pathlib import Path

import numpy as np
import torch

from diorama.cameras.paths import spherify
from diorama.config.data import DataConfig
from diorama.data.array_file import read_npy
from diorama.data.assemble import assemble
from diorama.data.draft import Draft, DraftFrame, Lens
from diorama.data.image_folders import image_folders
from diorama.data.normalize import forward_frame, looks_forward
from diorama.data.paths import is_file, list_images
from diorama.data.pose_check import checked_pose, repair_note
from diorama.data.scene import Scene
from diorama.errors import UserError


def detect(root: Path) -> str | None:
    """A sentence when `root` holds poses_bounds.npy."""
    return "LLFF data: poses_bounds.npy." if is_file(root / "poses_bounds.npy") else None


def parse(root: Path, config: DataConfig) -> Scene:
    """The scene in LLFF's frame: average camera at the origin, nearest depth at 4/3."""
    path = root / "poses_bounds.npy"
    rows = read_npy(path)
    if rows.ndim != 2 or rows.shape[1] != 17 or not len(rows):
        raise UserError(f"{path}: expected one row of 17 numbers per image, got {rows.shape}.")
    near, far = float(rows[:, 15:].min()), float(rows[:, 15:].max())
    if not 1e-6 < near < far < 1e8:
        raise UserError(f"{path}: the depth bounds must be positive, got {near:g} to {far:g}.")
    folder, images = _images(root, len(rows), path)
    draft = Draft("llff", root, [])
    draft.notes.append(f"Images come from {folder.name}.")
    repaired = 0
    for index, (row, image) in enumerate(zip(rows, images, strict=True)):
        pose, lens, was_repaired = _read_row(row, f"{path}: row {index}")
        repaired += was_repaired
        name = image.relative_to(root).as_posix()
        draft.frames.append(DraftFrame(name, image, pose, lens))
    draft.notes += repair_note(repaired)
    _choose_frame(draft, near, far)
    return assemble(draft, config)


def _images(root: Path, count: int, path: Path) -> tuple[Path, list[Path]]:
    """The largest images for which there is one file per row."""
    found = [(folder, list_images(folder)) for _, folder in image_folders(root)]
    for folder, images in found:
        if len(images) == count:
            return folder, images
    seen = ", ".join(f"{folder.name} has {len(images)}" for folder, images in found)
    raise UserError(
        f"{path}: has {count} rows, but no folder images or images_N holds as many images"
        f" ({seen or 'there is none'})."
    )


def _read_row(row: np.ndarray, where: str) -> tuple[np.ndarray, Lens, bool]:
    """3 x 5 [axes | centre | height, width, focal]; the axes are down, right and back."""
    matrix = row[:15].reshape(3, 5)
    height, width, focal = matrix[:, 4]
    if not (height >= 1 and width >= 1 and focal > 0):
        raise UserError(f"{where}: image size {width:g} x {height:g} or focal {focal:g} cannot be.")
    down, right, back, center = matrix[:, 0], matrix[:, 1], matrix[:, 2], matrix[:, 3]
    pose, repaired = checked_pose(np.stack([right, down, -back, center], axis=-1), where)
    return pose, Lens(width=width, height=height, fx=focal, fy=focal), repaired


def _choose_frame(draft: Draft, near: float, far: float) -> None:
    """Forward-facing: recentred, 0.75 rule. Otherwise: cameras on the unit sphere, RMS radius 1."""
    poses = torch.from_numpy(np.stack([frame.pose for frame in draft.frames]))
    if len(draft.frames) == 1 or looks_forward(poses):
        draft.kind, draft.path_hint = "forward-facing", "spiral"
        draft.own_frame = forward_frame(poses, near)
    else:
        draft.kind, draft.path_hint = "unbounded", "sphere"
        try:
            draft.own_frame = spherify(poses).similarity
        except ValueError as error:
            raise UserError(f"{draft.root / 'poses_bounds.npy'}: {error}.") from error
    scale = draft.own_frame.scale
    draft.near_far = (0.9 * near * scale, far * scale)

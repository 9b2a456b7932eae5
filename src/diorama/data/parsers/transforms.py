# SPDX-License-Identifier: Apache-2.0
"""`transforms.json` as nerfstudio, instant-ngp and Neuralangelo write it."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from diorama.cameras import CameraModel, Similarity
from diorama.config.data import DataConfig
from diorama.data.assemble import assemble
from diorama.data.bounds import cube
from diorama.data.draft import Draft
from diorama.data.json_file import Fields, read_json
from diorama.data.parsers.json_frames import FrameList, read_frames
from diorama.data.parsers.ply_points import read_ply
from diorama.data.parsers.taichi import is_record_list
from diorama.data.paths import inside, is_file, relative_name
from diorama.data.pose_check import checked_pose, repair_note
from diorama.data.scene import SPLITS, Scene, vector
from diorama.errors import UserError

NGP_SCALE = 0.33
"""instant-ngp's default factor from file coordinates to its unit cube."""


def detect(root: Path) -> str | None:
    """A sentence when `root` is a JSON file (not the taichi system's) or holds transforms.json."""
    if root.suffix.lower() == ".json":
        is_ours = is_file(root) and not is_record_list(root)
        return f"nerfstudio / instant-ngp data: {root.name}." if is_ours else None
    if not is_file(root / "transforms.json"):
        return None
    return "nerfstudio / instant-ngp data: transforms.json."


def parse(root: Path, config: DataConfig) -> Scene:
    """The scene of a folder with transforms.json, or of the JSON file itself."""
    path = root if root.suffix.lower() == ".json" else root / "transforms.json"
    folder, meta = path.parent, read_json(path)
    found = read_frames(meta, folder)
    if not found.frames:
        raise UserError(f"{path}: none of the {found.listed} listed images exists.")
    _crop_fisheyes(meta, found)
    draft = Draft("transforms", folder, found.frames)
    draft.notes += _notes(meta, found)
    draft.splits = _splits(meta, found)
    draft.user_frame = _user_frame(meta)
    _choose_frame(meta, draft)
    _choose_orientation(meta, draft)
    _add_points(meta, draft)
    return assemble(draft, config)


def _notes(meta: Fields, found: FrameList) -> list[str]:
    notes = repair_note(found.repaired)
    if found.missing:
        notes.append(
            f"{found.missing} of {found.listed} listed images do not exist and were skipped."
        )
    return notes


def _crop_fisheyes(meta: Fields, found: FrameList) -> None:
    """The circle that a fisheye lens lights; other lenses fill their image."""
    radius = meta.scale("fisheye_crop_radius")
    if radius is None:
        return
    for frame in found.frames:
        if frame.lens.model == CameraModel.FISHEYE:
            frame.crop_radius = radius


def _splits(meta: Fields, found: FrameList) -> dict[str, list[int]] | None:
    """The lists train_filenames, val_filenames and test_filenames, as positions."""
    position = {frame.name: i for i, frame in enumerate(found.frames)}
    splits: dict[str, list[int]] = {}
    for name in SPLITS:
        listed = meta.items(f"{name}_filenames")
        if listed is None:
            continue
        where = f"{meta.where}: {name}_filenames"
        names = [relative_name(entry, where) for entry in listed]
        splits[name] = [position[entry] for entry in names if entry in position]
        if names and not splits[name]:
            raise UserError(
                f"{where}: none of its {len(names)} names is a frame whose image exists."
            )
    return splits or None


def _user_frame(meta: Fields) -> Similarity | None:
    """The file's coordinates from the user's original ones: x -> s (A x + t)."""
    matrix = meta.array("applied_transform", (3, 4), (4, 4))
    scale = meta.scale("applied_scale")
    if matrix is None and scale is None:
        return None
    if matrix is None:
        matrix = np.eye(4)
    pose, _ = checked_pose(matrix, f"{meta.where}: applied_transform")
    scale = scale or 1.0
    return Similarity(scale, torch.from_numpy(pose[:, :3]), torch.from_numpy(pose[:, 3] * scale))


def _choose_frame(meta: Fields, draft: Draft) -> None:
    """The frame that a Neuralangelo sphere or instant-ngp's aabb_scale define, if any."""
    center, radius = meta.array("sphere_center", (3,)), meta.scale("sphere_radius")
    aabb_scale, scale = meta.scale("aabb_scale"), meta.scale("scale")
    if center is not None and radius is not None:
        draft.own_frame = _shrunk(1 / radius, -center / radius)
        draft.box, draft.kind = cube(1.0), "unbounded"
        box = meta.array("aabb_range", (3, 2))
        if box is not None and (box[:, 0] < box[:, 1]).all():
            box = (box - center[:, None]) / radius
            draft.box = (vector(box[:, 0]), vector(box[:, 1]))
    elif aabb_scale is not None:
        scale = scale or NGP_SCALE
        offset = meta.array("offset", (3,))
        shift = np.zeros(3) if offset is None else offset - 0.5
        draft.own_frame = _shrunk(scale, shift)
        draft.box = cube(aabb_scale / 2)
        draft.kind = None if aabb_scale <= 1 else "unbounded"


def _shrunk(scale: float, shift: Any) -> Similarity:
    return Similarity(scale, torch.eye(3, dtype=torch.float64), torch.from_numpy(shift))


def _choose_orientation(meta: Fields, draft: Draft) -> None:
    wish = meta.text("orientation_override")
    if wish is None:
        return
    if wish not in ("up", "vertical", "pca", "none"):
        raise UserError(f"{meta.where}: orientation_override must be up or none, got {wish!r:.40}.")
    draft.orientation = "none" if wish == "none" else "up"
    if wish in ("vertical", "pca"):
        draft.notes.append(f"orientation_override {wish} is read as up.")


def _add_points(meta: Fields, draft: Draft) -> None:
    if "ply_file_path" not in meta:
        return
    path = inside(draft.root, meta.data["ply_file_path"], f"{meta.where}: ply_file_path")
    if is_file(path):
        draft.xyz, draft.rgb = read_ply(path)
    else:
        draft.notes.append(f"The points {path.name} do not exist and were skipped.")

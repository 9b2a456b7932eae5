# SPDX-License-Identifier: Apache-2.0
"""LINEMOD data as nerf-pytorch reads it: Blender-like files with intrinsics and absolute paths."""

import math
import re
from pathlib import Path, PurePosixPath

import numpy as np

from diorama.cameras import Similarity
from diorama.config.data import DataConfig
from diorama.data.assemble import assemble
from diorama.data.draft import Draft, DraftFrame, Lens
from diorama.data.images import image_size
from diorama.data.json_file import MAX_JSON_BYTES, Fields, read_json
from diorama.data.parsers.json_frames import read_lens
from diorama.data.paths import is_file, read_bytes
from diorama.data.pose_check import checked_pose, opencv_from_opengl, repair_note
from diorama.data.scene import SPLITS, Scene
from diorama.errors import UserError


def detect(root: Path) -> str | None:
    """A sentence when transforms_train.json gives each frame an intrinsic_matrix."""
    path = root / "transforms_train.json"
    if not is_file(path) or b'"intrinsic_matrix"' not in read_bytes(path, MAX_JSON_BYTES):
        return None
    return "LINEMOD data: transforms_train.json with intrinsic_matrix."


def parse(root: Path, config: DataConfig) -> Scene:
    """The scene in the file's coordinates, with near and far rounded outwards."""
    draft = Draft("linemod", root, [], kind="object", own_frame=Similarity.identity())
    splits: dict[str, list[int]] = {}
    ranges, repaired = [], 0
    for split in SPLITS:
        path = root / f"transforms_{split}.json"
        if split != "train" and not is_file(path):
            continue
        meta = read_json(path)
        ranges.append((meta.number("near"), meta.number("far")))
        splits[split] = []
        for index, entry in enumerate(meta.items("frames") or []):
            frame, was_repaired = _frame(meta, Fields(entry, f"{path}: frame {index}"), root)
            repaired += was_repaired
            splits[split].append(_position(frame, draft.frames))
    if not draft.frames:
        raise UserError(f"{root / 'transforms_train.json'}: frames is missing or empty.")
    draft.splits = splits
    draft.notes += repair_note(repaired)
    draft.near_far = _near_far(ranges)
    return assemble(draft, config)


def _position(frame: DraftFrame, frames: list[DraftFrame]) -> int:
    """The frame's place; an image that val and test share is listed once."""
    for index, known in enumerate(frames):
        if known.name == frame.name and np.allclose(known.pose, frame.pose):
            return index
    frames.append(frame)
    return len(frames) - 1


def _frame(meta: Fields, frame: Fields, root: Path) -> tuple[DraftFrame, bool]:
    path = mapped_file(root, frame)
    matrix = frame.array("transform_matrix", (4, 4), (3, 4))
    if matrix is None:
        frame.refuse("transform_matrix", "the 4x4 camera-to-world matrix")
    pose, repaired = checked_pose(matrix, f"{frame.where}: transform_matrix")
    name = path.relative_to(root).as_posix()
    return DraftFrame(name, path, opencv_from_opengl(pose), _lens(meta, frame, path)), repaired


def mapped_file(root: Path, frame: Fields, key: str = "file_path") -> Path:
    """The file in the data folder with the longest tail of the path that the frame names."""
    name = frame.text(key)
    if not name or "\0" in name or len(name) > 4096:
        frame.refuse(key, "the image's path")
    clean = re.sub(r"^[A-Za-z]:", "", name.replace("\\", "/"))
    parts = [part for part in PurePosixPath(clean).parts if part not in ("/", "//")]
    if ".." in parts:
        raise UserError(f"{frame.where}: the file name {name!r} leads out of the data folder.")
    for start in range(len(parts)):
        path = root.joinpath(*parts[start:])
        if is_file(path):
            return path
    raise UserError(f"{frame.where}: no file in {root} matches the end of {name!r}.")


def _lens(meta: Fields, frame: Fields, path: Path) -> Lens:
    """The frame's own 3x3 matrix; its pixel centres are integers, so the centre moves by half."""
    matrix = frame.array("intrinsic_matrix", (3, 3))
    if matrix is None:
        return read_lens(meta, frame)
    if not (matrix[0, 0] > 0 and matrix[1, 1] > 0):
        raise UserError(f"{frame.where}: intrinsic_matrix needs positive focal lengths.")
    width, height = image_size(path)
    (fx, _, cx), (_, fy, cy) = matrix[0].tolist(), matrix[1].tolist()
    width, height = int(meta.positive("w") or width), int(meta.positive("h") or height)
    return Lens(width=width, height=height, fx=fx, fy=fy, cx=cx + 0.5, cy=cy + 0.5)


def _near_far(ranges: list[tuple[float | None, float | None]]) -> tuple[float, float] | None:
    nears = [near for near, _ in ranges if near is not None]
    fars = [far for _, far in ranges if far is not None]
    if not nears or not fars:
        return None
    near, far = float(math.floor(min(nears))), float(math.ceil(max(fars)))
    return (near, far) if 0 <= near < far < 1e8 else None

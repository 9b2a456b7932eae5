# SPDX-License-Identifier: Apache-2.0
"""NeRF-synthetic ("Blender") data: one transforms_<split>.json per split, RGBA images."""

from pathlib import Path

import numpy as np

from diorama.cameras import Similarity
from diorama.config.data import DataConfig
from diorama.data.assemble import assemble
from diorama.data.bounds import cube
from diorama.data.draft import Draft, DraftFrame
from diorama.data.json_file import read_json
from diorama.data.parsers.json_frames import read_frames
from diorama.data.paths import is_file
from diorama.data.pose_check import repair_note
from diorama.data.scene import SPLITS, Scene
from diorama.errors import UserError

USUAL_RADIUS = (3.5, 4.6)
"""Camera distances for which the published near, far and box are meant (they stand at 4.03)."""


def detect(root: Path) -> str | None:
    """A sentence when `root` holds transforms_train.json."""
    if not is_file(root / "transforms_train.json"):
        return None
    return "Blender-style data: transforms_train.json."


def parse(root: Path, config: DataConfig) -> Scene:
    """The scene; cameras keep the coordinates of the file."""
    draft = Draft("blender", root, [], kind="object", background=(1.0, 1.0, 1.0))
    draft.own_frame, draft.path_hint, draft.splits = Similarity.identity(), "circle", {}
    positions: dict[str, int] = {}
    missing = repaired = 0
    for split in SPLITS:
        path = root / f"transforms_{split}.json"
        if split != "train" and not is_file(path):
            continue
        found = read_frames(read_json(path), root)
        missing, repaired = missing + found.missing, repaired + found.repaired
        draft.splits[split] = []
        for frame in found.frames:
            draft.splits[split].append(_position(frame, draft.frames, positions, path))
    if missing:
        draft.notes.append(f"{missing} listed images do not exist and were skipped.")
    draft.notes += repair_note(repaired)
    if draft.frames and not draft.splits["train"]:
        raise UserError(f"{root}: none of the images in transforms_train.json exists.")
    if draft.frames and _is_usual(draft.frames):
        draft.box = cube(1.5)
        draft.near_far = (2.0, 6.0)
    return assemble(draft, config)


def _position(
    frame: DraftFrame, frames: list[DraftFrame], positions: dict[str, int], path: Path
) -> int:
    """The frame's place in the list; an image that two splits share is listed once."""
    known = positions.get(frame.name)
    if known is None:
        positions[frame.name] = len(frames)
        frames.append(frame)
        return len(frames) - 1
    if not np.allclose(frames[known].pose, frame.pose, atol=1e-5):
        raise UserError(f"{path}: the image {frame.name!r} is listed before with another pose.")
    return known


def _is_usual(frames: list[DraftFrame]) -> bool:
    distances = np.array([np.linalg.norm(frame.pose[:, 3]) for frame in frames])
    return bool(USUAL_RADIUS[0] < distances.min() and distances.max() < USUAL_RADIUS[1])

# SPDX-License-Identifier: Apache-2.0
"""The taichi Gaussian-splatting system's data: JSON lists with one record per image."""

from pathlib import Path

import numpy as np

from diorama.config.data import DataConfig
from diorama.data.assemble import assemble
from diorama.data.draft import Draft, DraftFrame, Lens
from diorama.data.json_file import Fields, read_records
from diorama.data.parsers.linemod import mapped_file
from diorama.data.paths import disk_error, is_file, is_folder, list_folder
from diorama.data.pose_check import checked_pose, repair_note, sane_points
from diorama.data.scene import Scene
from diorama.errors import UserError
from diorama.splats import read_points

HEAD_BYTES = 64 * 2**10
POINTS = "point_cloud.parquet"


def detect(root: Path) -> str | None:
    """A sentence when `root` is or holds a list of records with poses to a point cloud."""
    found = [root] if _is_json(root) and is_record_list(root) else _lists_in(root)
    if not found:
        return None
    return f"Data of the taichi Gaussian-splatting system: {found[0].name}."


def parse(root: Path, config: DataConfig) -> Scene:
    """The scene of a folder or of its training file; a val file beside it is its held-out part."""
    train = root if _is_json(root) else _train_file(root)
    val = train.with_name("val".join(train.name.rsplit("train", 1)))
    has_val = val != train and is_file(val)
    draft = Draft("taichi", train.parent, [])
    splits: dict[str, list[int]] = {}
    positions: dict[str, int] = {}
    repaired = 0
    for name, path in (("train", train), ("val", val))[: 2 if has_val else 1]:
        splits[name] = []
        for record in read_records(path):
            frame, was_repaired = _frame(record, draft.root)
            repaired += was_repaired
            splits[name].append(_position(frame, draft.frames, positions, record))
    draft.splits = splits if has_val else None
    draft.notes += repair_note(repaired)
    _add_points(draft)
    return assemble(draft, config)


def is_record_list(path: Path) -> bool:
    """Whether the beginning of a file looks like a JSON list of the system's records."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError as error:
        raise disk_error(path, error) from error
    is_list = head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"[")
    return is_list and b'"T_pointcloud_camera"' in head


def _is_json(path: Path) -> bool:
    return path.suffix.lower() == ".json" and is_file(path)


def _lists_in(folder: Path) -> list[Path]:
    """The files of records in a folder: train.json first, then those called so, then others."""
    if not is_folder(folder):
        return []
    lists = [path for path in list_folder(folder) if _is_json(path) and is_record_list(path)]
    return sorted(lists, key=lambda p: (p.name != "train.json", "train" not in p.name, p.name))


def _train_file(folder: Path) -> Path:
    found = _lists_in(folder)
    if not found:
        raise UserError(
            f"{folder}: no train.json there that is a list of records with T_pointcloud_camera."
        )
    is_clear = found[0].name == "train.json" or sum("train" in p.name for p in found) == 1
    if len(found) > 1 and not is_clear:
        names = ", ".join(path.name for path in found[:5])
        raise UserError(f"{folder}: which of {names} is to be trained on? Give --data that file.")
    return found[0]


def _frame(record: Fields, root: Path) -> tuple[DraftFrame, bool]:
    path = mapped_file(root, record, "image_path")
    matrix = record.array("T_pointcloud_camera", (4, 4), (3, 4))
    if matrix is None:
        record.refuse("T_pointcloud_camera", "the 4x4 camera-to-point-cloud matrix")
    pose, repaired = checked_pose(matrix, f"{record.where}: T_pointcloud_camera")
    name = path.relative_to(root).as_posix()
    return DraftFrame(name, path, pose, _lens(record)), repaired


def _lens(record: Fields) -> Lens:
    """The matrix is for an image of camera_width x camera_height; pixel centres are at +0.5."""
    matrix = record.array("camera_intrinsics", (3, 3))
    if matrix is None:
        record.refuse("camera_intrinsics", "the 3x3 matrix of the lens")
    where = f"{record.where}: camera_intrinsics"
    if not (matrix[0, 0] > 0 and matrix[1, 1] > 0):
        raise UserError(f"{where} needs positive focal lengths.")
    expected = np.array(
        [[matrix[0, 0], 0, matrix[0, 2]], [0, matrix[1, 1], matrix[1, 2]], [0, 0, 1]]
    )
    if not np.allclose(matrix, expected, rtol=0, atol=1e-3):
        raise UserError(f"{where} must have no skew and the last row 0 0 1.")
    (fx, _, cx), (_, fy, cy) = matrix[0].tolist(), matrix[1].tolist()
    width, height = record.positive("camera_width"), record.positive("camera_height")
    return Lens(width=width, height=height, fx=fx, fy=fy, cx=cx, cy=cy)


def _position(
    frame: DraftFrame, frames: list[DraftFrame], positions: dict[str, int], record: Fields
) -> int:
    """The frame's place; an image that both files list is one frame."""
    known = positions.setdefault(frame.name, len(frames))
    if known == len(frames):
        frames.append(frame)
    elif not np.allclose(frames[known].pose, frame.pose, atol=1e-5):
        raise UserError(
            f"{record.where}: the image {frame.name!r} is listed before with another pose."
        )
    return known


def _add_points(draft: Draft) -> None:
    """point_cloud.parquet, or the only .parquet file there is."""
    files = [p for p in list_folder(draft.root) if p.suffix.lower() == ".parquet" and is_file(p)]
    chosen = [path for path in files if path.name == POINTS] or files
    if len(chosen) == 1:
        cloud = read_points(chosen[0])
        xyz = cloud.points.double().numpy()
        keep = sane_points(xyz)
        draft.xyz, draft.rgb = xyz[keep], cloud.colors.numpy()[keep]
    elif chosen:
        draft.notes.append(
            f"There are {len(chosen)} .parquet files and none is called {POINTS};"
            " no points were read."
        )

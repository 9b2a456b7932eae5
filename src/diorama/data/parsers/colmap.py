# SPDX-License-Identifier: Apache-2.0
"""COLMAP sparse models, binary or text, with their images, masks and points."""

from pathlib import Path
from types import ModuleType

import numpy as np
import torch

from diorama.config.data import DataConfig
from diorama.data.assemble import assemble
from diorama.data.draft import Draft, DraftFrame
from diorama.data.image_folders import image_folders
from diorama.data.normalize import forward_frame, looks_forward
from diorama.data.parsers import colmap_binary, colmap_text
from diorama.data.parsers.colmap_adjust import adjusted
from diorama.data.parsers.colmap_model import (
    ColmapImage,
    ColmapModel,
    ColmapPoints,
    world_from_camera,
)
from diorama.data.paths import IMAGE_SUFFIXES, is_file, is_folder, list_folder, relative_name
from diorama.data.pose_check import sane_points
from diorama.data.scene import SPLITS, Scene
from diorama.errors import UserError

MODEL_FOLDERS = ("sparse", "colmap/sparse", "colmap", "dense/sparse", "")


def detect(root: Path) -> str | None:
    """A sentence when a model lies in one of the usual places under `root`."""
    models = find_models(root) if is_folder(root) else []
    if not models:
        return None
    folder = models[0].relative_to(root).as_posix()
    more = f" and {len(models) - 1} more" if len(models) > 1 else ""
    return f"COLMAP model in {'the folder itself' if folder == '.' else folder}{more}."


def find_models(root: Path) -> list[Path]:
    """The folders that hold a model, in the order in which they are preferred."""
    found = []
    for place in MODEL_FOLDERS:
        folder = root / place if place else root
        inner = [folder]
        if place and is_folder(folder):
            inner += [entry for entry in list_folder(folder) if is_folder(entry)]
        found += [entry for entry in inner if entry not in found and _encoding(entry)]
    return found


def _encoding(folder: Path) -> str | None:
    """`bin` or `txt` when the folder holds cameras and images in it; binary comes first."""
    for suffix in ("bin", "txt"):
        if is_file(folder / f"cameras.{suffix}") and is_file(folder / f"images.{suffix}"):
            return suffix
    return None


def _reader(folder: Path) -> tuple[ModuleType, str]:
    suffix = _encoding(folder) or "bin"
    return (colmap_binary if suffix == "bin" else colmap_text), suffix


def read_model(folder: Path) -> ColmapModel:
    """The model in one folder; a missing points file is an empty cloud."""
    reader, suffix = _reader(folder)
    points = folder / f"points3D.{suffix}"
    return ColmapModel(
        reader.read_cameras(folder / f"cameras.{suffix}"),
        reader.read_images(folder / f"images.{suffix}"),
        reader.read_points(points) if is_file(points) else ColmapPoints.of([], [], []),
    )


def parse(root: Path, config: DataConfig) -> Scene:
    """The scene of the largest model under `root`."""
    models = find_models(root) if is_folder(root) else []
    if not models:
        raise UserError(f"{root}: no COLMAP model; looked for sparse/0/cameras.bin and the like.")
    folder, notes = _largest(models, root)
    model = read_model(folder)
    where = str(folder / f"images.{_reader(folder)[1]}")
    if not model.images:
        raise UserError(f"{where}: the model has no registered images; run the mapper again.")
    if config.adjust_cameras:
        model, note = adjusted(model, where)
        notes.append(note)
    draft = Draft("colmap", root, [], notes=notes)
    images = _image_folder(root, model.images, where)
    missing = 0
    seen_by: list[np.ndarray] = []
    for image in model.images:
        path = _file_of(images, relative_name(image.name, where))
        if path is None:
            missing += 1
            continue
        draft.frames.append(_frame(image, path, model, root, where))
        seen_by.append(image.point_ids)
    if missing:
        total = len(model.images)
        draft.notes.append(f"{missing} of {total} listed images do not exist and were skipped.")
    _add_points(draft, model.points, seen_by)
    draft.splits = _split_lists(root, draft)
    _choose_frame(draft)
    return assemble(draft, config)


def _largest(models: list[Path], root: Path) -> tuple[Path, list[str]]:
    """The model with the most registered images; the first of equals."""
    if len(models) == 1:
        return models[0], []
    counts = []
    for folder in models:
        reader, suffix = _reader(folder)
        counts.append(reader.count_images(folder / f"images.{suffix}"))
    best = max(range(len(models)), key=lambda i: counts[i])
    name = models[best].relative_to(root).as_posix()
    return models[best], [
        f"Of {len(models)} models {name} was taken: it has the most images ({counts[best]})."
    ]


def _image_folder(root: Path, images: list[ColmapImage], where: str) -> Path:
    """The folder that holds the most of the model's images; the largest size among equals."""
    candidates = [folder for _, folder in image_folders(root)]
    dense = root / "dense" / "images"
    candidates += [dense] if is_folder(dense) else []
    candidates.append(root)
    names = [relative_name(image.name, where) for image in images]
    counts = [sum(_file_of(folder, name) is not None for name in names) for folder in candidates]
    best = max(range(len(candidates)), key=lambda i: counts[i])
    if counts[best] == 0:
        looked_in = ", ".join(str(folder) for folder in candidates)
        raise UserError(
            f"{where}: none of its {len(names)} images was found in {looked_in}; --data must be the"
            " folder that holds images/."
        )
    return candidates[best]


def _file_of(folder: Path, name: str) -> Path | None:
    """The file called `name`, or with another image extension, as converted copies have."""
    path = folder / name
    if is_file(path):
        return path
    others = (path.with_suffix(suffix) for suffix in sorted(IMAGE_SUFFIXES))
    return next((other for other in others if is_file(other)), None)


def _frame(
    image: ColmapImage, path: Path, model: ColmapModel, root: Path, where: str
) -> DraftFrame:
    lens = model.lenses.get(image.camera_id)
    if lens is None:
        raise UserError(
            f"{where}: image {image.name!r} uses camera {image.camera_id}, which is missing."
        )
    name = relative_name(image.name, where)
    return DraftFrame(name, path, world_from_camera(image, where), lens, _mask_of(root, name))


def _mask_of(root: Path, name: str) -> Path | None:
    """masks/<name>, masks/<name>.png (COLMAP's way) or masks/<stem>.png, whichever exists."""
    for folder in (root / "masks", root / "mask"):
        path = folder / name
        for option in (path, path.with_name(path.name + ".png"), path.with_suffix(".png")):
            if is_file(option):
                return option
    return None


def _add_points(draft: Draft, points: ColmapPoints, seen_by: list[np.ndarray]) -> None:
    """The sane points, and which frames saw them; `seen_by` holds the point ids of each frame."""
    is_sane = sane_points(points.xyz)
    if not is_sane.all():
        draft.notes.append(f"{int((~is_sane).sum())} points are not finite and were dropped.")
    points = points.where(is_sane)
    draft.xyz, draft.rgb = points.xyz, points.rgb
    if not len(draft.xyz):
        draft.notes.append("The model has no sparse points; bounds come from the cameras.")
        draft.xyz = draft.rgb = None
        return
    frames, rows, is_known = points.places(seen_by)
    draft.sightings = np.unique(np.stack((frames, rows), axis=1)[is_known], axis=0)


def _split_lists(root: Path, draft: Draft) -> dict[str, list[int]] | None:
    """train_list.txt, val_list.txt and test_list.txt: one image name per line."""
    position = {frame.name: i for i, frame in enumerate(draft.frames)}
    splits = {}
    for split in SPLITS:
        path = root / f"{split}_list.txt"
        if is_file(path):
            names = [line for _, line in colmap_text.read_lines(path)]
            splits[split] = [position[name] for name in names if name in position]
            if names and not splits[split]:
                raise UserError(f"{path}: none of its {len(names)} names is an image of the model.")
    return splits or None


def _choose_frame(draft: Draft) -> None:
    """Forward-facing captures get LLFF's frame, so that they can be seen in NDC."""
    if not draft.frames or draft.xyz is None or len(draft.xyz) < 8:
        return
    poses = torch.from_numpy(np.stack([frame.pose for frame in draft.frames]))
    if not looks_forward(poses):
        return
    offsets = torch.from_numpy(draft.xyz) - poses[:, None, :, 3].mean(0)
    depths = offsets @ poses[:, :, 2].mean(0)
    in_front = depths[depths > 0]
    if len(in_front) < 8:
        return
    nearest = float(torch.quantile(in_front[:1_000_000], 0.005))
    draft.own_frame, draft.kind = forward_frame(poses, nearest), "forward-facing"
    draft.path_hint = "spiral"

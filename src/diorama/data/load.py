# SPDX-License-Identifier: Apache-2.0
"""Finding out what a folder holds, and reading it."""

import importlib
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from diorama.config.data import DataConfig
from diorama.data.paths import disk_error, is_file, is_folder, list_folder, list_images
from diorama.data.scene import Scene
from diorama.errors import UserError

LOOKED_FOR = {
    "linemod": "transforms_train.json with intrinsic_matrix",
    "blender": "transforms_train.json",
    "taichi": "train.json with a record per image",
    "transforms": "transforms.json",
    "colmap": "a COLMAP model (cameras, images .bin or .txt) in sparse/0",
    "neus": "cameras_sphere.npz",
    "llff": "poses_bounds.npy",
    "deepvoxels": "train/<scene>/{rgb,pose} with intrinsics.txt",
}
"""The formats in the order in which they are tried, and what gives each away."""


def load_scene(config: DataConfig) -> Scene:
    """The scene at `config.path`; raises `UserError` for anything that cannot be read."""
    root = _existing(config.path)
    if config.format != "auto":
        return _parser(config.format).parse(root, config)
    found = {
        name: sentence
        for name in LOOKED_FOR
        if (sentence := _parser(name).detect(root)) is not None
    }
    if not found:
        raise _nothing_found(root)
    name, sentence = next(iter(found.items()))
    notes = [sentence]
    if len(found) > 1:
        others = ", ".join(list(found)[1:])
        notes.append(f"It could also be read with --data.format {others}.")
    scene = _parser(name).parse(root, config)
    return replace(scene, notes=(*notes, *scene.notes))


def _parser(name: str) -> ModuleType:
    return importlib.import_module(f"diorama.data.parsers.{name}")


def _existing(path: Path | None) -> Path:
    if path is None:
        raise UserError("--data is missing: name the data set's folder.")
    try:
        exists = path.exists()
    except OSError as error:
        raise disk_error(path, error) from error
    except ValueError as error:
        raise UserError(f"--data {str(path)!r:.60}: not a path ({error}).") from error
    if not exists:
        raise UserError(f"{path}: no such folder (--data names the data set's folder).")
    if is_folder(path) or (is_file(path) and path.suffix.lower() == ".json"):
        return path
    raise UserError(f"{path}: --data must be a folder or a .json file.")


def _nothing_found(root: Path) -> UserError:
    """Say what was looked for, and what the user might have meant."""
    if is_file(root):
        return UserError(f"{root}: not a scene description.")
    looked_for = ", ".join(LOOKED_FOR[name] for name in LOOKED_FOR if name != "linemod")
    message = f"{root}: no data set found there; looked for {looked_for}."
    num_images = len(list_images(root)) or len(list_images(root / "images"))
    if num_images:
        return UserError(f"{message[:-1]}; the {num_images} images need camera poses first.")
    inner = [folder.name for folder in list_folder(root) if is_folder(folder)]
    likely = [name for name in inner if _is_data(root / name)]
    if likely:
        return UserError(f"{message[:-1]}; did you mean {root / likely[0]}?")
    return UserError(message)


def _is_data(folder: Path) -> bool:
    try:
        return any(_parser(name).detect(folder) for name in LOOKED_FOR)
    except UserError:
        return False

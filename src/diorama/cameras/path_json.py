# SPDX-License-Identifier: Apache-2.0
"""Camera paths as JSON files: our own small schema, and Nerfstudio's camera_path.json (read only).

Ours is meant to be written by hand as well:

    {"width": 800, "height": 600, "fps": 24, "fov": 50,
     "num_frames": 120, "loop": true,
     "cameras": [{"eye": [4, 0, 2], "target": [0, 0, 0]},
                 {"world_from_camera": [[...], [...], [...]], "fov": 35}]}

A camera stands at `eye` and looks at `target` (`up` defaults to +z), or has a 3 x 4 or 4 x 4
`world_from_camera` with OpenCV axes. Its optics are a vertical `fov` in degrees, its own or the
file's, or `intrinsics` (fx fy cx cy) with optional `distortion` (nine numbers) and `model` (a name
of `CameraModel`). With `num_frames` the cameras are keyframes of a smooth path.
Positions are in the user's coordinates, like everything that leaves Diorama.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from diorama.cameras.camera_model import CameraModel
from diorama.cameras.cameras import Cameras
from diorama.cameras.interpolation import interpolate_cameras
from diorama.cameras.number import Number
from diorama.cameras.path_fields import PathFields
from diorama.cameras.poses import flip_yz, look_at
from diorama.cameras.similarity import Similarity
from diorama.errors import UserError

_MAX_BYTES = 256 * 2**20
_MAX_FRAMES = 100_000
_MAX_SIDE = 32_768
_NERFSTUDIO_MODELS = {
    "perspective": CameraModel.PERSPECTIVE,
    "fisheye": CameraModel.FISHEYE,
    "equirectangular": CameraModel.EQUIRECTANGULAR,
}


@dataclass(frozen=True)
class CameraPath:
    """A path as read from a file: one camera per frame, and how fast to play it."""

    cameras: Cameras
    fps: float


def path_from_json(path: Path | str, scene_from_user: Similarity | None = None) -> Cameras:
    """The cameras of a path file, one per frame, in the scene's coordinates; see `read_path`."""
    return read_path(path, scene_from_user).cameras


def read_path(path: Path | str, scene_from_user: Similarity | None = None) -> CameraPath:
    """A path file of either schema; raises `UserError` in one sentence for anything malformed."""
    path = Path(path)
    plain = PathFields(str(path), _read_json(path))
    if "camera_path" in plain:
        cameras = _nerfstudio_cameras(plain)
    elif "cameras" in plain:
        cameras = _own_cameras(plain)
    else:
        raise plain.error("has neither 'cameras' nor Nerfstudio's 'camera_path'")
    if scene_from_user is not None:
        cameras = cameras.transformed(scene_from_user)
    fps = plain.number("fps", 1e-3, 1000, default=24.0)
    return CameraPath(cameras.to(torch.float32), fps)


def path_to_json(
    cameras: Cameras,
    path: Path | str,
    fps: Number = 24.0,
    scene_from_user: Similarity | None = None,
) -> None:
    """Write cameras (in the scene's coordinates) in our schema, in the user's coordinates."""
    if len(cameras) == 0 or bool((cameras.size != cameras.size[0]).any()):
        raise ValueError("a path needs at least one camera and the same size for all of them")
    if scene_from_user is not None:
        cameras = cameras.to(torch.float64).transformed(scene_from_user.inverse())
    plain = cameras.to_plain()
    entries = [
        {
            "world_from_camera": plain["world_from_camera"][i],
            "intrinsics": plain["intrinsics"][i],
            "distortion": plain["distortion"][i],
            "model": CameraModel(plain["model"][i]).name,
        }
        for i in range(len(cameras))
    ]
    width, height = plain["size"][0]
    text = json.dumps({"width": width, "height": height, "fps": fps, "cameras": entries}, indent=1)
    path = Path(path)
    temporary = path.with_name(path.name + ".part")
    try:
        temporary.write_text(text + "\n", encoding="utf-8")
        os.replace(temporary, path)
    except OSError as error:
        raise UserError(f"{path}: cannot write the camera path: {error.strerror}.") from error


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number that JSON allows")


def _read_json(path: Path) -> Mapping[str, Any]:
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise UserError(
            f"{path}: cannot read the camera path ({error.strerror}); check the file name."
        ) from error
    if len(data) > _MAX_BYTES:
        raise UserError(f"{path}: larger than any camera path; is it the right file?")
    try:
        plain = json.loads(data.decode("utf-8-sig"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not a JSON camera path ({error}); write it again.") from error
    if not isinstance(plain, dict):
        raise UserError(f"{path}: a camera path is a JSON object with 'cameras', not a list.")
    return plain


def _frames(plain: PathFields, key: str) -> list[PathFields]:
    entries = plain.objects(key)
    if not 0 < len(entries) <= _MAX_FRAMES:
        raise plain.error(f"'{key}' must list 1 to {_MAX_FRAMES} cameras, got {len(entries)}")
    return entries


def _own_cameras(plain: PathFields) -> Cameras:
    size = (plain.integer("width", 1, _MAX_SIDE), plain.integer("height", 1, _MAX_SIDE))
    cameras = Cameras.cat([_own_camera(entry, plain, *size) for entry in _frames(plain, "cameras")])
    if "num_frames" not in plain:
        return cameras
    if bool((cameras.model != cameras.model[0]).any()):
        raise plain.error("keyframes must all have the same camera model")
    num_frames = plain.integer("num_frames", 1, _MAX_FRAMES)
    return interpolate_cameras(cameras, num_frames, plain.boolean("loop", default=False))


def _own_camera(entry: PathFields, plain: PathFields, width: int, height: int) -> Cameras:
    if "world_from_camera" in entry:
        pose = entry.pose("world_from_camera")
    else:
        eye, target = entry.tensor("eye", (3,)), entry.tensor("target", (3,))
        up = entry.tensor("up", (3,)) if "up" in entry else (0.0, 0.0, 1.0)
        if bool((eye == target).all()):
            raise entry.error("'eye' and 'target' must differ")
        pose = look_at(eye, target, up)
    if "intrinsics" not in entry:
        fov = (entry if "fov" in entry else plain).number("fov", 0.01, 179.0)
        return Cameras.from_fov(pose, fov, width, height)
    fx, fy, cx, cy = entry.tensor("intrinsics", (4,)).tolist()
    if fx <= 0 or fy <= 0:
        raise entry.error("'intrinsics' must have positive focal lengths")
    camera = Cameras.pinhole(pose, fx, fy, cx, cy, width, height)
    if "distortion" in entry:
        camera = replace(camera, distortion=entry.tensor("distortion", (9,)).unsqueeze(0))
    names = {model.name: model for model in CameraModel}
    model = entry.choice("model", names, default=CameraModel.PERSPECTIVE)
    return replace(camera, model=torch.full_like(camera.model, int(model)))


def _nerfstudio_cameras(plain: PathFields) -> Cameras:
    width = plain.integer("render_width", 1, _MAX_SIDE)
    height = plain.integer("render_height", 1, _MAX_SIDE)
    model = plain.choice("camera_type", _NERFSTUDIO_MODELS, default=CameraModel.PERSPECTIVE)
    parts = []
    for entry in _frames(plain, "camera_path"):
        pose = flip_yz(entry.pose("camera_to_world"))
        # The image's own aspect decides, as in Nerfstudio; the file's 'aspect' only repeats it.
        parts.append(Cameras.from_fov(pose, entry.number("fov", 0.01, 179.0), width, height))
    cameras = Cameras.cat(parts)
    return replace(cameras, model=torch.full_like(cameras.model, int(model)))

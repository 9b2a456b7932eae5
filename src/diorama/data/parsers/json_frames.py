# SPDX-License-Identifier: Apache-2.0
"""Frames and lenses as `transforms*.json` files write them."""

import math
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from diorama.cameras import CameraModel
from diorama.data.draft import NO_DISTORTION, DraftFrame, Lens
from diorama.data.json_file import Fields
from diorama.data.paths import IMAGE_SUFFIXES, inside, is_file, relative_name
from diorama.data.pose_check import checked_pose, opencv_from_opengl
from diorama.errors import UserError

MAX_FRAMES = 1_000_000
_PERSPECTIVE, _FISHEYE = CameraModel.PERSPECTIVE, CameraModel.FISHEYE
MODELS = {
    "SIMPLE_PINHOLE": _PERSPECTIVE,
    "PINHOLE": _PERSPECTIVE,
    "SIMPLE_RADIAL": _PERSPECTIVE,
    "RADIAL": _PERSPECTIVE,
    "OPENCV": _PERSPECTIVE,
    "FULL_OPENCV": _PERSPECTIVE,
    "PERSPECTIVE": _PERSPECTIVE,
    "OPENCV_FISHEYE": _FISHEYE,
    "SIMPLE_RADIAL_FISHEYE": _FISHEYE,
    "RADIAL_FISHEYE": _FISHEYE,
    "FISHEYE": _FISHEYE,
    "EQUIRECTANGULAR": CameraModel.EQUIRECTANGULAR,
}
_PLAIN = ("SIMPLE_PINHOLE", "PINHOLE")
_DISTORTION_KEYS = ("k1", "k2", "k3", "k4", "k5", "k6", "p1", "p2", "distortion_params")


@dataclass
class FrameList:
    """The frames of one file, and what was odd about them."""

    frames: list[DraftFrame] = field(default_factory=list)
    missing: int = 0
    listed: int = 0
    repaired: int = 0


def read_frames(meta: Fields, root: Path) -> FrameList:
    """All frames of a file whose images exist; poses are OpenGL camera-to-world there."""
    entries = meta.items("frames")
    if not entries:
        meta.refuse("frames", "a list with one entry per image")
    if len(entries) > MAX_FRAMES:
        raise UserError(f"{meta.where}: {len(entries)} frames are more than we read.")
    result = FrameList(listed=len(entries))
    for index, entry in enumerate(entries):
        frame = Fields(entry, f"{meta.where}: frame {index}")
        image = image_file(root, frame.data.get("file_path"), frame.where)
        pose, repaired = _pose(frame)
        if image is None:
            result.missing += 1
            continue
        result.repaired += repaired
        draft = DraftFrame(image[0], image[1], pose, read_lens(meta, frame))
        _add_extras(draft, meta, frame, root)
        result.frames.append(draft)
    return result


def image_file(root: Path, name: object, where: str) -> tuple[str, Path] | None:
    """Name and path of a frame's image, its extension found if left out; None when missing."""
    clean = relative_name(name, f"{where}: file_path")
    if is_file(root / clean):
        return clean, root / clean
    for suffix in (".png", *sorted(IMAGE_SUFFIXES)):
        if is_file(root / (clean + suffix)):
            return clean + suffix, root / (clean + suffix)
    return None


def read_lens(meta: Fields, frame: Fields) -> Lens:
    """Each value from the frame where it has one, else from the file; see docs/formats.md."""
    model_name, model = _model(meta, frame)

    def value(key: str) -> float | None:
        return frame.number(key) if key in frame else meta.number(key)

    def positive(key: str) -> float | None:
        return frame.positive(key) if key in frame else meta.positive(key)

    return Lens(
        model=model,
        width=positive("w"),
        height=positive("h"),
        fx=positive("fl_x"),
        fy=positive("fl_y"),
        angle_x=_angle(value("camera_angle_x"), value("x_fov")),
        angle_y=_angle(value("camera_angle_y"), value("y_fov")),
        cx=value("cx"),
        cy=value("cy"),
        distortion=_distortion(meta, frame, model_name),
    )


def _pose(frame: Fields) -> tuple[np.ndarray, bool]:
    matrix = frame.array("transform_matrix", (4, 4), (3, 4))
    if matrix is None:
        frame.refuse("transform_matrix", "the 4x4 camera-to-world matrix")
    pose, repaired = checked_pose(matrix, f"{frame.where}: transform_matrix")
    return opencv_from_opengl(pose), repaired


def _model(meta: Fields, frame: Fields) -> tuple[str, CameraModel]:
    source = frame if "camera_model" in frame else meta
    name = source.text("camera_model") or ""
    if not name:
        is_fisheye = frame.data.get("is_fisheye", meta.data.get("is_fisheye"))
        name = "OPENCV_FISHEYE" if is_fisheye is True else "OPENCV"
    model = MODELS.get(name.upper())
    if model is None:
        raise UserError(
            f"{source.where}: camera_model {name!r:.40} is not supported; undistort the images or"
            f" use one of {', '.join(MODELS)}."
        )
    return name.upper(), model


def _distortion(meta: Fields, frame: Fields, model: str) -> tuple[float, ...]:
    """k1 k2 k3 k4 p1 p2 d1 d2 d3, from whichever of frame and file mentions distortion first.

    `k4` is the r^8 coefficient; in FULL_OPENCV alone k4 k5 k6 are the denominator's.
    """
    source = frame if any(key in frame for key in _DISTORTION_KEYS) else meta
    if model in _PLAIN or MODELS[model] is CameraModel.EQUIRECTANGULAR:
        return NO_DISTORTION
    listed = source.array("distortion_params", (4,), (5,), (6,))
    if listed is not None:
        given = [*listed.tolist(), 0.0, 0.0][:6]
    else:
        given = [source.number(key) or 0.0 for key in ("k1", "k2", "k3", "k4", "p1", "p2")]
    if any(abs(value) > 1e3 for value in given):
        raise UserError(f"{source.where}: distortion {given} is not that of a lens.")
    if MODELS[model] is _FISHEYE:
        return (*given[:4], 0.0, 0.0, 0.0, 0.0, 0.0)
    if model == "FULL_OPENCV":
        lower = [source.number(key) or 0.0 for key in ("k4", "k5", "k6")]
        return (*given[:3], 0.0, *given[4:], *lower)
    return (*given, 0.0, 0.0, 0.0)


def _angle(radians: float | None, degrees: float | None) -> float | None:
    if radians is not None:
        return radians
    return None if degrees is None else math.radians(degrees)


def _add_extras(draft: DraftFrame, meta: Fields, frame: Fields, root: Path) -> None:
    """Mask, depth and time; a listed file that does not exist is an error, not a silent hole."""
    draft.mask_path = _listed_file(frame, root, "mask_path")
    draft.depth_path = _listed_file(frame, root, "depth_file_path")
    unit = meta.scale("depth_unit_scale_factor")
    if draft.depth_path is None:
        draft.depth_path = _listed_file(frame, root, "depth_path")
        unit = unit or meta.scale("integer_depth_scale")
    draft.depth_unit = unit or 1e-3
    draft.time = frame.number("time")


def _listed_file(frame: Fields, root: Path, key: str) -> Path | None:
    if key not in frame:
        return None
    path = inside(root, frame.data[key], f"{frame.where}: {key}")
    if not is_file(path):
        raise UserError(f"{frame.where}: the {key} {path} does not exist.")
    return path

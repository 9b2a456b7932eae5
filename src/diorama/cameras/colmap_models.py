# SPDX-License-Identifier: Apache-2.0
"""COLMAP's camera models as our three models, four intrinsics and nine distortion coefficients."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from diorama.cameras.camera_model import CameraModel
from diorama.cameras.number import Number
from diorama.errors import UserError


class ColmapModel(NamedTuple):
    """A COLMAP model: its id, its parameter names in file order, and ours (None: unsupported).

    A parameter `f` stands for fx and fy; the others carry the names of our own slots.
    """

    number: int
    parameters: tuple[str, ...]
    model: CameraModel | None


_PERSPECTIVE, _FISHEYE = CameraModel.PERSPECTIVE, CameraModel.FISHEYE

COLMAP_MODELS: dict[str, ColmapModel] = {
    name: ColmapModel(number, tuple(parameters.split()), model)
    for name, number, parameters, model in (
        ("SIMPLE_PINHOLE", 0, "f cx cy", _PERSPECTIVE),
        ("PINHOLE", 1, "fx fy cx cy", _PERSPECTIVE),
        ("SIMPLE_RADIAL", 2, "f cx cy k1", _PERSPECTIVE),
        ("RADIAL", 3, "f cx cy k1 k2", _PERSPECTIVE),
        ("OPENCV", 4, "fx fy cx cy k1 k2 p1 p2", _PERSPECTIVE),
        ("OPENCV_FISHEYE", 5, "fx fy cx cy k1 k2 k3 k4", _FISHEYE),
        # OpenCV calls the three denominator coefficients k4 k5 k6; ours are d1 d2 d3.
        ("FULL_OPENCV", 6, "fx fy cx cy k1 k2 p1 p2 k3 d1 d2 d3", _PERSPECTIVE),
        ("FOV", 7, "fx fy cx cy omega", None),
        ("SIMPLE_RADIAL_FISHEYE", 8, "f cx cy k1", _FISHEYE),
        ("RADIAL_FISHEYE", 9, "f cx cy k1 k2", _FISHEYE),
        ("THIN_PRISM_FISHEYE", 10, "fx fy cx cy k1 k2 p1 p2 k3 k4 sx1 sy1", None),
    )
}
"""By name. The number of parameters is `len(COLMAP_MODELS[name].parameters)`."""

_NAMES = {entry.number: name for name, entry in COLMAP_MODELS.items()}
_DISTORTION = ("k1", "k2", "k3", "k4", "p1", "p2", "d1", "d2", "d3")


def from_colmap(
    model: str | int, params: Sequence[Number], source: str = "COLMAP camera"
) -> tuple[CameraModel, tuple[float, ...], tuple[float, ...]]:
    """Our (model, fx fy cx cy, nine distortion coefficients) of a COLMAP camera.

    COLMAP also puts the centre of the first pixel at (0.5, 0.5), so nothing is shifted. `source`
    names the file in error messages.
    """
    name = _NAMES.get(model, str(model)) if isinstance(model, int) else model
    entry = COLMAP_MODELS.get(name)
    if entry is None or entry.model is None:
        known = "is not supported" if entry is not None else "is unknown"
        raise UserError(
            f"{source}: camera model {name} {known}; undistort the images with "
            "`colmap image_undistorter` and use its output folder."
        )
    if len(params) != len(entry.parameters):
        raise UserError(
            f"{source}: camera model {name} has {len(entry.parameters)} parameters "
            f"({' '.join(entry.parameters)}), got {len(params)}; export it from COLMAP again."
        )
    values = dict(zip(entry.parameters, map(float, params), strict=True))
    fx, fy = values.get("fx", values.get("f", 0.0)), values.get("fy", values.get("f", 0.0))
    if not (all(map(math.isfinite, values.values())) and fx > 0 and fy > 0):
        raise UserError(
            f"{source}: camera model {name} needs finite parameters and a positive focal length, "
            f"got {' '.join(f'{value:g}' for value in values.values())}; run the mapper again."
        )
    distortion = tuple(values.get(key, 0.0) for key in _DISTORTION)
    return entry.model, (fx, fy, values["cx"], values["cy"]), distortion

# SPDX-License-Identifier: Apache-2.0
"""What a parser hands over: frames as the files describe them, in the user's coordinates."""

import math
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from diorama.cameras import CameraModel, Similarity
from diorama.data.scene import Kind, Vector
from diorama.errors import UserError

NO_DISTORTION = (0.0,) * 9
MAX_SIDE = 1_000_000


@dataclass(frozen=True)
class Lens:
    """Optics as a file states them, for an image of `width` x `height` where it says so.

    A focal length may be given in pixels or as a full angle in radians; what is missing follows:
    fy = fx, the principal point is the image's centre, the size is the image file's.
    """

    model: CameraModel = CameraModel.PERSPECTIVE
    width: float | int | None = None
    height: float | int | None = None
    fx: float | None = None
    fy: float | None = None
    angle_x: float | None = None
    angle_y: float | None = None
    cx: float | None = None
    cy: float | None = None
    distortion: tuple[float, ...] = NO_DISTORTION

    def fit(self, width: int, height: int, where: str) -> tuple[float, float, float, float]:
        """fx fy cx cy for an image file of this size, refused when its shape is another."""
        own_width, own_height = float(self.width or width), float(self.height or height)
        check_shape((own_width, own_height), (width, height), where)
        if self.model is CameraModel.EQUIRECTANGULAR:
            return (width / math.tau, height / math.pi, width / 2, height / 2)
        fx = _focal(self.fx, self.angle_x, own_width, f"{where}: camera_angle_x")
        fy = _focal(self.fy, self.angle_y, own_height, f"{where}: camera_angle_y")
        fx, fy = fx or fy, fy or fx
        if fx is None or fy is None:
            raise UserError(
                f"{where}: the camera has no focal length; give fl_x or camera_angle_x in pixels"
                " or radians."
            )
        cx = own_width / 2 if self.cx is None else self.cx
        cy = own_height / 2 if self.cy is None else self.cy
        ratio_x, ratio_y = width / own_width, height / own_height
        is_sane = all(1e-3 < f / side < 1e4 for f, side in ((fx, own_width), (fy, own_height)))
        if not (is_sane and abs(cx) < 100 * own_width and abs(cy) < 100 * own_height):
            raise UserError(
                f"{where}: a focal length of {fx:g}, {fy:g} and a centre of {cx:g}, {cy:g} pixels"
                f" cannot belong to an image of {own_width:g} x {own_height:g}."
            )
        return (fx * ratio_x, fy * ratio_y, cx * ratio_x, cy * ratio_y)


def _focal(pixels: float | None, angle: float | None, side: float, where: str) -> float | None:
    if pixels is not None:
        return pixels
    if angle is None:
        return None
    if not 0 < angle < math.pi:
        raise UserError(f"{where} must lie between 0 and 180 degrees, got {math.degrees(angle):g}.")
    return 0.5 * side / math.tan(0.5 * angle)


def check_shape(
    own: tuple[float | int, float | int],
    found: tuple[int, int],
    where: str,
    what: str = "the image",
    owner: str = "its camera",
) -> None:
    """Accept an image of the size `own`, or a proportional one up to a pixel's rounding."""
    (own_width, own_height), (width, height) = own, found
    if not (1 <= own_width <= MAX_SIDE and 1 <= own_height <= MAX_SIDE):
        raise UserError(f"{where}: a camera of {own_width:g} x {own_height:g} pixels cannot be.")
    off_x = abs(width - own_width * height / own_height)
    off_y = abs(height - own_height * width / own_width)
    if min(off_x, off_y) < 1 or off_x < 0.005 * width:
        return
    hint = "use the files that belong together"
    if abs(width * own_width - height * own_height) < 0.01 * width * own_width:
        hint = "it looks turned by 90 degrees: rotate its pixels and remove its EXIF rotation"
    raise UserError(
        f"{where}: {what} is {width} x {height} pixels but {owner} is {own_width:g} x"
        f" {own_height:g}; {hint}."
    )


@dataclass
class DraftFrame:
    """One photograph as a parser found it."""

    name: str
    image_path: Path
    pose: np.ndarray
    """3 x 4 world_from_camera, OpenCV axes, in the user's coordinates, orthonormal."""
    lens: Lens
    mask_path: Path | None = None
    depth_path: Path | None = None
    depth_unit: float = 1e-3
    """Stored depth to user units."""
    time: float | None = None
    crop_radius: float | None = None
    """Radius in full-size pixels around the principal point beyond which a fisheye sees nothing."""


@dataclass
class Draft:
    """A data set before it is split, normalised, sized and bounded."""

    format: str
    root: Path
    frames: list[DraftFrame]
    notes: list[str] = field(default_factory=list)
    splits: dict[str, list[int]] | None = None
    """The data set's own split, as frame positions in file order; None when it has none."""
    xyz: np.ndarray | None = None
    """N x 3 sparse points in the user's coordinates."""
    rgb: np.ndarray | None = None
    """N x 3 uint8 colours of the points."""
    sightings: np.ndarray | None = None
    """S x 2: positions of frames, in file order, and of the points that they saw."""
    own_frame: Similarity | None = None
    """The normalisation that the format itself defines; None leaves it to the cameras."""
    orientation: str | None = None
    """The data set's wish for an orientation, `up` or `none`."""
    user_frame: Similarity | None = None
    """Maps the user's coordinates to the coordinates used here, where a file says they differ."""
    kind: Kind | None = None
    masks_are_alpha: bool = False
    background: Vector | None = None
    box: tuple[Vector, Vector] | None = None
    """The format's box of interest in its own frame."""
    near_far: tuple[float, float] | None = None
    """The format's depth range in its own frame."""
    path_hint: str | None = None
    """The format's conventional render path: `circle`, `spiral`, `sphere` or `test`."""

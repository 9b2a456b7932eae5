# SPDX-License-Identifier: Apache-2.0
"""Images seen again through another camera at the same place, above all without distortion."""

import math
from typing import Literal

import torch
from jaxtyping import Bool, Float, UInt8
from torch import Tensor

from diorama.cameras.camera_model import CameraModel
from diorama.cameras.cameras import Cameras

_ROWS_AT_ONCE = 256
# A pinhole beyond this half angle is mostly stretched corners.
_WIDEST_HALF_ANGLE = math.radians(60)


def undistort_image(
    image: UInt8[Tensor, "H W C"], camera: Cameras, keep: Literal["valid", "focal"] = "valid"
) -> tuple[UInt8[Tensor, "H W C"], Cameras]:
    """The image as a pinhole camera of the same size and pose would see it, and that camera.

    keep="valid" zooms so that every output pixel has a source: the largest upright rectangle
    between the four undistorted image edges, no side beyond 60 degrees from the optical axis.
    keep="focal" keeps focal lengths and principal point; pixels without a source are black.
    """
    if len(camera) != 1:
        raise ValueError(f"undistort_image takes one camera, got {len(camera)}")
    pinhole = undistorted_camera(camera, keep)
    return resample_image(image, camera, pinhole)[0], pinhole


def undistorted_camera(camera: Cameras, keep: Literal["valid", "focal"] = "valid") -> Cameras:
    """The pinhole camera that `undistort_image` resamples to."""
    if int(camera.model[0]) == int(CameraModel.EQUIRECTANGULAR):
        raise ValueError("a panorama has no single pinhole; use resample_image for each view")
    width, height = camera.width(), camera.height()
    fx, fy, cx, cy = camera.intrinsics[0].tolist()
    if keep == "valid":
        left, right, top, bottom = _inner_rectangle(camera.to(torch.float64))
        if not (left < right and top < bottom):
            raise ValueError("the lens model leaves no valid pixels; use keep='focal'")
        fx, fy = width / (right - left), height / (bottom - top)
        cx, cy = -left * fx, -top * fy
    return Cameras.pinhole(camera.world_from_camera, fx, fy, cx, cy, width, height)


def _inner_rectangle(camera: Cameras) -> tuple[float, float, float, float]:
    """Left, right, top, bottom on the plane z = 1 of what all four image edges enclose."""
    width, height = camera.width(), camera.height()
    along = torch.linspace(0, 1, 257, dtype=torch.float64)
    # Half a pixel inwards: the edge pixels' centres, beyond which there is nothing to interpolate.
    x = 0.5 + along * (width - 1)
    y = 0.5 + along * (height - 1)
    edges = [
        torch.stack([torch.full_like(y, 0.5), y], dim=-1),
        torch.stack([torch.full_like(y, width - 0.5), y], dim=-1),
        torch.stack([x, torch.full_like(x, 0.5)], dim=-1),
        torch.stack([x, torch.full_like(x, height - 0.5)], dim=-1),
    ]
    sides = [
        _edge_plane(camera, edge, axis) for edge, axis in zip(edges, (0, 0, 1, 1), strict=True)
    ]
    limit = math.tan(_WIDEST_HALF_ANGLE)
    left, right = max(-limit, float(sides[0].max())), min(limit, float(sides[1].min()))
    top, bottom = max(-limit, float(sides[2].max())), min(limit, float(sides[3].min()))
    # The rectangle runs through pixel centres; the image reaches half an output pixel further.
    margin_x = 0.5 * (right - left) / max(width - 1, 1)
    margin_y = 0.5 * (bottom - top) / max(height - 1, 1)
    return left - margin_x, right + margin_x, top - margin_y, bottom + margin_y


def _edge_plane(camera: Cameras, edge: Tensor, axis: int) -> Tensor:
    """Plane coordinates of an edge; unboundedly far where the ray never meets the plane z = 1."""
    directions = camera.unproject(torch.zeros(len(edge), dtype=torch.int64), edge)
    towards = torch.sign(edge[:, axis] - camera.intrinsics[0, 2 + axis])
    plane = directions[:, axis] / directions[:, 2].clamp(min=1e-6)
    return torch.where(directions[:, 2] > 1e-6, plane, towards * torch.inf)


def resample_image(
    image: UInt8[Tensor, "H W C"], camera: Cameras, target: Cameras
) -> tuple[UInt8[Tensor, "h w C"], Bool[Tensor, "h w"]]:
    """What `target`, at the same place, would have seen: the image, and where it had a source.

    Only the rotation between the two cameras counts. Bilinear, so a target of much lower
    resolution aliases; pixels without a source are black.
    """
    height, width, channels = image.shape
    if (width, height) != (camera.width(), camera.height()):
        raise ValueError(
            f"image is {width} x {height} but its camera {camera.width()} x {camera.height()}"
        )
    is_panorama = int(camera.model[0]) == int(CameraModel.EQUIRECTANGULAR)
    source = image.permute(2, 0, 1).unsqueeze(0).float()
    if is_panorama:
        # The left and right edges meet: each gets the other's column as its neighbour.
        source = torch.nn.functional.pad(source, (1, 1, 0, 0), mode="circular")
    out = torch.empty(target.height(), target.width(), channels, dtype=torch.uint8)
    has_source = torch.empty(target.height(), target.width(), dtype=torch.bool)
    for top in range(0, target.height(), _ROWS_AT_ONCE):
        rows = slice(top, min(top + _ROWS_AT_ONCE, target.height()))
        xy, is_valid = source_pixels(camera, target, rows)
        inside = (xy > 0) & (xy < xy.new_tensor([width, height]))
        has_source[rows] = is_valid & (inside[..., 1] if is_panorama else inside.all(-1))
        out[rows] = _sample(source, xy + xy.new_tensor([float(is_panorama), 0.0]))
    out[~has_source] = 0
    return out, has_source


def resample_nearest(
    values: Float[Tensor, "H W"], camera: Cameras, target: Cameras
) -> Float[Tensor, "h w"]:
    """As `resample_image`, by picking the nearest pixel: a mean of depths lies on no surface."""
    height, width = values.shape
    xy, _ = source_pixels(camera, target, slice(0, target.height()))
    column = xy[..., 0].nan_to_num().long().clamp(0, width - 1)
    row = xy[..., 1].nan_to_num().long().clamp(0, height - 1)
    return values[row, column]


def source_pixels(camera: Cameras, target: Cameras, rows: slice) -> tuple[Tensor, Tensor]:
    """Where the pixel centres of some rows of `target` lie in `camera`, in float64."""
    camera, target = camera.to(torch.float64), target.to(torch.float64)
    y, x = torch.meshgrid(
        torch.arange(rows.start, rows.stop, dtype=torch.float64) + 0.5,
        torch.arange(target.width(), dtype=torch.float64) + 0.5,
        indexing="ij",
    )
    xy = torch.stack([x, y], dim=-1).reshape(-1, 2)
    directions = target.rays(torch.zeros(len(xy), dtype=torch.int64), xy).directions
    points = directions + camera.world_from_camera[0, :, 3]
    found, _, is_valid = camera.project(points)
    shape = (rows.stop - rows.start, target.width())
    return found.unflatten(0, shape), is_valid.unflatten(0, shape)


def _sample(source: Float[Tensor, "1 C H W"], xy: Float[Tensor, "h w 2"]) -> UInt8[Tensor, "h w C"]:
    """Bilinear samples; with pixel centres at +0.5, grid_sample's own grid is 2 xy / size - 1."""
    size = xy.new_tensor([source.shape[3], source.shape[2]])
    grid = (2 * xy / size - 1).clamp(-2, 2).nan_to_num(nan=2.0).float().unsqueeze(0)
    sampled = torch.nn.functional.grid_sample(
        source, grid, mode="bilinear", padding_mode="border", align_corners=False
    )
    return sampled[0].permute(1, 2, 0).round().clamp(0, 255).to(torch.uint8)

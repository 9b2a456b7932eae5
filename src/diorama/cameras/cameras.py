# SPDX-License-Identifier: Apache-2.0
"""A batch of N cameras: poses, optics and image sizes, and the rays through their pixels.

Camera axes are OpenCV's (x right, y down, z forward); continuous pixel coordinates put the centre
of the top left pixel at (0.5, 0.5). Models, intrinsics, distortion and sizes may differ per camera.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from diorama.cameras.camera_model import CameraModel
from diorama.cameras.lenses import Lenses
from diorama.cameras.number import Number
from diorama.cameras.projection import Projected
from diorama.cameras.rays import Rays
from diorama.cameras.similarity import Similarity

CameraIndex = int | slice | Sequence[int] | Int[Tensor, " K"] | Bool[Tensor, " N"]
Scalar = Number | Float[Tensor, " N"] | Int[Tensor, " N"]

# mip-NeRF, section 3.1: a disc of this many pixel spacings has the variance of the pixel's square.
_PIXEL_RADIUS = 2 / math.sqrt(12)


@dataclass(frozen=True, eq=False)
class Cameras:
    """N cameras. `cameras[i]` is again a `Cameras`, of one camera when i is an integer."""

    world_from_camera: Float[Tensor, "N 3 4"]
    """Poses: the columns are the camera's right, down and forward axes and its centre."""

    intrinsics: Float[Tensor, "N 4"]
    """fx fy cx cy in pixels. Ignored by equirectangular cameras."""

    size: Int[Tensor, "N 2"]
    """Width and height in pixels."""

    model: Int[Tensor, " N"]
    """`CameraModel` values."""

    distortion: Float[Tensor, "N 9"]
    """k1 k2 k3 k4 p1 p2 d1 d2 d3; the formulas are in `diorama.cameras.distortion`."""

    def __post_init__(self) -> None:
        n = self.world_from_camera.shape[0]
        expected = {
            "world_from_camera": (n, 3, 4),
            "intrinsics": (n, 4),
            "size": (n, 2),
            "model": (n,),
            "distortion": (n, 9),
        }
        for name, shape in expected.items():
            got = tuple(getattr(self, name).shape)
            if got != shape:
                raise ValueError(f"{name} must have the shape {shape}, got {got}")

    @staticmethod
    def pinhole(
        world_from_camera: Float[Tensor, "N 3 4"] | Float[Tensor, "3 4"],
        fx: Scalar,
        fy: Scalar,
        cx: Scalar,
        cy: Scalar,
        width: Scalar,
        height: Scalar,
    ) -> "Cameras":
        """Perspective cameras without distortion; single numbers are shared by all cameras."""
        poses = world_from_camera.reshape(-1, 3, 4)
        intrinsics = torch.stack([_filled(value, poses) for value in (fx, fy, cx, cy)], dim=-1)
        size = torch.stack([_filled(value, poses) for value in (width, height)], dim=-1)
        model = torch.full_like(size[:, 0], int(CameraModel.PERSPECTIVE), dtype=torch.int64)
        return Cameras(poses, intrinsics, size.long(), model, poses.new_zeros(len(poses), 9))

    @staticmethod
    def from_fov(
        world_from_camera: Float[Tensor, "N 3 4"] | Float[Tensor, "3 4"],
        vertical_degrees: Number,
        width: int,
        height: int,
    ) -> "Cameras":
        """Square-pixel pinhole cameras with this vertical field of view, centred."""
        focal = 0.5 * height / math.tan(0.5 * math.radians(vertical_degrees))
        return Cameras.pinhole(
            world_from_camera, focal, focal, width / 2, height / 2, width, height
        )

    @staticmethod
    def equirectangular(
        world_from_camera: Float[Tensor, "N 3 4"] | Float[Tensor, "3 4"], width: int, height: int
    ) -> "Cameras":
        """Full panoramas; the image centre looks along the camera's forward axis."""
        flat = Cameras.pinhole(world_from_camera, 1, 1, width / 2, height / 2, width, height)
        return replace(flat, model=torch.full_like(flat.model, int(CameraModel.EQUIRECTANGULAR)))

    @staticmethod
    def cat(parts: Sequence["Cameras"]) -> "Cameras":
        """The cameras of all parts, one after the other."""
        if not parts:
            raise ValueError("Cameras.cat needs at least one part")
        names = [field.name for field in fields(Cameras)]
        return Cameras(*(torch.cat([getattr(part, name) for part in parts]) for name in names))

    def __len__(self) -> int:
        return self.world_from_camera.shape[0]

    def __getitem__(self, index: CameraIndex) -> "Cameras":
        if isinstance(index, int):
            if not -len(self) <= index < len(self):
                raise IndexError(f"camera {index} of {len(self)}")
            index = slice(index, index + 1 if index != -1 else None)
        elif isinstance(index, Sequence):
            index = torch.tensor(index, dtype=torch.int64, device=self.model.device)
        return Cameras(*(getattr(self, field.name)[index] for field in fields(self)))

    def __iter__(self) -> Iterator["Cameras"]:
        return (self[i] for i in range(len(self)))

    def width(self, i: int = 0) -> int:
        """Image width of camera i in pixels."""
        return int(self.size[i, 0])

    def height(self, i: int = 0) -> int:
        """Image height of camera i in pixels."""
        return int(self.size[i, 1])

    def to(self, target: torch.device | torch.dtype | str) -> "Cameras":
        """The same cameras on another device or with another floating-point type."""
        moved = (getattr(self, field.name) for field in fields(self))
        if isinstance(target, torch.dtype):
            return Cameras(*(x.to(target) if x.is_floating_point() else x for x in moved))
        return Cameras(*(x.to(target) for x in moved))

    def along(self, poses: Float[Tensor, "K 3 4"]) -> "Cameras":
        """This one camera's optics at each of the poses of a path."""
        if len(self) != 1:
            raise ValueError(f"along() repeats one camera, got {len(self)}; index one first")
        repeated = self[[0] * len(poses)]
        return replace(repeated, world_from_camera=poses.to(self.world_from_camera))

    def resized(self, width: int, height: int) -> "Cameras":
        """The same views with images of this size; each axis scales by its own exact ratio."""
        if width < 1 or height < 1:
            raise ValueError(f"an image is at least 1 x 1 pixels, got {width} x {height}")
        return self._with_size(torch.tensor([width, height], device=self.size.device))

    def rescaled(self, factor: Number) -> "Cameras":
        """The same views with images `factor` times as large, rounded to whole pixels (>= 1)."""
        if not (math.isfinite(factor) and factor > 0):
            raise ValueError(f"factor must be positive and finite, got {factor}")
        return self._with_size((self.size.double() * factor).round().long().clamp(min=1))

    def _with_size(self, size: Tensor) -> "Cameras":
        size = size.expand_as(self.size).clone()
        ratio = (size.double() / self.size.double()).to(self.intrinsics.dtype)
        return replace(self, intrinsics=self.intrinsics * torch.cat([ratio, ratio], 1), size=size)

    def transformed(self, similarity: Similarity) -> "Cameras":
        """The cameras in the world that the similarity maps to."""
        return replace(self, world_from_camera=similarity.apply_to_poses(self.world_from_camera))

    @cached_property
    def _lenses(self) -> Lenses:
        return Lenses(self.intrinsics, self.size, self.model, self.distortion)

    def project(self, points: Float[Tensor, "N P 3"] | Float[Tensor, "P 3"]) -> Projected:
        """World points into every camera; `P 3` points are for a single camera.

        Returns (xy, depth, is_valid). Depth is z, but the distance for equirectangular cameras.
        `is_valid` says that the point is in front and within what the lens model describes, not
        that it falls inside the image.
        """
        if points.ndim == 2:
            if len(self) != 1:
                raise ValueError(f"points must be (N, P, 3) for {len(self)} cameras")
            return Projected(*(part[0] for part in self.project(points.unsqueeze(0))))
        offsets = points.to(self.intrinsics.dtype) - self.world_from_camera[:, None, :, 3]
        local = torch.einsum("npi,nij->npj", offsets, self.world_from_camera[:, :, :3])
        camera_index = torch.arange(len(self), device=points.device).repeat_interleave(
            points.shape[1]
        )
        flat = self._lenses.project(camera_index, local.reshape(-1, 3))
        return Projected(*(part.unflatten(0, points.shape[:2]) for part in flat))

    def unproject(
        self, camera_index: Int[Tensor, " R"], xy: Float[Tensor, "R 2"]
    ) -> Float[Tensor, "R 3"]:
        """Unit directions in the camera frames. See `is_unprojectable` for pixels without one."""
        return self._lenses.unproject(camera_index, xy.to(self.intrinsics.dtype)).directions

    def is_unprojectable(
        self, camera_index: Int[Tensor, " R"], xy: Float[Tensor, "R 2"]
    ) -> Bool[Tensor, " R"]:
        """Whether the lens model gives these pixels a direction.

        False where undistortion does not converge or lies beyond the lens polynomial's fold;
        `unproject` and `rays` then return a finite direction near the fold.
        """
        return self._lenses.unproject(camera_index, xy.to(self.intrinsics.dtype)).is_valid

    def rays(self, camera_index: Int[Tensor, " R"], xy: Float[Tensor, "R 2"]) -> Rays:
        """Rays through continuous pixel coordinates (a pixel's centre is its index + 0.5)."""
        local = self._lenses.unproject(camera_index, xy.to(self.intrinsics.dtype))
        poses = self.world_from_camera.index_select(0, camera_index)
        directions = (poses[:, :, :3] @ local.directions.unsqueeze(-1)).squeeze(-1)
        z_scale = local.directions[:, 2]
        if CameraModel.EQUIRECTANGULAR in self._lenses.models:
            is_panorama = self.model[camera_index] == int(CameraModel.EQUIRECTANGULAR)
            z_scale = torch.where(is_panorama, torch.ones_like(z_scale), z_scale)
        radii = local.footprint * _PIXEL_RADIUS
        return Rays(poses[:, :, 3], directions, z_scale, radii, camera_index)

    def image_rays(self, i: int = 0) -> Rays:
        """Rays through all pixel centres of camera i, row by row; their camera_index is i."""
        device, dtype = self.intrinsics.device, self.intrinsics.dtype
        columns = torch.arange(self.width(i), device=device, dtype=dtype) + 0.5
        rows = torch.arange(self.height(i), device=device, dtype=dtype) + 0.5
        y, x = torch.meshgrid(rows, columns, indexing="ij")
        xy = torch.stack([x, y], dim=-1).reshape(-1, 2)
        index = torch.full((len(xy),), i % len(self), dtype=torch.int64, device=device)
        return self.rays(index, xy)

    def to_plain(self) -> dict[str, Any]:
        """Lists of numbers only, for JSON."""
        return {field.name: getattr(self, field.name).tolist() for field in fields(self)}

    @staticmethod
    def from_plain(plain: Mapping[str, Any], dtype: torch.dtype = torch.float32) -> "Cameras":
        """The inverse of `to_plain`; raises ValueError for anything else."""
        try:
            count = len(plain["model"])
            shapes = {"world_from_camera": (count, 3, 4), "intrinsics": (count, 4)}
            shapes |= {"distortion": (count, 9), "size": (count, 2), "model": (count,)}
            tensors = {
                name: torch.tensor(
                    plain[name], dtype=torch.int64 if name in ("size", "model") else dtype
                )
                for name in shapes
            }
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise ValueError(f"not a batch of cameras: {error}") from error
        # An empty list has lost its inner dimensions; any other wrong shape is a mistake.
        if count == 0:
            tensors = {name: x.reshape(shapes[name]) for name, x in tensors.items()}
        if any(tuple(x.shape) != shapes[name] for name, x in tensors.items()):
            raise ValueError(f"not a batch of {count} cameras: a field has the wrong shape")
        if not all(bool(x.isfinite().all()) for x in tensors.values()):
            raise ValueError("not a batch of cameras: all numbers must be finite")
        if not bool(((tensors["model"] >= 0) & (tensors["model"] < len(CameraModel))).all()):
            raise ValueError("not a batch of cameras: unknown camera model number")
        return Cameras(**tensors)


def _filled(value: Any, like: Tensor) -> Tensor:
    """One number per camera, of the poses' type and device."""
    tensor = torch.as_tensor(value, dtype=like.dtype, device=like.device)
    return tensor.expand(len(like))

# SPDX-License-Identifier: Apache-2.0
"""A scene's images, masks and depths, decoded when asked for and kept within a memory bound."""

import threading
from collections import OrderedDict
from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, UInt8
from torch import Tensor

from diorama.data.images import read_depth, read_image, read_mask
from diorama.data.resize import resize_area, resize_nearest
from diorama.data.scene import Scene
from diorama.errors import UserError

GIGABYTE = 1_000_000_000


class ImageStore:
    """Images of a scene by frame index, at the size of their cameras, as uint8.

    What a mask file means was decided by the parser (`--data.mask-as`): the object's alpha, which
    multiplies the image's own, or pixels to ignore, which `loss_mask` gives. Images are not
    undistorted: rays follow the lens instead.
    """

    def __init__(self, scene: Scene, cache_gb: float):
        if not cache_gb >= 0:
            raise ValueError(f"cache_gb must not be negative, got {cache_gb}")
        self.scene = scene
        self.max_bytes = int(cache_gb * GIGABYTE)
        self.num_bytes = 0
        self._kept: OrderedDict[tuple[str, int], Tensor] = OrderedDict()
        self._lock = threading.Lock()

    def rgba(self, index: int) -> UInt8[Tensor, "H W 4"]:
        """Straight colour and alpha; alpha is 255 where neither image nor mask has any."""
        return self._cached("rgba", index, load_rgba)

    def loss_mask(self, index: int) -> UInt8[Tensor, "H W"] | None:
        """255 where a pixel counts, 0 where it is to be ignored; None if there is no such mask."""
        if not has_loss_mask(self.scene, index):
            return None
        return self._cached("mask", index, load_loss_mask)

    def depth(self, index: int) -> Float[Tensor, "H W"] | None:
        """z-depth in the normalised frame, 0 where unknown; None if there is no depth file."""
        if self.scene.frames[index].depth_path is None:
            return None
        return self._cached("depth", index, load_depth)

    def _cached(self, kind: str, index: int, load: Callable[[Scene, int], Tensor]) -> Tensor:
        key = (kind, index)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        value = load(self.scene, index)
        with self._lock:
            if key not in self._kept and value.nbytes <= self.max_bytes:
                self._kept[key] = value
                self.num_bytes += value.nbytes
                while self.num_bytes > self.max_bytes:
                    _, oldest = self._kept.popitem(last=False)
                    self.num_bytes -= oldest.nbytes
        return value


def bytes_per_pixel(scene: Scene, indices: tuple[int, ...]) -> int:
    """Memory that one pixel takes: colour and alpha, and what masks and depths add."""
    has_depth = any(scene.frames[i].depth_path is not None for i in indices)
    return 4 + any(has_loss_mask(scene, i) for i in indices) + 4 * has_depth


def has_loss_mask(scene: Scene, index: int) -> bool:
    """Whether a mask file or a lens's dark border says which pixels of the frame to ignore."""
    frame = scene.frames[index]
    has_file = frame.mask_path is not None and not frame.mask_is_alpha
    return has_file or frame.crop_radius is not None


def load_rgba(scene: Scene, index: int) -> UInt8[Tensor, "H W 4"]:
    """Decode one frame from disk at its camera's size, with its alpha mask multiplied in."""
    frame, (width, height) = scene.frames[index], _size(scene, index)
    pixels = read_image(frame.image_path)
    if frame.raw_size != (0, 0) and pixels.shape[:2] != frame.raw_size[::-1]:
        raise UserError(f"{frame.image_path}: the image's size changed while it was in use.")
    mask = None
    if frame.mask_path is not None and frame.mask_is_alpha:
        mask = resize_area(read_mask(frame.mask_path), width, height)
    pixels = resize_area(pixels, width, height)
    if pixels.shape[2] == 3:
        opaque = torch.full_like(pixels[..., :1], 255)
        pixels = torch.cat([pixels, opaque if mask is None else mask[..., None]], dim=-1)
    elif mask is not None:
        pixels[..., 3] = (pixels[..., 3].int() * mask + 127).div(255, rounding_mode="floor")
    return pixels


def load_loss_mask(scene: Scene, index: int) -> UInt8[Tensor, "H W"]:
    """The loss mask of a frame that has one, at its camera's size."""
    if not has_loss_mask(scene, index):
        raise ValueError(f"frame {index} has no mask")
    frame, (width, height) = scene.frames[index], _size(scene, index)
    if frame.mask_path is None or frame.mask_is_alpha:
        mask = torch.full((height, width), 255, dtype=torch.uint8)
    else:
        mask = resize_area(read_mask(frame.mask_path), width, height)
    if frame.crop_radius is not None:
        mask[~_is_in_circle(scene, index, frame.crop_radius * width)] = 0
    return mask


def _is_in_circle(scene: Scene, index: int, radius: float) -> Bool[Tensor, "H W"]:
    """Whether each pixel's centre lies within `radius` pixels of the principal point."""
    width, height = _size(scene, index)
    center_x, center_y = scene.cameras.intrinsics[index, 2:].tolist()
    dx = torch.arange(width) + 0.5 - center_x
    dy = torch.arange(height) + 0.5 - center_y
    return dx.square() + dy.square()[:, None] <= radius**2


def load_depth(scene: Scene, index: int) -> Float[Tensor, "H W"]:
    """Decode the depth of a frame that has one, at its camera's size, in the normalised frame."""
    frame = scene.frames[index]
    if frame.depth_path is None:
        raise ValueError(f"frame {index} has no depth")
    depth = read_depth(frame.depth_path, frame.depth_unit)
    return resize_nearest(depth, *_size(scene, index))


def _size(scene: Scene, index: int) -> tuple[int, int]:
    width, height = scene.cameras.size[index].tolist()
    return width, height

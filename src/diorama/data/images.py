# SPDX-License-Identifier: Apache-2.0
"""Image, mask and depth files as tensors, and their exact reduction by area."""

import struct
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, UInt8
from PIL import ExifTags, Image
from torch import Tensor

from diorama.data.resize import resize_area
from diorama.errors import UserError

__all__ = ["MAX_PIXELS", "image_size", "read_depth", "read_image", "read_mask", "resize_area"]

MAX_PIXELS = 178_000_000
"""Larger images are refused: they are decompression bombs or belong downscaled on disk."""

# Pillow warns of odd EXIF blocks and of large images; both are dealt with here, and a data set of
# a thousand such photographs would bury the one line that matters.
warnings.filterwarnings("ignore", module=r"PIL\.")

# What Pillow is known to raise for files that lie about themselves, beside its own errors.
_CORRUPT = (
    OSError,
    SyntaxError,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    EOFError,
    OverflowError,
    struct.error,
    zlib.error,
)

_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def image_size(path: Path) -> tuple[int, int]:
    """Width and height after EXIF rotation, from the file's header alone."""
    with _opened(path) as image:
        width, height = image.size
        return (height, width) if _orientation(image) >= 5 else (width, height)


def read_image(path: Path) -> UInt8[Tensor, "H W C"]:
    """The picture upright, with 3 channels, or 4 where the file has transparency.

    Grey becomes three equal channels; 16-bit values v become round(v / 257); palettes, CMYK and
    other colour spaces become RGB. Colours are straight, not premultiplied.
    """
    with _opened(path) as image:
        turn, is_deep = _TURNS.get(_orientation(image)), _is_deep_png(image)
        _load(image, path)
        if is_deep:
            pixels = _eight_bits(_deep_png(path, image))
        else:
            pixels = _eight_bits(_colour_array(image, path))
    return _turned(pixels, turn)


def read_mask(path: Path) -> UInt8[Tensor, "H W"]:
    """The mask upright, 0..255; a file of zeros and ones is scaled, soft edges are kept.

    A colour mask counts by its brightest channel; one with real transparency by its alpha.
    """
    with _opened(path) as image:
        turn = _TURNS.get(_orientation(image))
        _load(image, path)
        values = _colour_array(image, path)
    if values.shape[2] == 4 and int(values[..., 3].min()) < int(np.iinfo(values.dtype).max):
        values = values[..., 3]
    else:
        values = values[..., :3].max(-1)
    highest = int(values.max())
    if highest == 1:
        values = values.astype(np.uint8) * np.uint8(255)
    elif highest <= 255:
        values = values.astype(np.uint8)
    return _turned(_eight_bits(values), turn)


def read_depth(path: Path, unit: float = 1.0) -> Float[Tensor, "H W"]:
    """Depth times `unit`, from an 8, 16 or 32-bit image or a .npy array; 0 means unknown.

    Values that are not finite or not positive are unknown too.
    """
    values = _npy_array(path) if path.suffix.lower() == ".npy" else _depth_image(path)
    if values.ndim == 3 and values.shape[2] == 1:
        values = values[..., 0]
    if values.ndim != 2 or values.dtype.kind not in "uif" or 0 in values.shape:
        raise UserError(f"{path}: a depth map is one number per pixel, got {values.shape}.")
    depth = torch.from_numpy(values.astype(np.float32)) * unit
    return torch.where(torch.isfinite(depth) & (depth > 0), depth, torch.zeros(()))


def _opened(path: Path) -> Image.Image:
    """The file opened, its header read and its size judged; no pixel decoded."""
    if not path.is_file():
        raise UserError(f"{path}: no such image file.")
    try:
        image = Image.open(path)
    except PermissionError as error:
        raise UserError(f"{path}: the file may not be read; check its permissions.") from error
    except Image.DecompressionBombError as error:
        raise UserError(_too_large(path)) from error
    except _CORRUPT as error:
        raise UserError(f"{path}: not an image that can be read; replace or remove it.") from error
    if image.width * image.height > MAX_PIXELS:
        image.close()
        raise UserError(_too_large(path))
    return image


def _too_large(path: Path) -> str:
    return f"{path}: more than {MAX_PIXELS // 1_000_000} megapixels; make the image smaller."


def _load(image: Image.Image, path: Path) -> None:
    try:
        image.load()
    except MemoryError as error:
        raise UserError(f"{path}: not enough memory to decode the image; downscale it.") from error
    except _CORRUPT as error:
        raise UserError(
            f"{path}: the image is truncated or corrupt; replace or remove it."
        ) from error


def _orientation(image: Image.Image) -> int:
    """EXIF orientation 1..8, known before decoding; a broken EXIF block counts as upright."""
    try:
        if image.format == "PNG":
            # getexif() of a PNG decodes the whole picture to look for a late chunk.
            exif = Image.Exif()
            exif.load(image.info.get("exif", b""))
        else:
            exif = image.getexif()
        value = exif.get(ExifTags.Base.Orientation, 1)
    except _CORRUPT:
        return 1
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


def _is_deep_png(image: Image.Image) -> bool:
    """Whether this is a 16-bit colour PNG, of which Pillow would drop the low bytes."""
    tiles: Any = getattr(image, "tile", None)
    return (
        image.format == "PNG"
        and bool(tiles)
        and str(tiles[0][3]).endswith(";16B")
        and (image.mode in ("RGB", "RGBA", "LA"))
    )


def _deep_png(path: Path, image: Image.Image) -> np.ndarray:
    """A 16-bit colour PNG at its full depth; the Pillow image if there is no decoder for it."""
    import av
    from av.error import FFmpegError

    layout = "rgb48le" if image.mode == "RGB" else "rgba64le"
    try:
        # An open file, because FFmpeg gives names with '%' or ':' a meaning of its own.
        with path.open("rb") as file, av.open(file, "r", format="png_pipe") as container:
            return next(container.decode(video=0)).to_ndarray(format=layout)
    except (FFmpegError, ValueError, StopIteration):
        return _colour_array(image, path)


def _colour_array(image: Image.Image, path: Path) -> np.ndarray:
    """The decoded image as H W 3 or H W 4 of uint8, or uint16 where the file has 16-bit grey."""
    if image.mode == "F":
        raise UserError(f"{path}: floating-point images are not read; save it with 8 or 16 bits.")
    if image.mode.startswith("I"):
        grey = np.clip(np.asarray(image), 0, 65535).astype(np.uint16)
        return np.repeat(grey[..., None], 3, axis=2)
    is_clear = image.has_transparency_data
    return np.asarray(image.convert("RGBA" if is_clear else "RGB"))


def _eight_bits(values: np.ndarray) -> np.ndarray:
    if values.dtype == np.uint8:
        return values
    return ((values.astype(np.uint32) + 128) // 257).astype(np.uint8)


def _turned(pixels: np.ndarray, turn: Image.Transpose | None) -> Tensor:
    if turn is not None:
        pixels = np.asarray(Image.fromarray(pixels).transpose(turn))
    return torch.from_numpy(np.array(pixels, order="C"))


def _npy_array(path: Path) -> np.ndarray:
    if not path.is_file():
        raise UserError(f"{path}: no such depth file.")
    try:
        # Mapped, so that a header which declares a huge array cannot allocate it.
        values = np.load(path, mmap_mode="r", allow_pickle=False)
    except _CORRUPT as error:
        raise UserError(f"{path}: not a plain .npy array; write it with numpy.save.") from error
    if not isinstance(values, np.ndarray) or values.size > MAX_PIXELS:
        raise UserError(f"{path}: not a depth map of a sensible size.")
    return values


def _depth_image(path: Path) -> np.ndarray:
    with _opened(path) as image:
        turn = _TURNS.get(_orientation(image))
        _load(image, path)
        if image.mode not in ("L", "F", "1") and not image.mode.startswith("I"):
            raise UserError(f"{path}: a depth image has one channel, this one is {image.mode}.")
        image = image if turn is None else image.transpose(turn)
        return np.asarray(image)

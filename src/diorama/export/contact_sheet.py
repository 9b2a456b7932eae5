# SPDX-License-Identifier: Apache-2.0
"""Many images on one sheet, each with its label."""

import math
from collections.abc import Callable, Sequence

import torch
from jaxtyping import UInt8
from torch import Tensor

from diorama.data.images import resize_area

PAPER = (250, 250, 248)
INK = (45, 48, 54)
_GAP = 10
_LABEL = 22


def contact_sheet(
    images: Sequence[UInt8[Tensor, "_ _ _"]],
    labels: Sequence[str],
    columns: int | None = None,
    width: int = 1600,
) -> UInt8[Tensor, "H W 3"]:
    """Tiles in rows, labels below; transparent parts show a checkerboard.

    All tiles share the first image's aspect; images of another aspect are fitted inside it.
    """
    if not images or len(images) != len(labels):
        raise ValueError(f"need one label per image, got {len(images)} and {len(labels)}")
    columns = columns or min(len(images), max(1, round(math.sqrt(len(images) * 1.6))))
    tile_width = max(8, (width - _GAP * (columns + 1)) // columns)
    height, first_width = images[0].shape[:2]
    tile_height = max(8, min(2 * tile_width, round(tile_width * height / first_width)))
    rows = math.ceil(len(images) / columns)
    sheet = _paper(width, rows * (tile_height + _LABEL + _GAP) + _GAP)
    for k, image in enumerate(images):
        left = _GAP + k % columns * (tile_width + _GAP)
        top = _GAP + k // columns * (tile_height + _LABEL + _GAP)
        _paste(sheet, fitted(image, tile_width, tile_height), left, top, (tile_width, tile_height))
    return _labelled(sheet, labels, columns, tile_width, tile_height)


def fitted(image: UInt8[Tensor, "_ _ _"], width: int, height: int) -> UInt8[Tensor, "_ _ 3"]:
    """The opaque image at the largest size within width x height that keeps its aspect."""
    scale = min(width / image.shape[1], height / image.shape[0])
    new_width = max(1, min(width, round(image.shape[1] * scale)))
    new_height = max(1, min(height, round(image.shape[0] * scale)))
    return over_checkerboard(resize_area(image, new_width, new_height))


def over_checkerboard(image: UInt8[Tensor, "H W C"]) -> UInt8[Tensor, "H W 3"]:
    """RGBA over squares of white and pale grey; RGB as it is."""
    if image.shape[2] == 3:
        return image
    rows = torch.arange(image.shape[0])[:, None] // 8
    columns = torch.arange(image.shape[1])[None] // 8
    board = torch.where((rows + columns) % 2 == 0, 255.0, 228.0)[..., None]
    alpha = image[..., 3:] / 255
    return (image[..., :3] * alpha + board * (1 - alpha)).round().to(torch.uint8)


def stacked(parts: Sequence[UInt8[Tensor, "_ _ 3"]]) -> UInt8[Tensor, "H W 3"]:
    """Parts below each other on one sheet as wide as the widest."""
    width = max(part.shape[1] for part in parts)
    sheet = _paper(width, sum(part.shape[0] for part in parts))
    top = 0
    for part in parts:
        sheet[top : top + part.shape[0], : part.shape[1]] = part
        top += part.shape[0]
    return sheet


def _paper(width: int, height: int) -> UInt8[Tensor, "H W 3"]:
    return torch.tensor(PAPER, dtype=torch.uint8).expand(height, width, 3).clone()


def _paste(sheet: Tensor, image: Tensor, left: int, top: int, tile: tuple[int, int]) -> None:
    """Centre the image in its tile."""
    left += (tile[0] - image.shape[1]) // 2
    top += (tile[1] - image.shape[0]) // 2
    sheet[top : top + image.shape[0], left : left + image.shape[1]] = image


def _labelled(
    sheet: Tensor, labels: Sequence[str], columns: int, tile_width: int, tile_height: int
) -> UInt8[Tensor, "H W 3"]:
    import numpy as np
    from PIL import Image, ImageDraw, ImageFont

    picture = Image.fromarray(sheet.numpy())
    draw = ImageDraw.Draw(picture)
    font = ImageFont.load_default(14)
    for k, label in enumerate(labels):
        left = _GAP + k % columns * (tile_width + _GAP)
        top = _GAP + k // columns * (tile_height + _LABEL + _GAP) + tile_height + 3
        text = _shortened(label, lambda s: draw.textlength(s, font=font) <= tile_width)
        draw.text((left, top), text, fill=INK, font=font)
    return torch.from_numpy(np.array(picture))


def _shortened(label: str, fits: Callable[[str], bool]) -> str:
    """The label, or as much of its end as fits: names differ at their ends."""
    label = " ".join(label.split())
    for start in range(len(label)):
        text = label if start == 0 else "…" + label[start:]
        if fits(text):
            return text
    return ""

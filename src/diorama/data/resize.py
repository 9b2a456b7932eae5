# SPDX-License-Identifier: Apache-2.0
"""Images at a new size: colours by exact area averaging, depths by picking pixels."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float, UInt8
from torch import Tensor


def resize_area(image: UInt8[Tensor, "H W *C"], width: int, height: int) -> UInt8[Tensor, "h w *C"]:
    """The image at a new size, each new pixel the exact mean of the area it covers.

    With 4 channels the colours are averaged with their alpha as weight, so that what is
    transparent does not bleed into edges; colours of fully transparent pixels become 0.
    """
    if width < 1 or height < 1:
        raise ValueError(f"width and height must be at least 1, got {width} and {height}")
    if image.shape[:2] == (height, width):
        return image
    has_alpha = image.ndim == 3 and image.shape[2] == 4

    def weighted(rows: Tensor) -> Tensor:
        values = rows.float()
        if has_alpha:
            values[..., :3] *= values[..., 3:] / 255
        return values

    # Rows first and converted as they are taken: the whole image never exists in floats.
    values = _area_mean(_area_mean(image, height, 0, weighted), width, 1, _unchanged)
    if has_alpha:
        alpha = values[..., 3:] / 255
        values[..., :3] = torch.where(alpha > 0, values[..., :3] / alpha.clamp(min=1e-6), 0.0)
    return values.round_().clamp_(0, 255).to(torch.uint8)


def resize_nearest(values: Float[Tensor, "H W"], width: int, height: int) -> Float[Tensor, "h w"]:
    """The map at a new size by the pixel under each new centre; a mean of depths would lie
    between two surfaces, where nothing is."""
    if values.shape == (height, width):
        return values
    rows = ((torch.arange(height) + 0.5) * values.shape[0] / height).long()
    columns = ((torch.arange(width) + 0.5) * values.shape[1] / width).long()
    return values[rows][:, columns]


def _unchanged(values: Tensor) -> Tensor:
    return values


def _area_mean(values: Tensor, size: int, axis: int, prepare: Callable[[Tensor], Tensor]) -> Tensor:
    """Mean over `size` equal spans of one axis; a span's end pixels count by their overlap."""
    old = values.shape[axis]
    edges = torch.arange(size + 1, dtype=torch.float64) * old / size
    first = edges[:-1].floor().long()
    shape = [size if i == axis else 1 for i in range(values.ndim)]
    result = torch.zeros(())
    for tap in range(math.ceil(old / size) + 1):
        index = first + tap
        overlap = torch.minimum(edges[1:], index + 1.0) - torch.maximum(edges[:-1], index.double())
        weight = (overlap.clamp(min=0) * size / old).float().view(shape)
        taken = prepare(values.index_select(axis, index.clamp(max=old - 1)))
        result = taken.mul_(weight).add_(result)
    return result

# SPDX-License-Identifier: Apache-2.0
"""Pixels of a training batch: which of them show detail, and which are neighbours."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diorama.data.resident_window import ResidentWindow

TRIES = 4
"""Of so many random pixels the one with the most contrast around it is taken for its detail."""
REACH = 2
"""Contrast is measured between neighbours so many pixels to either side."""
PATCH_SIDE, PATCH_STRIDE = 4, 2
"""Pixels along each side of a patch, and how far they are apart."""
PATCH_SIZE = PATCH_SIDE**2


class DrawnPixels(NamedTuple):
    """N pixels: slot in the window, image, its size (width, height), column and row."""

    slot: Int[Tensor, " N"]
    image: Int[Tensor, " N"]
    size: Int[Tensor, "N 2"]
    xy: Int[Tensor, "N 2"]

    @property
    def offset(self) -> Int[Tensor, " N"]:
        """Where the pixels are in their images, row by row."""
        return self.xy[:, 1] * self.size[:, 0] + self.xy[:, 0]

    def at(self, index: Int[Tensor, " M"]) -> "DrawnPixels":
        """Those of an index."""
        return DrawnPixels(*(column[index] for column in self))

    def shifted(self, x: int, y: int) -> "DrawnPixels":
        """Their neighbours, the nearest pixel of the image where there is none."""
        to = (self.xy + torch.tensor((x, y))).clamp(min=0)
        return self._replace(xy=torch.minimum(to, self.size - 1))


def for_detail(drawn: DrawnPixels, num_detailed: int, window: ResidentWindow) -> DrawnPixels:
    """All but the last TRIES * num_detailed pixels, and of each TRIES of those the best.

    Flat walls and skies fill most of a photograph and are learned long before the edges are; so
    many rays would tell nothing new. Which pixel shows detail depends on the photograph alone:
    a batch stays a function of the step.
    """
    if not num_detailed:
        return drawn
    num_plain = len(drawn.slot) - TRIES * num_detailed
    contrast = contrast_at(drawn.at(torch.arange(num_plain, len(drawn.slot))), window)
    best = contrast.view(num_detailed, TRIES).argmax(dim=1) + TRIES * torch.arange(num_detailed)
    return drawn.at(torch.cat((torch.arange(num_plain), num_plain + best)))


def with_patches(drawn: DrawnPixels, num_patches: int) -> DrawnPixels:
    """As many pixels, the first of which are patches, row by row, one patch after the other.

    The first pixels that were drawn are the patches' first corners, as far as the images reach;
    what comes behind the patches stays as it was.
    """
    if not num_patches:
        return drawn
    corner = drawn.at(torch.arange(num_patches).repeat_interleave(PATCH_SIZE))
    side = PATCH_STRIDE * torch.arange(PATCH_SIDE)
    place = torch.cartesian_prod(side, side).flip(1).repeat(num_patches, 1)
    last = (corner.size - 1 - PATCH_STRIDE * (PATCH_SIDE - 1)).clamp(min=0)
    # An image that is smaller than a patch repeats its last pixels.
    xy = torch.minimum(torch.minimum(corner.xy, last) + place, corner.size - 1)
    rest = drawn.at(torch.arange(num_patches * PATCH_SIZE, len(drawn.slot)))
    return DrawnPixels(
        *(torch.cat(pair) for pair in zip(corner._replace(xy=xy), rest, strict=True))
    )


def contrast_at(drawn: DrawnPixels, window: ResidentWindow) -> Float[Tensor, " N"]:
    """How much colour and alpha change across each pixel, in levels of 255; 0 under a mask."""
    contrast = torch.zeros(len(drawn.slot))
    for x, y in ((REACH, 0), (0, REACH)):
        one, _, _ = window.gather(drawn.slot, drawn.shifted(-x, -y).offset)
        other, _, _ = window.gather(drawn.slot, drawn.shifted(x, y).offset)
        contrast += (one.float() - other.float()).abs().sum(dim=1)
    _, mask, _ = window.gather(drawn.slot, drawn.offset)
    return contrast if mask is None else contrast * (mask > 0)

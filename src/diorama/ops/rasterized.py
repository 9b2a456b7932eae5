# SPDX-License-Identifier: Apache-2.0
"""What the rasteriser gives: an image, and on the way back sums over its pixels."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int32
from torch import Tensor


@dataclass(frozen=True)
class Rasterized:
    """What the pixels of an image show; only `image` and `alpha` have gradients."""

    image: Float[Tensor, "H W C"]
    alpha: Float[Tensor, "H W"]
    """One minus the transmittance that is left for the background."""
    count: Int32[Tensor, "H W"]
    """How many Gaussians were drawn to the pixel."""
    median_splat: Int32[Tensor, "H W"]
    """The Gaussian behind which at most half gets through; -1 if there is none."""


@dataclass(frozen=True)
class SplatSums:
    """What the backward pass finds out about each Gaussian for whoever controls their density.

    The backward pass overwrites the tensors. A pixel's gradient is the part of dL/dcenter, in
    pixels, that came through this pixel.
    """

    gradient_norms: Float[Tensor, " N"]
    """Sum over pixels of the length of the pixel's gradient."""
    abs_gradients: Float[Tensor, "N 2"]
    """Sum over pixels of the absolute values of the gradient's components."""
    pixels: Int32[Tensor, " N"]
    """Number of pixels that the Gaussian was drawn to."""
    pixel_gradients: Float[Tensor, "H W 2"] | None = None
    """The same components summed over Gaussians, for each pixel, if wanted."""

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """All of them, in the order of the fields."""
        return self.gradient_norms, self.abs_gradients, self.pixels, self.pixel_gradients

    @staticmethod
    def zeros(like: Float[Tensor, "N 2"], image_size: tuple[int, int] | None = None) -> "SplatSums":
        """For Gaussians with these centers; with `pixel_gradients` if given (height, width)."""
        return SplatSums(
            like.new_zeros(len(like)),
            like.new_zeros(len(like), 2),
            like.new_zeros(len(like), dtype=torch.int32),
            None if image_size is None else like.new_zeros(*image_size, 2),
        )

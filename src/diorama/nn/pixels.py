# SPDX-License-Identifier: Apache-2.0
"""What ray methods share about pixels: blending the photograph, weighing the error."""

import torch
from jaxtyping import Float
from torch import Tensor


def blended_over(
    pixels: Float[Tensor, "R 4"], background: Float[Tensor, "#R 3"]
) -> Float[Tensor, "R 3"]:
    """Straight colours and alpha over a background, one for all rays or one for each."""
    return torch.lerp(background.expand(len(pixels), 3), pixels[:, :3], pixels[:, 3:])


def weighted_mean(error: Float[Tensor, "R C"], weights: Float[Tensor, " R"]) -> Float[Tensor, ""]:
    """Mean over rays and channels; masked rays (weight 0) count neither above nor below."""
    return (error.mean(dim=1) * weights).sum() / weights.sum().clamp(min=1.0)


def mean_squared_error(
    rgb: Float[Tensor, "R 3"], target: Float[Tensor, "R 3"], weights: Float[Tensor, " R"]
) -> Float[Tensor, ""]:
    """The weighted mean of the squared differences."""
    return weighted_mean((rgb - target).square(), weights)


def psnr_of(error: Float[Tensor, ""]) -> Float[Tensor, ""]:
    """Decibels of a mean squared error of colours in 0..1."""
    return -10.0 * torch.log10(error.clamp(min=1e-10))

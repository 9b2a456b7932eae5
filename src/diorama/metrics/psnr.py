# SPDX-License-Identifier: Apache-2.0
"""Peak signal-to-noise ratio, optionally over some pixels only."""

import torch
from jaxtyping import Float
from torch import Tensor


def psnr(
    a: Float[Tensor, "*pixels C"],
    b: Float[Tensor, "*pixels C"],
    weights: Float[Tensor, "*pixels"] | None = None,
) -> Float[Tensor, ""]:
    """-10 log10(mse) in dB for values in 0..1; equal images give infinity.

    `weights` average the squared error over pixels; where they are all zero nothing is
    measured and the result is NaN.
    """
    squared = (a - b).square().mean(-1)
    mse = squared.mean() if weights is None else (squared * weights).sum() / weights.sum()
    return -10.0 * torch.log10(mse)

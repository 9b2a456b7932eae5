# SPDX-License-Identifier: Apache-2.0
"""Structural similarity (Wang et al. 2004) with the Gaussian window everybody reports."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import conv2d

WINDOW = 11
SIGMA = 1.5
C1 = 0.01**2
C2 = 0.03**2


def ssim(a: Float[Tensor, "H W C"], b: Float[Tensor, "H W C"]) -> Float[Tensor, ""]:
    """Mean over pixels and channels of

        (2 mu_a mu_b + C1) (2 cov_ab + C2) / ((mu_a^2 + mu_b^2 + C1) (var_a + var_b + C2))

    with an 11 x 11 Gaussian window of sigma 1.5, moments not bias-corrected, data range 1, and
    only windows that lie wholly inside the image. An image with a side below 11 pixels is
    measured with the largest odd window that fits, so that one pixel still has a value.
    """
    kernel = _gaussian(min(WINDOW, *a.shape[:2]), a)
    planes = torch.stack([a, b, a * a, b * b, a * b]).permute(0, 3, 1, 2).flatten(0, 1)[:, None]
    blurred = conv2d(conv2d(planes, kernel[None, None, :, None]), kernel[None, None, None, :])
    mu_a, mu_b, aa, bb, ab = blurred.squeeze(1).unflatten(0, (5, a.shape[2]))
    var_a, var_b, cov = aa - mu_a * mu_a, bb - mu_b * mu_b, ab - mu_a * mu_b
    structure = (2 * cov + C2) / (var_a + var_b + C2)
    luminance = (2 * mu_a * mu_b + C1) / (mu_a * mu_a + mu_b * mu_b + C1)
    return (luminance * structure).mean()


def _gaussian(limit: int, like: Tensor) -> Float[Tensor, "K"]:
    """The normalised window of the largest odd length up to `limit`."""
    radius = (limit - 1) // 2
    x = torch.arange(-radius, radius + 1, dtype=like.dtype, device=like.device)
    window = torch.exp(-0.5 * (x / SIGMA) ** 2)
    return window / window.sum()

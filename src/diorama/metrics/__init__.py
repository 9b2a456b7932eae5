# SPDX-License-Identifier: Apache-2.0
"""Image metrics between a render and a photograph, both linear in 0..1 and channels last."""

from diorama.metrics.psnr import psnr
from diorama.metrics.ssim import ssim

__all__ = ["psnr", "ssim"]

# SPDX-License-Identifier: Apache-2.0
"""Structural similarity as a metric."""

from jaxtyping import Float
from torch import Tensor

from diorama.ops import ssim as op


def ssim(a: Float[Tensor, "H W C"], b: Float[Tensor, "H W C"]) -> Float[Tensor, ""]:
    """`diorama.ops.ssim` over windows that lie wholly inside the image."""
    return op.ssim(a, b, "valid")

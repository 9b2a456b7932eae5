# SPDX-License-Identifier: Apache-2.0
"""Smooth colours for the pixels of an image that nobody knows.

Push and pull (Gortler et al.: *The Lumigraph*, SIGGRAPH 1996): means of the known pixels over ever
larger squares; going back, each square takes what it knows itself and else what is around it.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

FAINT = 1e-12
"""Weight of unknown pixels: an image without known ones becomes their mean."""


def fill_image(
    image: Float[Tensor, "H W 3"], is_known: Bool[Tensor, "H W"]
) -> Float[Tensor, "H W 3"]:
    """The image, its unknown pixels drawn in from the known ones around them."""
    weight = is_known.to(image).clamp(min=FAINT)[None, None]
    filled = _push_pull(image.permute(2, 0, 1)[None], weight)[0].permute(1, 2, 0)
    return torch.where(is_known[:, :, None], image, filled)


def _push_pull(
    image: Float[Tensor, "1 C H W"], weight: Float[Tensor, "1 1 H W"]
) -> Float[Tensor, "1 C H W"]:
    height, width = image.shape[2:]
    if max(height, width) == 1:
        return image
    mean = F.avg_pool2d(weight, 2, ceil_mode=True)
    coarse = F.avg_pool2d(image * weight, 2, ceil_mode=True) / mean
    around = _push_pull(coarse, (4.0 * mean).clamp(max=1.0))
    around = F.interpolate(around, scale_factor=2, mode="bilinear")[:, :, :height, :width]
    return weight * image + (1.0 - weight) * around

# SPDX-License-Identifier: Apache-2.0
"""Where a photograph is plain, what it shows is asked to be plain, too.

Few rays meet each pixel of a plain surface, and all of them agree with whatever has its colour:
grains that hang before it are paid for only by views that nobody photographed. But a photograph in
which neighbouring pixels look alike most likely shows one surface there. On patches of it

    L = mean exp(-c / CONTRAST) |d_{i-1} - 2 d_i + d_{i+1}|   along rows and columns

with the inverse depths d of new_views.py, and with c, the greater of the two changes of colour
between the three pixels. Fur, print and outlines have contrast and are left alone (compare the
edge-aware smoothness of Godard et al., CVPR 2017, and of Heise et al., ICCV 2013).
"""

import torch
from jaxtyping import Float
from torch import Tensor

from diorama.data.drawn_pixels import PATCH_SIDE, PATCH_SIZE
from diorama.data.ray_manager import RayBatch
from diorama.methods.nerfacto.losses import inverse_depth, soft_length
from diorama.methods.nerfacto.samples import RaySamples

CONTRAST = 0.02
"""A change of colour, of 0..1, by which the weight falls to 1 / e: five levels of 255."""
SOFTNESS = 1e-4
"""Differences below this are squared: they need not become zero."""


def photo_plainness_loss(
    batch: RayBatch, samples: RaySamples, weights: Float[Tensor, "R S"], unit: float
) -> Float[Tensor, ""]:
    """The module's formula for the patches of a batch; samples and weights are those of its rays.

    Three pixels count as much as the loss mask lets the least of them count.
    """
    some = slice(batch.num_patches * PATCH_SIZE)
    shape = (batch.num_patches, PATCH_SIDE, PATCH_SIDE)
    inverse = inverse_depth(batch.rays[some], samples[some], weights[some], unit).view(shape)
    pixels, counted = batch.pixels[some].view(*shape, 4), batch.weights[some].view(shape)
    along = (_plain_bends(inverse, pixels, counted, dim) for dim in (1, 2))
    return torch.cat([part.flatten() for part in along]).mean()


def _plain_bends(
    inverse: Float[Tensor, "K Y X"],
    pixels: Float[Tensor, "K Y X 4"],
    counted: Float[Tensor, "K Y X"],
    dim: int,
) -> Float[Tensor, "K Y2 X2"]:
    """Bends along one side of the patches, weighed by how plain the photograph is there."""
    change = pixels.diff(dim=dim).abs().sum(dim=3) / 3.0
    contrast = change.unfold(dim, 2, 1).amax(dim=3)
    share = torch.exp(-contrast / CONTRAST) * counted.unfold(dim, 3, 1).amin(dim=3)
    return share * soft_length(inverse.diff(n=2, dim=dim), SOFTNESS)

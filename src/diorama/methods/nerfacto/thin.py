# SPDX-License-Identifier: Apache-2.0
"""Where a picture shows something thin, and the rays that see how much of a pixel it fills.

A ray through the middle of a pixel meets a hair, or a grain that hangs before a wall, or misses it:
the pixel has all of its colour or nothing. What fills a part of the pixel is to have that part of
its colour, so a few rays per pixel are cast there. Elsewhere they would change next to nothing.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

WINDOW = 7
"""Thin is what a square of so many pixels does not fit into."""
NEARER = 0.004
"""It is nearer than what is around it by at least this share of the distance."""
RAYS_ACROSS = 3
"""Rays along each side of such a pixel."""


def thin_places(depth: Float[Tensor, "H W"]) -> Bool[Tensor, "H W"]:
    """Pixels nearer than the grey closing of their depth, which fills whatever is thin."""
    # The first of both looks beyond the picture's edges, or the second would find less there.
    beyond = torch.nn.functional.pad(depth, [WINDOW - 1] * 4, value=-torch.inf)
    closed = -_greatest_around(-_greatest_around(beyond))
    return depth < (1.0 - NEARER) * closed


def rays_within(places: Bool[Tensor, "H W"]) -> Float[Tensor, "N 2"]:
    """Evenly spread coordinates in the pixels, those of a pixel one after the other."""
    corner = places.nonzero().flip(1)
    along = (torch.arange(RAYS_ACROSS, device=places.device) + 0.5) / RAYS_ACROSS
    return (corner[:, None] + torch.cartesian_prod(along, along)).flatten(0, 1)


def mean_within(of_rays: Float[Tensor, "N *C"]) -> Float[Tensor, "K *C"]:
    """Means over the rays of each pixel, for rays in the order of `rays_within`."""
    return of_rays.unflatten(0, (-1, RAYS_ACROSS**2)).mean(dim=1)


def _greatest_around(image: Float[Tensor, "H W"]) -> Float[Tensor, "h w"]:
    """The greatest value in every window that fits into the image."""
    return torch.nn.functional.max_pool2d(image[None], WINDOW, stride=1)[0]

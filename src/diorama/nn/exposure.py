# SPDX-License-Identifier: Apache-2.0
"""Gains of the colour channels per training image, for photographs whose exposure varies."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from diorama.nn.rows import rows


class ExposureGains(nn.Module):
    """rgb -> exp(g_i - mean of all g) rgb, one g per image and channel, zero at first.

    Only differences between images are learned: the scene keeps the exposure of their mean, and
    held-out images are drawn with it. Without this, a field explains a darker photograph by dark
    smoke before its camera.
    """

    shares: Tensor

    def __init__(self, num_images: int, training: tuple[int, ...]):
        super().__init__()
        self.logarithms = nn.Parameter(torch.zeros(num_images, 3))
        used = torch.zeros(num_images, 1)
        used[list(training)] = 1 / max(1, len(training))
        self.register_buffer("shares", used, persistent=False)

    def initialize(self) -> None:
        """Every gain 1."""
        nn.init.zeros_(self.logarithms)

    def forward(
        self, rgb: Float[Tensor, "R 3"], image_index: Int[Tensor, " R"]
    ) -> Float[Tensor, "R 3"]:
        """Colours as their images were exposed."""
        mean = (self.shares * self.logarithms).sum(dim=0)
        return rgb * torch.exp(rows(self.logarithms - mean, image_index))

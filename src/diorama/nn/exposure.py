# SPDX-License-Identifier: Apache-2.0
"""Gains of the colour channels per training image, for photographs whose exposure varies."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from diorama.cameras import Cameras
from diorama.nn.camera_neighbours import CameraNeighbours
from diorama.nn.rows import rows


class ExposureGains(nn.Module):
    """rgb -> exp(g_i - mean of all g) rgb, one g per image and channel, zero at first.

    Only differences between images are learned: the scene keeps the exposure of their mean.
    Without this, a field explains a darker photograph by dark smoke before its camera.
    """

    def __init__(self, cameras: Cameras, training: tuple[int, ...]):
        super().__init__()
        self.logarithms = nn.Parameter(torch.zeros(len(cameras), 3))
        self.neighbours = CameraNeighbours(cameras, training)

    def initialize(self) -> None:
        """Every gain 1."""
        nn.init.zeros_(self.logarithms)

    def forward(
        self, rgb: Float[Tensor, "R 3"], image_index: Int[Tensor, " R"]
    ) -> Float[Tensor, "R 3"]:
        """Colours as their images were exposed."""
        return rgb * torch.exp(rows(self._differences(), image_index))

    def at(self, camera: Cameras) -> Float[Tensor, "3"]:
        """Gains of a picture that nobody took, as the training cameras around it were exposed."""
        return torch.exp(self.neighbours.mean_around(camera, self._differences()))

    def _differences(self) -> Float[Tensor, "N 3"]:
        return self.logarithms - rows(self.logarithms, self.neighbours.trained).mean(dim=0)

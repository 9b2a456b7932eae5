# SPDX-License-Identifier: Apache-2.0
"""A learned vector per training image, for exposure and white balance that differ among them."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from diorama.cameras import Cameras
from diorama.nn.camera_neighbours import CameraNeighbours
from diorama.nn.rows import rows


class Appearance(nn.Module):
    """`size` numbers per image; a view that nobody photographed takes after those around it."""

    def __init__(self, cameras: Cameras, size: int, training: tuple[int, ...]):
        super().__init__()
        self.codes = nn.Parameter(torch.zeros(len(cameras), size))
        self.neighbours = CameraNeighbours(cameras, training)

    def initialize(self) -> None:
        """All alike: codes that differ by chance explain images by name, not by the scene."""
        nn.init.zeros_(self.codes)

    def forward(self, image_index: Int[Tensor, " R"]) -> Float[Tensor, "R A"]:
        """The codes of the images that rays belong to."""
        return rows(self.codes, image_index)

    def at(self, camera: Cameras) -> Float[Tensor, " A"]:
        """The code of a picture that nobody took: the mean of the training cameras around it."""
        return self.neighbours.mean_around(camera, self.codes)

# SPDX-License-Identifier: Apache-2.0
"""A learned vector per training image, for exposure and white balance that differ among them."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from diorama.nn.rows import rows


class Appearance(nn.Module):
    """`size` numbers per image; a view that no photograph belongs to gets the trained mean."""

    is_trained: Tensor

    def __init__(self, num_images: int, size: int, train_indices: tuple[int, ...]):
        super().__init__()
        self.codes = nn.Parameter(torch.zeros(num_images, size))
        is_trained = torch.zeros(num_images, dtype=torch.bool)
        is_trained[list(train_indices)] = True
        self.register_buffer("is_trained", is_trained, persistent=False)

    def initialize(self) -> None:
        """All alike: codes that differ by chance explain images by name, not by the scene."""
        nn.init.zeros_(self.codes)

    def forward(self, image_index: Int[Tensor, " R"]) -> Float[Tensor, "R A"]:
        """The codes of the images that rays belong to."""
        return rows(self.codes, image_index)

    def mean(self) -> Float[Tensor, "1 A"]:
        """The mean code of the training images."""
        return self.codes[self.is_trained].mean(dim=0, keepdim=True)

# SPDX-License-Identifier: Apache-2.0
"""An affine colour map per training image, for photographs whose exposure varies."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class Exposure(nn.Module):
    """rgb -> A rgb + b, the identity at first; held-out images are drawn without one."""

    def __init__(self, num_images: int):
        super().__init__()
        self.maps = nn.Parameter(torch.empty(num_images, 3, 4))
        self.initialize()

    def initialize(self) -> None:
        """Every map the identity."""
        with torch.no_grad():
            self.maps.copy_(torch.eye(3, 4).expand_as(self.maps))

    def forward(self, rgb: Float[Tensor, "H W 3"], image_index: int) -> Float[Tensor, "H W 3"]:
        """The image as its photograph was exposed."""
        affine = self.maps[image_index]
        return rgb @ affine[:, :3].T + affine[:, 3]

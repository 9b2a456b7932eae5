# SPDX-License-Identifier: Apache-2.0
"""Gains of the colour channels per training image, for photographs whose exposure varies."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from diorama.cameras import Cameras
from diorama.nn.rows import rows

TINY = 1e-12
"""Keeps the weight of a training camera finite for a picture from its very place."""


class ExposureGains(nn.Module):
    """rgb -> exp(g_i - mean of all g) rgb, one g per image and channel, zero at first.

    Only differences between images are learned: the scene keeps the exposure of their mean.
    Without this, a field explains a darker photograph by dark smoke before its camera.
    """

    trained: Tensor
    places: Tensor

    def __init__(self, cameras: Cameras, training: tuple[int, ...]):
        super().__init__()
        self.logarithms = nn.Parameter(torch.zeros(len(cameras), 3))
        index = torch.tensor(training, dtype=torch.int64)
        centers = cameras.world_from_camera[index, :, 3]
        self.unit = float((centers - centers.mean(dim=0)).norm(dim=1).mean()) or 1.0
        # Both belong to the data, not to the model: checkpoints need not hold them.
        self.register_buffer("trained", index, persistent=False)
        self.register_buffer("places", self._places(cameras)[index], persistent=False)

    def initialize(self) -> None:
        """Every gain 1."""
        nn.init.zeros_(self.logarithms)

    def forward(
        self, rgb: Float[Tensor, "R 3"], image_index: Int[Tensor, " R"]
    ) -> Float[Tensor, "R 3"]:
        """Colours as their images were exposed."""
        return rgb * torch.exp(rows(self._differences(), image_index))

    @torch.no_grad()
    def at(self, camera: Cameras) -> Float[Tensor, "3"]:
        """Gains of a picture that nobody took, as the training cameras around it were exposed.

        A camera sets its exposure by what it looks at, so neighbours in place and viewing
        direction weigh as 1 / distance^4 (Shepard's interpolation, smooth along a path).
        """
        gap = (self.places - self._places(camera).to(self.places)).square().sum(dim=1) + TINY
        weights = (gap.min() / gap).square()
        differences = self._differences()[self.trained]
        return torch.exp((weights[:, None] * differences).sum(dim=0) / weights.sum())

    def _differences(self) -> Float[Tensor, "N 3"]:
        return self.logarithms - rows(self.logarithms, self.trained).mean(dim=0)

    def _places(self, cameras: Cameras) -> Float[Tensor, "N 6"]:
        """Where cameras stand, in mean distances from their middle, and where they look."""
        poses = cameras.world_from_camera
        return torch.cat((poses[:, :, 3] / self.unit, poses[:, :, 2]), dim=1)

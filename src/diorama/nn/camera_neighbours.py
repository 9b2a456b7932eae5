# SPDX-License-Identifier: Apache-2.0
"""The training cameras around a view that nobody photographed, by place and viewing direction."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from diorama.cameras import Cameras

TINY = 1e-12
"""Keeps the weight of a training camera finite for a picture from its very place."""


class CameraNeighbours(nn.Module):
    """Shepard's interpolation between what was learned for each training camera.

    A camera sets its exposure and colours by what it looks at, so neighbours in place and viewing
    direction weigh as 1 / distance^4: a view takes after the nearest, smoothly along a path.
    """

    trained: Tensor
    places: Tensor

    def __init__(self, cameras: Cameras, training: tuple[int, ...]):
        super().__init__()
        index = torch.tensor(training, dtype=torch.int64)
        centers = cameras.world_from_camera[index, :, 3]
        self.unit = float((centers - centers.mean(dim=0)).norm(dim=1).mean()) or 1.0
        # Both belong to the data, not to the model: checkpoints need not hold them.
        self.register_buffer("trained", index, persistent=False)
        self.register_buffer("places", self._places(cameras)[index], persistent=False)

    @torch.no_grad()
    def mean_around(self, camera: Cameras, of_images: Float[Tensor, "N C"]) -> Float[Tensor, " C"]:
        """The weighted mean of what belongs to the training images, for one camera."""
        gap = (self.places - self._places(camera).to(self.places)).square().sum(dim=1) + TINY
        weights = (gap.min() / gap).square()
        return (weights[:, None] * of_images[self.trained]).sum(dim=0) / weights.sum()

    def _places(self, cameras: Cameras) -> Float[Tensor, "N 6"]:
        """Where cameras stand, in mean distances from their middle, and where they look."""
        poses = cameras.world_from_camera
        return torch.cat((poses[:, :, 3] / self.unit, poses[:, :, 2]), dim=1)

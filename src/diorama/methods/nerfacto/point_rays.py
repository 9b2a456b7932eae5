# SPDX-License-Identifier: Apache-2.0
"""Rays to sparse points that a camera saw: along them it is known where matter is, and where not.

    L = -log(eps + sum_k w_k exp(-(t_k - t*)^2 / (2 width^2)))

is small if the light of a ray comes from near its point's distance t*. It needs density there and
emptiness before it (compare DS-NeRF, equation 6). `eps` keeps a wrong point from pulling hard.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from diorama.cameras import Rays
from diorama.data.scene import Scene
from diorama.methods.nerfacto.samples import RaySamples

EPSILON = 0.02
FIRST_WIDTH, LAST_WIDTH = 0.1, 0.01
"""Of the kernel, relative to the distance, at the start and from `NARROWING_STEPS` on."""
NARROWING_STEPS = 2000


class PointRays(nn.Module):
    """The sightings of a scene's points by its training cameras."""

    origins: Tensor
    targets: Tensor
    image_index: Tensor

    def __init__(self, scene: Scene):
        super().__init__()
        frames, points = _training_sightings(scene).unbind(dim=1)
        centers = scene.cameras.world_from_camera[:, :, 3]
        xyz = torch.zeros(0, 3) if scene.points is None else scene.points.xyz
        # They belong to the data, not to the model: checkpoints need not hold them.
        self.register_buffer("origins", centers[frames], persistent=False)
        self.register_buffer("targets", xyz[points], persistent=False)
        self.register_buffer("image_index", frames, persistent=False)

    def __len__(self) -> int:
        return len(self.origins)

    def draw(self, count: int, generator: torch.Generator) -> tuple[Rays, Float[Tensor, " R"]]:
        """Random sightings as rays, whose camera_index is the frame, and their distances."""
        device = self.origins.device
        chosen = torch.randint(len(self), (count,), generator=generator, device=device)
        offset = self.targets[chosen] - self.origins[chosen]
        distance = offset.norm(dim=1).clamp(min=1e-6)
        ones, zeros = torch.ones_like(distance), torch.zeros_like(distance)
        directions = offset / distance[:, None]
        rays = Rays(self.origins[chosen], directions, ones, zeros, self.image_index[chosen])
        return rays, distance


def point_loss(
    samples: RaySamples, weights: Float[Tensor, "R S"], distance: Float[Tensor, " R"], step: int
) -> Float[Tensor, ""]:
    """The module's formula, averaged over rays; the kernel narrows as training goes on."""
    share = min(1.0, step / NARROWING_STEPS)
    width = FIRST_WIDTH * (LAST_WIDTH / FIRST_WIDTH) ** share * distance[:, None]
    kernel = torch.exp(-0.5 * ((samples.t.detach() - distance[:, None]) / width).square())
    return -torch.log(EPSILON + (weights * kernel).sum(dim=1)).mean()


def _training_sightings(scene: Scene) -> Int[Tensor, "S 2"]:
    """Held-out images must not teach anything, where they saw points included."""
    if scene.points is None or scene.points.sightings is None:
        return torch.zeros(0, 2, dtype=torch.int64)
    sightings = scene.points.sightings
    is_training = torch.zeros(len(scene.frames), dtype=torch.bool)
    is_training[list(scene.splits["train"])] = True
    return sightings[is_training[sightings[:, 0]]]

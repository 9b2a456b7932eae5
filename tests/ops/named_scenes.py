# SPDX-License-Identifier: Apache-2.0
"""The kinds of Gaussians that a splatting system must survive, a scene of each."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from tests.ops.splat_scenes import camera_tensors, world_from

Gaussians = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]
"""Means, quaternions, log-scales, opacity logits, harmonics of degree 3."""
COUNT = 24


class _Draw:
    """Random numbers of one scene."""

    def __init__(self, seed: int):
        self.generator = torch.Generator().manual_seed(seed)

    def uniform(self, low: float, high: float, *shape: int) -> Tensor:
        return low + (high - low) * torch.rand(*shape, generator=self.generator)

    def normal(self, *shape: int) -> Tensor:
        return torch.randn(*shape, generator=self.generator)

    def scene(
        self, points: Tensor, log_scales: Tensor, logits: Tensor, quaternions: Tensor | None = None
    ) -> Gaussians:
        """Gaussians at places of the camera's frame, with colours that depend on the view."""
        count = len(points)
        turns = 2 * self.normal(count, 4) if quaternions is None else quaternions
        return world_from(points), turns, log_scales, logits, 0.4 * self.normal(count, 16, 3)

    def points(self, spread: float, depth: tuple[float, float], count: int = COUNT) -> Tensor:
        """At most `spread` to the side per unit of depth; no two of one depth."""
        z = torch.linspace(*depth, count)[torch.randperm(count, generator=self.generator)]
        return torch.cat([spread * self.uniform(-1, 1, count, 2) * z.abs()[:, None], z[:, None]], 1)


def overlapping() -> Gaussians:
    """One behind the other, some so opaque that pixels fill up before the last."""
    draw = _Draw(1)
    scales = draw.uniform(-2.5, -0.5, COUNT, 3)
    return draw.scene(draw.points(0.15, (1.5, 3.0)), scales, draw.uniform(-1, 6, COUNT))


def behind_camera() -> Gaussians:
    """Behind it, around its centre, and so near before it that they fill the image."""
    draw = _Draw(2)
    scales = draw.uniform(-3.0, -1.0, COUNT, 3)
    return draw.scene(draw.points(0.4, (-2.0, 2.0)), scales, draw.uniform(-2, 3, COUNT))


def off_screen() -> Gaussians:
    """All centres are beside the image; some reach into it, and beyond the Jacobian's limit."""
    draw = _Draw(3)
    points = draw.points(0.5, (1.0, 4.0))
    points[:, :2] += 1.2 * points[:, 2:] * draw.normal(COUNT, 2).sign()
    scales = draw.uniform(-2.0, 0.5, COUNT, 3)
    return draw.scene(points, scales, draw.uniform(0, 4, COUNT))


def degenerate() -> Gaussians:
    """Needles, discs, points of no size at all, and quaternions far from unit length.

    No two axes are equal: which one is the normal would be a matter of rounding.
    """
    draw = _Draw(4)
    scales = draw.uniform(-2.0, -1.0, COUNT, 3)
    scales[0:6, 1:] -= 5.0
    scales[6:12, 2] -= 15.0
    scales[12:15, 1:] -= 100.0
    scales[15:18] -= 100.0
    quaternions = draw.normal(COUNT, 4)
    quaternions[18:20] *= 1e-3
    quaternions[20:22] *= 1e3
    points = draw.points(0.3, (1.0, 3.0))
    return draw.scene(points, scales, draw.uniform(-1, 3, COUNT), quaternions)


def huge() -> Gaussians:
    """Larger than all that is seen; the camera is within most."""
    draw = _Draw(5)
    scales = draw.uniform(0.0, 4.0, COUNT, 3)
    return draw.scene(draw.points(0.8, (0.5, 8.0)), scales, draw.uniform(-3, 1, COUNT))


def transparent() -> Gaussians:
    """On both sides of the faintest opacity that is drawn."""
    draw = _Draw(6)
    faintest = -math.log(254)
    logits = draw.uniform(faintest - 1, faintest + 2, COUNT)
    scales = draw.uniform(-2.0, 0.0, COUNT, 3)
    return draw.scene(draw.points(0.4, (1.0, 4.0)), scales, logits)


SCENES: dict[str, Callable[[], Gaussians]] = {
    scene.__name__: scene
    for scene in (overlapping, behind_camera, off_screen, degenerate, huge, transparent)
}


def camera_of(is_fisheye: bool, scale: float) -> tuple[Tensor, Tensor]:
    """Pose and intrinsics for an image of 60 x 40 pixels times `scale`."""
    camera_from_world, intrinsics = camera_tensors()
    if is_fisheye:
        intrinsics = torch.tensor([20.0, 18.0, 27.0, 22.0])
    return camera_from_world, intrinsics * scale

# SPDX-License-Identifier: Apache-2.0
"""Gaussians for the tests of the splatting ops: ordinary ones, and every awkward kind."""

import math

import torch
from torch import Tensor

WIDTH, HEIGHT = 60, 40
Inputs = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]


def camera_tensors() -> tuple[Tensor, Tensor]:
    """A camera that is turned and shifted, with a principal point away from the middle."""
    angle = 0.3
    cosine, sine = math.cos(angle), math.sin(angle)
    rotation = torch.tensor([[cosine, 0, sine], [0, 1, 0], [-sine, 0, cosine]])
    camera_from_world = torch.cat([rotation, torch.tensor([[0.2], [-0.1], [0.3]])], dim=1)
    return camera_from_world, torch.tensor([50.0, 55.0, 27.0, 22.0])


def world_from(points: Tensor) -> Tensor:
    """World coordinates of points given in the frame of `camera_tensors`."""
    camera_from_world, _ = camera_tensors()
    return (points - camera_from_world[:, 3]) @ camera_from_world[:, :3]


def random_scene(count: int) -> Inputs:
    """Overlapping Gaussians, most of them in view, some behind the camera or outside the image."""
    generator = torch.Generator().manual_seed(count)
    depth = 0.5 + 6 * torch.rand(count, generator=generator)
    depth[::7] *= -1
    across = 1.6 * torch.rand(count, 2, generator=generator) - 0.8
    points = torch.cat([across * depth.abs()[:, None], depth[:, None]], dim=1)
    quaternions = 2 * torch.randn(count, 4, generator=generator)
    log_scales = torch.randn(count, 3, generator=generator) - 2.5
    logits = 3 * torch.randn(count, generator=generator)
    return world_from(points), quaternions, log_scales, logits, *camera_tensors()


def awkward_scene(is_fisheye: bool) -> Inputs:
    """One Gaussian of every awkward kind; those that can be seen must come through exactly."""
    identity = [1.0, 0.0, 0.0, 0.0]
    kinds = [
        # Where it is, how it is turned, its log-scales, its logit.
        ([0.0, 0.0, 2.0], identity, [-2.0, -2.0, -2.0], 1.0),  # on the axis
        ([0.1, 0.05, 2.0], [0.0, 0.0, 0.0, 0.0], [-2.0, -2.0, -2.0], 1.0),  # no rotation at all
        ([0.1, 0.05, 2.0], [0.3, 0.1, -0.9, 0.2], [-1.0, -16.0, -16.0], 1.0),  # a needle
        ([0.1, 0.05, 2.0], [0.3, 0.1, -0.9, 0.2], [-1.0, -1.0, -16.0], 1.0),  # a disc
        ([0.3, -0.2, 3.0], [-1.0, 2.0, 3.0, 0.5], [3.0, 2.0, 2.5], 2.0),  # larger than the image
        ([0.1, 0.1, 2.0], identity, [-2.0, -2.0, -2.0], -20.0),  # transparent
        ([0.0, 0.0, 0.0101], identity, [-7.0, -7.0, -7.0], 1.0),  # just before the near plane
        ([0.0, 0.0, 0.0099], identity, [-7.0, -7.0, -7.0], 1.0),  # just behind it
        ([0.0, 0.0, -2.0], identity, [-2.0, -2.0, -2.0], 1.0),  # right behind the camera
        ([9.0, 0.0, 2.0], identity, [-2.0, -2.0, -2.0], 1.0),  # off the image
        ([4.0, -3.0, 2.0], [0.5, 0.5, 0.1, 0.2], [0.5, 0.2, 0.0], 1.0),  # beyond the limit of J
        ([-3.0, 4.0, 2.5], [0.5, 0.5, 0.1, 0.2], [0.5, 0.2, 0.4], 1.0),  # and on the other sides
        ([0.0, 0.0, math.inf], identity, [-2.0, -2.0, -2.0], 1.0),
        ([0.0, math.nan, 2.0], identity, [-2.0, -2.0, -2.0], 1.0),
        ([0.0, 0.0, 2.0], identity, [-2.0, -2.0, 1e4], 1.0),  # too large for any number
    ]
    if is_fisheye:
        for degrees in (1e-3, 20.0, 30.5, 89.0, 95.0, 140.0):
            angle = math.radians(degrees)
            place = [1.5 * math.sin(angle), math.sin(angle), 1.8 * math.cos(angle)]
            kinds.append((place, [0.3, 0.1, -0.9, 0.2], [-1.0, -2.0, -1.5], 1.0))
    points, quaternions, log_scales, logits = (
        torch.tensor(column) for column in zip(*kinds, strict=True)
    )
    camera_from_world, intrinsics = camera_tensors()
    if is_fisheye:
        intrinsics = torch.tensor([20.0, 18.0, 27.0, 22.0])
    return world_from(points), quaternions, log_scales, logits, camera_from_world, intrinsics

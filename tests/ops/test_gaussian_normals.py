# SPDX-License-Identifier: Apache-2.0
"""Normals of flat Gaussians."""

import math

import torch

from diorama.ops.gaussian_normals import gaussian_normals

half = math.sqrt(0.5)


def test_the_shortest_axis_faces_the_camera():
    quaternions = torch.tensor([[1.0, 0, 0, 0], [2.0, 0, 0, 0], [half, half, 0, 0], [1.0, 0, 0, 0]])
    log_scales = torch.tensor([[0, 0, -1.0], [-1.0, 0, 0], [0, -1.0, 0], [0, -1.0, -1.0]])
    means = torch.tensor([[0, 0, 4.0], [3.0, 0, 0], [0, 0, 5.0], [0, 2.0, 0]])
    normals = gaussian_normals(quaternions, log_scales, means, torch.zeros(3))
    # The third is turned by 90 degrees about x, which takes y to z; the fourth may choose.
    expected = torch.tensor([[0, 0, -1.0], [-1.0, 0, 0], [0, 0, -1.0], [0, -1.0, 0]])
    torch.testing.assert_close(normals, expected)


def test_gradcheck():
    generator = torch.Generator().manual_seed(0)
    quaternions, log_scales, means = (
        torch.randn(5, size, generator=generator).double() for size in (4, 3, 3)
    )
    quaternions.requires_grad_()
    center = torch.zeros(3, dtype=torch.float64)
    assert torch.autograd.gradcheck(
        lambda q: gaussian_normals(q, log_scales, means, center), quaternions
    )


def test_none_at_all():
    empty = torch.empty(0, 3)
    assert gaussian_normals(torch.empty(0, 4), empty, empty, torch.zeros(3)).shape == (0, 3)

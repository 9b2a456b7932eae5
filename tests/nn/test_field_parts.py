# SPDX-License-Identifier: Apache-2.0
"""The small parts of hash-grid methods: density activation, appearance codes, pixel errors."""

import torch

from diorama.cameras import Cameras
from diorama.nn.appearance import Appearance
from diorama.nn.pixels import blended_over, mean_squared_error, psnr_of
from diorama.nn.truncated_exp import truncated_exp


def test_truncated_exp_is_exp_with_a_bounded_slope():
    x = torch.tensor([-20.0, 0.0, 14.0, 30.0], dtype=torch.float64, requires_grad=True)
    y = truncated_exp(x)
    torch.testing.assert_close(y, x.exp())
    (slope,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(slope, torch.tensor([-20.0, 0.0, 14.0, 15.0]).double().exp())
    assert torch.autograd.gradgradcheck(truncated_exp, x[:3].detach().requires_grad_())


def test_a_new_view_takes_after_the_trained_codes_around_it():
    poses = torch.eye(3, 4).repeat(5, 1, 1)
    poses[:, 0, 3] = torch.arange(5.0)
    cameras = Cameras.from_fov(poses, 45.0, 8, 8)
    appearance = Appearance(cameras, 2, training=(1, 3))
    with torch.no_grad():
        appearance.codes.copy_(torch.arange(10.0).view(5, 2))
    torch.testing.assert_close(appearance.at(cameras[2]), torch.tensor([4.0, 5.0]))
    torch.testing.assert_close(appearance.at(cameras[1]), torch.tensor([2.0, 3.0]))
    beside = appearance.at(cameras[4])
    assert 5.8 < float(beside[0]) < 6.0
    torch.testing.assert_close(appearance(torch.tensor([3, 3])), torch.tensor([[6.0, 7.0]] * 2))


def test_pixels_are_blended_and_masked_rays_do_not_count():
    pixels = torch.tensor([[1.0, 0.5, 0.0, 1.0], [1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.5]])
    over = blended_over(pixels, torch.tensor([[0.0, 1.0, 0.0]]))
    expected = torch.tensor([[1.0, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.5, 0.0]])
    torch.testing.assert_close(over, expected)
    wrong = over + torch.tensor([[0.1], [5.0], [0.1]])
    error = mean_squared_error(wrong, over, torch.tensor([1.0, 0.0, 1.0]))
    torch.testing.assert_close(psnr_of(error), torch.tensor(20.0))

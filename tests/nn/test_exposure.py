# SPDX-License-Identifier: Apache-2.0
"""Exposure gains: only differences are learned, and new views take after their neighbours."""

import torch
from torch import Tensor

from diorama.cameras import Cameras
from diorama.nn.exposure import ExposureGains


def cameras_at(*x: float) -> Cameras:
    """Cameras on a line, all looking the same way."""
    poses = torch.eye(3, 4).repeat(len(x), 1, 1)
    poses[:, 0, 3] = torch.tensor(x)
    return Cameras.from_fov(poses, 45.0, 8, 8)


def gains_of(logarithms: Tensor, training: tuple[int, ...]) -> ExposureGains:
    gains = ExposureGains(cameras_at(*map(float, range(len(logarithms)))), training)
    gains.logarithms.data[:] = logarithms[:, None]
    return gains


def test_gains_are_neutral_at_first():
    gains = gains_of(torch.zeros(3), (0, 2))
    rgb = torch.rand(5, 3)
    torch.testing.assert_close(gains(rgb, torch.tensor([0, 1, 2, 0, 2])), rgb)


def test_a_common_gain_changes_nothing():
    gains = gains_of(torch.full((4,), 0.3), (0, 1, 3))
    rgb = torch.full((3, 3), 0.5)
    found = gains(rgb, torch.tensor([0, 1, 3]))
    torch.testing.assert_close(found, rgb)
    gains.logarithms.data[1, 0] += 0.6  # two thirds of it above the new mean
    index = torch.tensor([1])
    torch.testing.assert_close(
        gains(rgb[:1], index)[0, 0], torch.tensor(0.5) * torch.tensor(0.4).exp()
    )


def test_it_learns_what_made_an_image_darker():
    torch.manual_seed(0)
    gains = gains_of(torch.zeros(2), (0, 1))
    index = torch.randint(2, (256,))
    scene = torch.rand(256, 3)
    photographed = scene * torch.where(index == 1, 0.8, 1.25)[:, None]
    optimizer = torch.optim.Adam(gains.parameters(), lr=0.02)
    for _ in range(200):
        optimizer.zero_grad()
        (gains(scene, index) - photographed).square().mean().backward()
        optimizer.step()
    ratio = torch.exp(gains.logarithms[0] - gains.logarithms[1])
    torch.testing.assert_close(ratio.detach(), torch.full((3,), 1.25 / 0.8), rtol=1e-2, atol=0)


def test_a_view_at_a_training_camera_has_its_gains():
    gains = gains_of(torch.tensor([0.2, -0.1, -0.1]), (0, 1, 2))
    expected = torch.tensor([0.2, 0.2, 0.2]).exp()
    torch.testing.assert_close(gains.at(cameras_at(0.0)), expected, rtol=1e-5, atol=0)


def test_nearer_cameras_weigh_more_and_held_out_ones_nothing():
    gains = gains_of(torch.tensor([0.3, 5.0, -0.3]), (0, 2))
    near_first, middle, near_last = (gains.at(cameras_at(x))[0].log() for x in (0.5, 1.0, 1.5))
    assert abs(float(middle)) < 1e-6
    weights = torch.tensor([1 / 0.5**4, 1 / 1.5**4])
    expected = 0.3 * (weights[0] - weights[1]) / weights.sum()
    torch.testing.assert_close(near_first, expected, rtol=1e-5, atol=0)
    torch.testing.assert_close(near_last, -expected, rtol=1e-5, atol=0)


def test_a_camera_far_away_still_gets_gains_between_the_learned_ones():
    gains = gains_of(torch.tensor([0.3, -0.3]), (0, 1)).at(cameras_at(1e6))
    assert torch.isfinite(gains).all() and float(gains.log().abs().max()) < 0.3


def test_cameras_in_one_place_are_told_apart_by_where_they_look():
    poses = torch.eye(3, 4).repeat(2, 1, 1)
    poses[1, :, :3] = torch.diag(torch.tensor([1.0, -1.0, -1.0]))  # looks back
    cameras = Cameras.from_fov(poses, 45.0, 8, 8)
    gains = ExposureGains(cameras, (0, 1))
    gains.logarithms.data[:] = torch.tensor([[0.4], [-0.4]])
    assert gains.at(cameras[0])[0] > 1.49 and gains.at(cameras[1])[0] < 0.68

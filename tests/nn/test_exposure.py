# SPDX-License-Identifier: Apache-2.0
"""Exposure gains: neutral at first, and only differences between training images are learned."""

import torch

from diorama.nn.exposure import ExposureGains


def test_gains_are_neutral_at_first():
    gains = ExposureGains(3, (0, 2))
    rgb = torch.rand(5, 3)
    torch.testing.assert_close(gains(rgb, torch.tensor([0, 1, 2, 0, 2])), rgb)


def test_a_common_gain_changes_nothing():
    gains = ExposureGains(4, (0, 1, 3))
    gains.logarithms.data[[0, 1, 3]] = torch.tensor([0.3, -0.2, 0.7])
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
    gains = ExposureGains(2, (0, 1))
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

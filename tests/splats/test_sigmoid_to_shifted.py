# SPDX-License-Identifier: Apache-2.0
"""Refitted colours are the old ones as nearly as the other form can say them."""

from dataclasses import replace

import pytest
import torch

from diorama.splats import shifted_to_sigmoid, sigmoid_to_shifted
from tests.splats.random_splats import colors_seen, random_directions, random_splats


def test_one_colour_is_exact():
    splats = random_splats(100, degree=0, color="sigmoid")
    shifted, error = sigmoid_to_shifted(splats)
    assert (shifted.color, shifted.degree) == ("shifted", 0)
    assert error < 1e-6
    expected = torch.sigmoid(0.28209479 * splats.sh[:, 0])
    torch.testing.assert_close(0.28209479 * shifted.sh[:, 0] + 0.5, expected)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_error_is_the_one_that_is_seen(degree: int):
    """Mild harmonics, as trained scenes have: under one step of 255 per 0.1 of their strength."""
    splats = random_splats(200, degree, color="sigmoid")
    mild = splats.sh.clone()
    mild[:, 1:] *= 0.1
    splats = replace(splats, sh=mild)
    shifted, error = sigmoid_to_shifted(splats)
    assert shifted.degree == 3
    directions = random_directions(500)
    seen = (colors_seen(shifted, directions) - colors_seen(splats, directions)).abs().max()
    assert float(seen) < 1.5 * error + 1e-6
    assert error < 1 / 255


def test_fit_is_the_least_squares_one():
    """Any small change of a coefficient makes the squared error larger."""
    splats = random_splats(3, degree=2, color="sigmoid")
    shifted, _ = sigmoid_to_shifted(splats)
    directions = random_directions(4000)
    target = colors_seen(splats, directions)

    def loss(change: float, index: int) -> float:
        sh = shifted.sh.clone()
        sh[:, index] += change
        return float((colors_seen(replace(shifted, sh=sh), directions) - target).pow(2).sum())

    for index in range(16):
        assert loss(0, index) < min(loss(0.05, index), loss(-0.05, index))


def test_back_again():
    splats = random_splats(50, degree=1)
    splats = replace(splats, sh=0.2 * splats.sh)
    sigmoid, error = shifted_to_sigmoid(splats)
    assert sigmoid.color == "sigmoid"
    assert error < 2 / 255
    back, again = sigmoid_to_shifted(sigmoid)
    directions = random_directions(100)
    seen = (colors_seen(back, directions) - colors_seen(splats, directions)).abs().max()
    assert float(seen) < 2 * (error + again)


def test_nothing_to_do():
    splats = random_splats(3)
    assert sigmoid_to_shifted(splats) == (splats, 0.0)


def test_more_rows_than_are_fitted_at_once():
    splats = random_splats(8193, degree=0, color="sigmoid")
    shifted, _ = sigmoid_to_shifted(splats)
    alone, _ = sigmoid_to_shifted(splats.select(slice(8192, 8193)))
    torch.testing.assert_close(shifted.sh[8192:], alone.sh)

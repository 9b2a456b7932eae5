# SPDX-License-Identifier: Apache-2.0
"""Filled images: known pixels stay, unknown ones are a mean of what is around them."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from diorama.nn.fill_image import fill_image


@given(st.integers(1, 33), st.integers(1, 33), st.floats(0.0, 1.0), st.integers(0, 1 << 30))
def test_known_pixels_stay_and_others_lie_between_them(height, width, share, seed):
    random = torch.Generator().manual_seed(seed)
    image = torch.rand(height, width, 3, generator=random)
    is_known = torch.rand(height, width, generator=random) < share
    image[~is_known] = 0.5 + 3.0 * image[~is_known]
    filled = fill_image(image, is_known)
    assert torch.equal(filled[is_known], image[is_known])
    if is_known.any():
        low, high = image[is_known].amin(dim=0), image[is_known].amax(dim=0)
        assert ((filled >= low - 1e-3) & (filled <= high + 1e-3)).all()


def test_nothing_known_is_the_mean_of_all():
    image = torch.rand(40, 24, 3, generator=torch.Generator().manual_seed(1))
    filled = fill_image(image, torch.zeros(40, 24, dtype=torch.bool))
    assert filled.std(dim=(0, 1)).max() < 0.1 * image.std()


@pytest.mark.parametrize("size", [(64, 64), (37, 51)])
def test_a_hole_takes_the_colour_of_the_nearer_side(size):
    image = torch.zeros(*size, 3)
    image[:, size[1] // 2 :, 0] = 1.0
    is_known = torch.ones(size, dtype=torch.bool)
    is_known[8:24, 8:-8] = False
    filled = fill_image(torch.where(is_known[:, :, None], image, 0.3), is_known)[16, :, 0]
    assert filled[9] < 0.1 and filled[-10] > 0.9
    assert (filled.diff() > -0.02).all()  # it rises from one side to the other

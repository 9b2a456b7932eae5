# SPDX-License-Identifier: Apache-2.0
"""Outputs of a rendering as pictures: what each number looks like."""

import pytest
import torch

from diorama.errors import UserError
from diorama.export.render import picture
from diorama.model import RenderOutput

DEPTH = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
NORMAL = torch.tensor([[[1.0, 0, 0], [0, -1.0, 0]], [[0, 0, 1.0], [0, 0, 0]]])


def view_of(**extras: torch.Tensor) -> RenderOutput:
    return RenderOutput(torch.rand(2, 2, 3), DEPTH, torch.ones(2, 2), NORMAL, extras)


def test_normals_point_from_black_to_white():
    seen = picture(view_of(), "normal")
    assert seen[0, 0].tolist() == [255, 128, 128] and seen[0, 1].tolist() == [128, 0, 128]
    assert seen[1, 1].tolist() == [128, 128, 128]


def test_shares_are_not_stretched_but_other_extras_are():
    share = torch.tensor([[0.0, 0.2], [0.2, 0.4]])
    assert picture(view_of(photographed=share), "photographed").amax() == 102
    assert picture(view_of(disparity=share), "disparity").amax() == 255


def test_median_depth_has_the_colours_of_depth():
    view, limits = view_of(median_depth=DEPTH), (1.0, 4.0)
    assert torch.equal(picture(view, "median_depth", limits), picture(view, "depth", limits))


@pytest.mark.parametrize("name", ["photographed", "disparity", "normal"])
def test_what_a_method_does_not_render_is_refused_by_name(name):
    view = RenderOutput(torch.rand(2, 2, 3), DEPTH, torch.ones(2, 2))
    with pytest.raises(UserError, match=f"--outputs {name}: this method does not render it"):
        picture(view, name)

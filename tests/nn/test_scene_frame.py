# SPDX-License-Identifier: Apache-2.0
"""The map from scene positions to the unit cube, bounded and contracted."""

import pytest
import torch

from diorama.nn.scene_frame import SceneFrame

BOX = SceneFrame((-1.0, -2.0, -3.0), (1.5, 2.0, 4.0), False)
ALL_SPACE = SceneFrame((-2.0, 0.0, 1.0), (2.0, 4.0, 5.0), True)


@pytest.mark.parametrize("frame", [BOX, ALL_SPACE])
def test_the_way_back_is_the_inverse(frame):
    positions = 3 * torch.randn(500, 3, dtype=torch.float64)
    torch.testing.assert_close(frame.from_unit(frame.to_unit(positions)), positions)


def test_contraction_keeps_the_box_in_the_middle_and_infinity_inside():
    corners = ALL_SPACE.to_unit(torch.tensor([ALL_SPACE.low, ALL_SPACE.high]))
    torch.testing.assert_close(corners, torch.tensor([[0.25] * 3, [0.75] * 3]))
    far = ALL_SPACE.to_unit(1e6 * torch.randn(100, 3))
    assert (far > 0).all()
    assert (far < 1).all()
    # Seen from the centre, |x| = 2 half sides lies at 1.5 of the shell's 2.
    twice = ALL_SPACE.to_unit(torch.tensor([[4.0, 2.0, 3.0]]))
    torch.testing.assert_close(twice, torch.tensor([[(1.5 + 2) / 4, 0.5, 0.5]]))


def test_contraction_is_differentiable_across_the_boundary():
    positions = torch.tensor([[1.9, 1.0, 2.0], [2.5, 1.0, 9.0]], dtype=torch.float64)
    assert torch.autograd.gradcheck(ALL_SPACE.to_unit, positions.requires_grad_())


def test_a_grown_frame_has_the_same_centre():
    grown = BOX.grown(2.0)
    assert grown.center == pytest.approx(BOX.center)
    assert grown.half_side == pytest.approx(2 * BOX.half_side)

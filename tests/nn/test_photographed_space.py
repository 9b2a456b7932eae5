# SPDX-License-Identifier: Apache-2.0
"""Cells that rays met: what counts as photographed, for how long, and how far around."""

import torch

from diorama.nn.photographed_space import EPOCH, WINDOW, PhotographedSpace
from diorama.nn.scene_frame import SceneFrame

BOX = SceneFrame((-1.0,) * 3, (1.0,) * 3, is_contracted=True)
POINT = torch.tensor([[0.1, 0.1, 0.1]])
FAR = torch.tensor([[900.0, -3.0, 5.0]])


def space_of(resolution: int = 16) -> PhotographedSpace:
    return PhotographedSpace(BOX, resolution)


def test_before_a_whole_window_nothing_is_told_apart():
    space = space_of()
    assert space.mask().all()
    space.mark(POINT, (WINDOW - 2) * EPOCH)
    assert space.mask().all()


def test_a_cell_and_its_neighbours_are_photographed_once_a_window_has_passed():
    space = space_of()
    space.mark(POINT, WINDOW * EPOCH)
    mask = space.mask()
    assert mask.sum() == 27
    assert space.look_up(mask, POINT).all()
    assert space.look_up(mask, POINT + 0.25).all() and not space.look_up(mask, POINT + 0.6).any()


def test_the_end_of_the_cube_has_fewer_neighbours_and_infinity_a_cell():
    space = space_of()
    space.mark(FAR, WINDOW * EPOCH)
    assert space.mask().sum() == 18
    assert space.look_up(space.mask(), 100.0 * FAR).all()


def test_what_is_not_met_again_is_forgotten():
    space = space_of()
    space.mark(POINT, 5 * EPOCH)
    space.mark(FAR, (WINDOW + 4) * EPOCH)
    assert space.look_up(space.mask(), POINT).all()
    space.mark(FAR, (WINDOW + 5) * EPOCH)
    assert not space.look_up(space.mask(), POINT).any()
    assert space.look_up(space.mask(), FAR).all()


def test_the_clock_stops_at_its_end_and_does_not_turn_over():
    space = space_of()
    space.mark(POINT, 1 << 50)
    assert space.last_met.max() == 2**15 - 1
    space.initialize()
    assert space.last_met.max() == 0

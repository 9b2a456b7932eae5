# SPDX-License-Identifier: Apache-2.0
"""Contact sheets: tiles where they belong, aspects kept, transparency shown."""

import pytest
import torch

from diorama.export.contact_sheet import contact_sheet, fitted, over_checkerboard, stacked


def plain(height: int, width: int, *color: int) -> torch.Tensor:
    return torch.tensor(color, dtype=torch.uint8).expand(height, width, len(color)).clone()


def test_tiles_lie_in_rows():
    colors = [(200, 0, 0), (0, 200, 0), (0, 0, 200)]
    sheet = contact_sheet([plain(20, 40, *c) for c in colors], ["a", "b", "c"], 2, 200)
    assert sheet.shape[1] == 200
    assert sheet[20, 40].tolist() == [200, 0, 0]
    assert sheet[20, 150].tolist() == [0, 200, 0]
    assert sheet[sheet.shape[0] - 40, 40].tolist() == [0, 0, 200]


def test_labels_are_drawn_and_long_ones_are_cut_to_their_tile():
    blank = contact_sheet([plain(20, 20, 9, 9, 9)] * 2, ["", ""], 2, 300)
    sheet = contact_sheet([plain(20, 20, 9, 9, 9)] * 2, ["x" * 500, "漢字 ü"], 2, 300)
    changed = (blank != sheet).any(-1)
    assert bool(changed.any())
    assert not bool(changed[:, :10].any())
    assert not bool(changed[:, 146:155].any())


def test_aspects_are_kept_and_transparency_shows_the_board():
    assert fitted(plain(10, 40, 1, 2, 3), 20, 20).shape == (5, 20, 3)
    assert fitted(plain(40, 10, 1, 2, 3, 255), 20, 20).shape == (20, 5, 3)
    board = over_checkerboard(plain(16, 16, 0, 0, 0, 0))
    assert board.unique().tolist() == [228, 255]
    assert over_checkerboard(plain(2, 2, 7, 8, 9, 255)).unique().tolist() == [7, 8, 9]


def test_a_sheet_needs_a_label_for_each_image():
    with pytest.raises(ValueError, match="one label per image"):
        contact_sheet([plain(2, 2, 1, 1, 1)], [])


def test_parts_are_stacked():
    assert stacked([plain(3, 5, 1, 1, 1), plain(2, 4, 2, 2, 2)]).shape == (5, 5, 3)

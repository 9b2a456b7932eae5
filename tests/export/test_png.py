# SPDX-License-Identifier: Apache-2.0
"""PNG writing: rounding, colour map, depth limits and refusals."""

import numpy as np
import pytest
import torch
from PIL import Image

from diorama.data.images import read_image
from diorama.errors import UserError
from diorama.export.png import color_map, depth_image, to_bytes, write_png


def test_values_are_rounded_and_held_in_range():
    values = torch.tensor([-1.0, 0.0, 0.499 / 255, 0.501 / 255, 254.6 / 255, 2.0, torch.nan])
    assert to_bytes(values).tolist() == [0, 0, 0, 1, 255, 255, 0]


def test_bytes_survive_a_round_trip_through_floats(tmp_path):
    image = torch.arange(256, dtype=torch.uint8).view(16, 16, 1).expand(-1, -1, 3)
    write_png(tmp_path / "new" / "ä b.png", image.float() / 255)
    assert torch.equal(read_image(tmp_path / "new" / "ä b.png"), image)
    write_png(tmp_path / "alpha.png", image[..., 0])
    assert Image.open(tmp_path / "alpha.png").mode == "L"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_the_color_map_runs_from_blue_to_red():
    low, high = color_map(torch.tensor([0.1, 0.9])).tolist()
    assert low[2] > low[0]
    assert high[0] > high[2]


def test_depth_is_red_when_near_and_white_where_unknown():
    depth = torch.tensor([[1.0, 2.0, 0.0, torch.inf]])
    image = depth_image(depth, limits=(1.0, 2.0))
    assert image[0, 0, 0] > image[0, 0, 2]
    assert image[0, 1, 2] > image[0, 1, 0]
    assert image[0, 2:].tolist() == [[255, 255, 255]] * 2
    hidden = depth_image(depth, alpha=torch.zeros(1, 4))
    assert bool((hidden == 255).all())
    assert not np.array_equal(depth_image(depth)[0, 0], depth_image(depth)[0, 1])


def test_what_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"a\.png: the image cannot be written"):
        write_png(tmp_path / "file" / "a.png", torch.zeros(2, 2, 3))
    with pytest.raises(ValueError, match="3 or 4 channels"):
        write_png(tmp_path / "a.png", torch.zeros(2, 2, 2))

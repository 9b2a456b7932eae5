# SPDX-License-Identifier: Apache-2.0
"""The value type: what it accepts, selects and joins."""

from dataclasses import fields, replace

import pytest
import torch

from diorama.splats import Splats
from tests.splats.random_splats import random_splats


def test_length_and_degree():
    for degree in range(4):
        splats = random_splats(7, degree)
        assert (len(splats), splats.degree) == (7, degree)
    assert len(random_splats(0)) == 0


def test_select_takes_masks_indices_and_slices():
    splats = random_splats(6, color="sigmoid", antialiased=True)
    mask = torch.tensor([True, False, True, False, False, True])
    for index in (mask, torch.tensor([0, 2, 5])):
        chosen = splats.select(index)
        assert torch.equal(chosen.means, splats.means[[0, 2, 5]])
        assert torch.equal(chosen.sh, splats.sh[[0, 2, 5]])
        assert (chosen.color, chosen.antialiased) == ("sigmoid", True)
    assert torch.equal(splats.select(slice(1, 3)).quaternions, splats.quaternions[1:3])


def test_cat_fills_lower_degrees_with_zeros():
    low, high = random_splats(2, 1), random_splats(3, 3, seed=1)
    both = Splats.cat([low, high])
    assert (len(both), both.degree) == (5, 3)
    assert torch.equal(both.sh[:2, :4], low.sh)
    assert not both.sh[:2, 4:].any()
    assert torch.equal(both.sh[2:], high.sh)


def test_cat_refuses_a_mixture_and_nothing():
    with pytest.raises(ValueError, match="agree in color and antialiased"):
        Splats.cat([random_splats(1), random_splats(1, color="sigmoid")])
    with pytest.raises(ValueError, match="at least one part"):
        Splats.cat([])


def test_degree_can_be_cut():
    splats = random_splats(3)
    assert torch.equal(splats.with_degree(1).sh, splats.sh[:, :4])
    with pytest.raises(ValueError, match="degree must be 0 to 3, got 4"):
        splats.with_degree(4)


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("quaternions", (5, 3), r"quaternions must have the shape \(5, 4\), got \(5, 3\)"),
        ("log_scales", (4, 3), r"log_scales must have the shape \(5, 3\), got \(4, 3\)"),
        ("opacity_logits", (5, 1), r"opacity_logits must have the shape \(5,\), got \(5, 1\)"),
        ("sh", (5, 25, 3), r"sh must have the shape \(5, 1 \| 4 \| 9 \| 16, 3\), got \(5, 25"),
    ],
)
def test_wrong_shapes_are_refused_by_name(name: str, shape: tuple[int, ...], message: str):
    """Without the shape checker of the tests, `__post_init__` says it."""
    good = random_splats(5)
    unguarded = object.__new__(Splats)
    unguarded.__dict__.update({field.name: getattr(good, field.name) for field in fields(Splats)})
    unguarded.__dict__[name] = torch.zeros(shape)
    with pytest.raises(ValueError, match=message):
        unguarded.__post_init__()


def test_wrong_kind_is_refused():
    splats = random_splats(2)
    with pytest.raises(ValueError, match=r"means must be float32, got torch\.float64"):
        replace(splats, means=splats.means.double())

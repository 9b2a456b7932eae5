# SPDX-License-Identifier: Apache-2.0
"""Similarities form a group, and act on points and poses alike."""

import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from diorama.cameras import Similarity
from tests.cameras.strategies import random_poses


def random_similarity(seed: int, scale: float) -> Similarity:
    pose = random_poses(1, seed)[0]
    return Similarity(scale, pose[:, :3], pose[:, 3])


similarities = st.builds(random_similarity, st.integers(0, 2**31 - 1), st.floats(0.01, 100))
POINTS = torch.tensor([[0.0, 0, 0], [1, 2, 3], [-4, 0.5, 2]]).double()


def close(a: Similarity, b: Similarity) -> bool:
    torch.testing.assert_close(a.matrix(), b.matrix(), rtol=1e-9, atol=1e-7)
    return True


@settings(max_examples=25, deadline=None)
@given(a=similarities, b=similarities, c=similarities)
def test_group(a, b, c):
    identity = Similarity.identity()
    assert close(a.compose(identity), a)
    assert close(identity.compose(a), a)
    assert close(a.compose(b).compose(c), a.compose(b.compose(c)))
    torch.testing.assert_close(a.inverse().apply(a.apply(POINTS)), POINTS, rtol=0, atol=1e-8)
    torch.testing.assert_close(a.compose(b).apply(POINTS), a.apply(b.apply(POINTS)))


@settings(max_examples=15, deadline=None)
@given(a=similarities, seed=st.integers(0, 1000))
def test_poses_stay_rigid(a, seed):
    moved = a.apply_to_poses(random_poses(4, seed))
    product = moved[:, :, :3] @ moved[:, :, :3].mT
    torch.testing.assert_close(product, torch.eye(3).double().expand(4, 3, 3))
    torch.testing.assert_close(moved[:, :, 3], a.apply(random_poses(4, seed)[:, :, 3]))


def test_the_formula():
    quarter = torch.tensor([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
    similarity = Similarity(2.0, quarter, torch.tensor([10.0, 0, 0]))
    torch.testing.assert_close(
        similarity.apply(torch.tensor([1.0, 0, 3])), torch.tensor([10.0, 2, 6])
    )


def test_plain_form_survives_json():
    pose = random_poses(1, 0)[0]
    similarity = Similarity(0.3, pose[:, :3], pose[:, 3])
    again = Similarity.from_plain(json.loads(json.dumps(similarity.to_plain())))
    assert torch.equal(again.matrix(), similarity.matrix())


@pytest.mark.parametrize(
    "damage",
    [{"scale": 0}, {"scale": "big"}, {"rotation": [[1, 0]]}, {"translation": [0, 0, float("inf")]}],
)
def test_damaged_plain_form_is_a_value_error(damage):
    with pytest.raises(ValueError, match=r"scale|similarity"):
        Similarity.from_plain(Similarity.identity().to_plain() | damage)
    with pytest.raises(ValueError, match="not a similarity"):
        Similarity.from_plain({})

# SPDX-License-Identifier: Apache-2.0
"""Moved splats look, from the moved place, as they did before."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from diorama.cameras import Similarity
from diorama.splats import flip_axes, rotate_sh, transform_splats
from diorama.splats.sh_basis import sh_basis, sphere_directions
from diorama.splats.sh_rotation import sh_rotation
from tests.splats.random_splats import (
    colors_seen,
    covariances,
    random_directions,
    random_rotation,
    random_splats,
)

# The half turn about x in the words of the .spz format: these harmonics change sign.
SPZ_NEGATED = [1, 2, 4, 7, 9, 11, 12, 14]


def test_basis_is_orthonormal():
    """The mean of Y_i Y_j over the sphere is 1 / (4 pi) if i = j, else 0."""
    basis = sh_basis(sphere_directions(20000), 3)
    gram = 4 * math.pi * basis.T @ basis / len(basis)
    torch.testing.assert_close(gram, torch.eye(16, dtype=torch.float64), atol=1e-4, rtol=0)


def test_basis_has_the_published_signs():
    """Hand-evaluated along (2, 3, 6) / 7."""
    x, y, z = 2 / 7, 3 / 7, 6 / 7
    expected = [
        0.28209479,
        *(-0.48860251 * y, 0.48860251 * z, -0.48860251 * x),
        *(1.09254843 * x * y, -1.09254843 * y * z, 0.94617470 * z * z - 0.31539157),
        *(-1.09254843 * x * z, 0.54627422 * (x * x - y * y)),
        *(-0.59004359 * y * (3 * x * x - y * y), 2.89061144 * x * y * z),
        *(0.45704580 * y * (1 - 5 * z * z), 0.37317633 * z * (5 * z * z - 3)),
        *(0.45704580 * x * (1 - 5 * z * z), 1.44530572 * z * (x * x - y * y)),
        -0.59004359 * x * (x * x - 3 * y * y),
    ]
    got = sh_basis(torch.tensor([[x, y, z]], dtype=torch.float64), 3)[0]
    torch.testing.assert_close(got, torch.tensor(expected).double(), atol=1e-7, rtol=0)


@given(seed=st.integers(0, 10**6), degree=st.integers(0, 3))
def test_rotated_harmonics_show_the_same_colour(seed: int, degree: int):
    rotation, directions = random_rotation(seed), random_directions(20, seed)
    sh = torch.randn(5, (degree + 1) ** 2, 3, dtype=torch.float64)
    before = torch.einsum("dk,nkc->ndc", sh_basis(directions, degree), sh)
    turned = sh_basis(directions @ rotation.T, degree)
    after = torch.einsum("dk,nkc->ndc", turned, rotate_sh(sh, rotation))
    torch.testing.assert_close(after, before, atol=1e-12, rtol=0)


def test_rotations_of_harmonics_compose_and_are_orthogonal():
    a, b = random_rotation(1), random_rotation(2)
    product = sh_rotation(a, 3) @ sh_rotation(b, 3)
    torch.testing.assert_close(sh_rotation(a @ b, 3), product, atol=1e-12, rtol=0)
    eye = torch.eye(16, dtype=torch.float64)
    torch.testing.assert_close(product @ product.T, eye, atol=1e-12, rtol=0)


@given(seed=st.integers(0, 10**6), scale=st.floats(0.01, 100))
def test_transformed_splats(seed: int, scale: float):
    splats = random_splats(6, seed=seed)
    rotation = random_rotation(seed)
    similarity = Similarity(scale, rotation, torch.tensor([1.0, -2.0, 3.0]).double())
    moved = transform_splats(similarity, splats)
    expected = scale * splats.means.double() @ rotation.T + similarity.translation
    torch.testing.assert_close(moved.means.double(), expected, atol=1e-5 * scale, rtol=1e-6)
    shape = scale**2 * rotation @ covariances(splats) @ rotation.T
    torch.testing.assert_close(covariances(moved), shape, rtol=1e-5, atol=1e-6 * scale**2)
    directions = random_directions(10, seed)
    torch.testing.assert_close(
        colors_seen(moved, directions @ rotation.T),
        colors_seen(splats, directions),
        atol=1e-5,
        rtol=0,
    )
    assert torch.equal(moved.opacity_logits, splats.opacity_logits)


def test_there_and_back():
    splats = random_splats(50)
    similarity = Similarity(2.5, random_rotation(3), torch.tensor([10.0, 0, -4]).double())
    back = transform_splats(similarity.inverse(), transform_splats(similarity, splats))
    for name in ("means", "quaternions", "log_scales", "sh"):
        torch.testing.assert_close(getattr(back, name), getattr(splats, name), atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize("signs", [(1, -1, -1), (-1, 1, -1), (-1, -1, 1)])
@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_two_flipped_axes_are_half_a_turn(signs: tuple[int, int, int], degree: int):
    splats = random_splats(10, degree)
    flipped = flip_axes(splats, signs)
    rotation = torch.diag(torch.tensor(signs).double())
    turned = transform_splats(Similarity(1.0, rotation, torch.zeros(3).double()), splats)
    torch.testing.assert_close(flipped.means, turned.means)
    torch.testing.assert_close(covariances(flipped), covariances(turned))
    torch.testing.assert_close(flipped.sh, turned.sh, atol=1e-6, rtol=0)
    again = flip_axes(flipped, signs)
    for name in ("means", "quaternions", "log_scales", "opacity_logits", "sh"):
        assert torch.equal(getattr(again, name), getattr(splats, name))


def test_flip_to_right_up_back_has_the_signs_of_spz():
    splats = random_splats(4)
    flipped = flip_axes(splats, (1, -1, -1))
    w, x, y, z = splats.quaternions.unbind(-1)
    assert torch.equal(flipped.quaternions, torch.stack([w, x, -y, -z], dim=-1))
    signs = torch.ones(16)
    signs[SPZ_NEGATED] = -1
    # Counted within the rest, as facts of the format are written: the constant is index 0 here.
    assert torch.equal(flipped.sh, splats.sh * signs[:, None])


@pytest.mark.parametrize("signs", [(-1, 1, 1), (-1, -1, -1), (1, 2, 1), (0, 1, 1)])
def test_mirrors_are_refused(signs: tuple[int, int, int]):
    with pytest.raises(ValueError, match="an even number of -1"):
        flip_axes(random_splats(1), signs)


def test_identity_changes_nothing():
    splats = random_splats(9)
    same = transform_splats(Similarity.identity(), splats)
    assert torch.equal(same.means, splats.means)
    torch.testing.assert_close(same.quaternions, splats.quaternions)
    torch.testing.assert_close(same.sh, splats.sh, atol=1e-6, rtol=0)

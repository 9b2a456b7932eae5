# SPDX-License-Identifier: Apache-2.0
"""Spherical harmonics against their reference, their orthonormality and their closed values."""

import functools
import math

import numpy as np
import pytest
import torch
from torch import Tensor

from diorama import native
from diorama.ops.spherical_harmonics import spherical_harmonics, spherical_harmonics_reference
from tests.ops.parity import assert_parity

BANDS = [1, 2, 3, 4, 5]


def random_directions(count: int) -> Tensor:
    generator = torch.Generator().manual_seed(count)
    return torch.nn.functional.normalize(torch.randn(count, 3, generator=generator), dim=-1)


@pytest.mark.usefixtures("build")
class TestKernel:
    @pytest.mark.parametrize("num_bands", BANDS)
    @pytest.mark.parametrize("count", [0, 1, 16, 37, 5000])
    def test_matches_reference(self, count: int, num_bands: int):
        assert_parity(
            functools.partial(spherical_harmonics, num_bands=num_bands),
            # The constant band alone has no gradient in torch; zero times the input gives one.
            lambda d: spherical_harmonics_reference(d, num_bands) + 0 * d[:, :1],
            random_directions(count),
        )

    @pytest.mark.parametrize("num_bands", BANDS)
    def test_gradcheck(self, num_bands: int):
        directions = random_directions(19).double().requires_grad_()
        assert torch.autograd.gradcheck(lambda d: spherical_harmonics(d, num_bands), directions)

    @pytest.mark.parametrize("num_bands", BANDS)
    def test_bands_are_orthonormal_on_the_sphere(self, num_bands: int):
        """Gauss-Legendre in z and even angles integrate products of these polynomials exactly."""
        nodes, node_weights = np.polynomial.legendre.leggauss(10)
        z = torch.from_numpy(nodes)[:, None]
        angle = torch.arange(20, dtype=torch.float64)[None] * (2 * math.pi / 20)
        radius = (1 - z * z).sqrt()
        parts = torch.broadcast_tensors(radius * angle.cos(), radius * angle.sin(), z)
        values = spherical_harmonics(torch.stack(parts, dim=-1).view(-1, 3), num_bands)
        weights = torch.from_numpy(node_weights).repeat_interleave(20) * (2 * math.pi / 20)
        gram = values.T @ (weights[:, None] * values)
        torch.testing.assert_close(gram, torch.eye(num_bands**2, dtype=torch.float64))

    def test_strided_directions_are_taken(self):
        directions = random_directions(40)[::2]
        got = spherical_harmonics(directions.T.contiguous().T, 4)
        torch.testing.assert_close(got, spherical_harmonics_reference(directions, 4))

    def test_second_derivative_is_refused(self):
        directions = random_directions(3).requires_grad_()
        loss = spherical_harmonics(directions, 3).square().sum()
        with pytest.raises(RuntimeError, match="differentiable once; call its _reference twin"):
            torch.autograd.grad(loss, directions, create_graph=True)


@pytest.mark.parametrize("op", [spherical_harmonics, spherical_harmonics_reference])
def test_values_at_the_axes(op):
    """sqrt((2l + 1) / 4 pi) at the pole for m = 0 and nothing else; signs of the first band."""
    pole = op(torch.tensor([[0.0, 0.0, 1.0]]), 5)[0]
    expected = torch.zeros(25)
    for band in range(5):
        expected[band * (band + 1)] = math.sqrt((2 * band + 1) / (4 * math.pi))
    torch.testing.assert_close(pole, expected)
    a = math.sqrt(3 / (4 * math.pi))
    x_axis, y_axis = op(torch.eye(3)[:2], 2)[:, 1:]
    torch.testing.assert_close(x_axis, torch.tensor([0, 0, -a]))
    torch.testing.assert_close(y_axis, torch.tensor([-a, 0, 0]))


def test_signs_of_gaussian_splatting():
    """The fourth-band entries of a direction without symmetry, from the published constants."""
    x, y, z = 2 / 7, 3 / 7, 6 / 7
    got = spherical_harmonics(torch.tensor([[x, y, z]], dtype=torch.float64), 4)[0, 4:]
    expected = [
        1.0925484 * x * y,
        -1.0925484 * y * z,
        0.3153916 * (2 * z * z - x * x - y * y),
        -1.0925484 * x * z,
        0.5462742 * (x * x - y * y),
        -0.5900436 * y * (3 * x * x - y * y),
        2.8906114 * x * y * z,
        -0.4570458 * y * (4 * z * z - x * x - y * y),
        0.3731763 * z * (2 * z * z - 3 * x * x - 3 * y * y),
        -0.4570458 * x * (4 * z * z - x * x - y * y),
        1.4453057 * z * (x * x - y * y),
        -0.5900436 * x * (x * x - 3 * y * y),
    ]
    exact = torch.tensor(expected, dtype=torch.float64)
    torch.testing.assert_close(got, exact, rtol=0, atol=1e-6)


@pytest.mark.parametrize("num_bands", [0, 6])
def test_wrong_number_of_bands_is_named(num_bands: int):
    with pytest.raises(ValueError, match=f"num_bands must be 1 to 5, got {num_bands}"):
        spherical_harmonics(random_directions(2), num_bands)


@pytest.mark.skipif(native.module is None, reason="the native kernels are not built")
def test_binding_checks_sizes():
    with pytest.raises(ValueError, match="values must have size 9 on axis 1, got 4"):
        native.module.spherical_harmonics_forward(torch.ones(2, 3), 3, torch.empty(2, 4), 1)

# SPDX-License-Identifier: Apache-2.0
"""Compositing against its reference, closed forms and the golden numbers of NeRF."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from diorama import native
from diorama.ops.composite import (
    composite,
    composite_dense,
    composite_dense_reference,
    composite_reference,
)
from tests.ops.parity import assert_parity


def random_rays(num_rays: int, num_samples: int, num_channels: int) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(num_rays + num_samples)
    shape = (num_rays, num_samples)
    sigma = 8 * torch.rand(shape, generator=generator)
    delta = 0.1 * torch.rand(shape, generator=generator)
    return sigma, delta, torch.randn(*shape, num_channels, generator=generator)


def random_packed(lengths: list[int], num_channels: int) -> tuple[Tensor, ...]:
    sigma, delta, values = random_rays(1, sum(lengths), num_channels)
    offsets = torch.tensor([0, *lengths]).cumsum(0)
    return sigma[0], delta[0], values[0], offsets


@pytest.mark.usefixtures("build")
class TestKernel:
    @pytest.mark.parametrize("num_channels", [0, 1, 2, 3, 4, 7])
    @pytest.mark.parametrize("shape", [(0, 4), (5, 0), (1, 1), (7, 33), (256, 128)])
    def test_dense_matches_reference(self, shape: tuple[int, int], num_channels: int):
        inputs = random_rays(*shape, num_channels)
        assert_parity(composite_dense, composite_dense_reference, *inputs)

    @pytest.mark.parametrize("num_channels", [1, 3, 4, 5])
    @pytest.mark.parametrize(
        "lengths", [[], [0], [0, 0, 3, 0], [1, 16, 17, 0, 15, 31, 64], [5, 0, 300, 2] * 70]
    )
    def test_packed_matches_reference(self, lengths: list[int], num_channels: int):
        inputs = random_packed(lengths, num_channels)
        assert_parity(composite, composite_reference, *inputs)

    @pytest.mark.parametrize("kernel", [composite_dense, composite_dense_reference])
    @pytest.mark.parametrize("num_channels", [2, 3])
    def test_last_delta_may_be_infinite_in_all_but_name(self, kernel, num_channels: int):
        sigma, delta, values = random_rays(40, 21, num_channels)
        delta[:, -1] = 1e10
        sigma[::2, -1] = 0
        sigma[::5] = 0
        inputs = [t.requires_grad_() for t in (sigma, delta, values)]
        result = kernel(*inputs)
        gradients = torch.autograd.grad(result.values.sum() + result.opacity.sum(), inputs)
        assert all(t.isfinite().all() for t in (result.weights, result.values, *gradients))
        # Behind an opaque last sample nothing is left, and its gradient is exactly zero.
        assert (gradients[0][1::10, -1] == 0).all()
        torch.testing.assert_close(result.opacity[1::10], torch.ones(4))

    def test_opaque_ray_hides_the_rest(self):
        sigma = torch.tensor([[0.0, 1e4, 3.0, 1e30]])
        result = composite_dense(sigma, torch.ones(1, 4), torch.ones(1, 4, 3))
        assert result.weights.tolist() == [[0, 1, 0, 0]]

    def test_faint_ray_decays_through_the_smallest_numbers(self):
        sigma, delta, values = random_rays(3, 2000, 3)
        assert_parity(composite_dense, composite_dense_reference, 3 * sigma, delta, values)

    def test_tiny_optical_depths_keep_their_digits(self):
        sigma = torch.full((1, 40), 1e-12)
        weights = composite_dense(sigma, torch.ones(1, 40), torch.ones(1, 40, 1)).weights
        torch.testing.assert_close(weights, sigma, rtol=1e-6, atol=0)

    def test_nan_is_not_hidden(self):
        sigma = torch.tensor([[1.0, math.nan, 1.0]])
        weights = composite_dense(sigma, torch.ones(1, 3), torch.ones(1, 3, 3)).weights
        assert weights.isnan().tolist() == [[False, True, True]]

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_the_same_with_and_without_gradients(self, dtype: torch.dtype):
        inputs = [t.to(dtype).requires_grad_() for t in random_rays(5, 37, 3)]
        taught = composite_dense(*inputs)
        with torch.no_grad():
            looked_at = composite_dense(*inputs)
        assert taught.values.requires_grad
        assert not looked_at.values.requires_grad
        for name in ("weights", "values", "opacity"):
            assert torch.equal(getattr(taught, name), getattr(looked_at, name))

    def test_the_smallest_numbers_of_others_are_left_alone(self):
        composite_dense(*random_rays(100, 64, 3))
        assert (torch.full((64,), 1e-39) * 0.5 > 0).all()

    @pytest.mark.parametrize("num_channels", [2, 3])
    def test_gradcheck(self, num_channels: int):
        *floats, offsets = random_packed([3, 0, 9, 1], num_channels)
        inputs = [t.double().requires_grad_() for t in floats]

        def outputs(*args: Tensor) -> tuple[Tensor, ...]:
            result = composite(*args, offsets)
            return result.weights, result.values, result.opacity

        assert torch.autograd.gradcheck(outputs, inputs)

    @pytest.mark.parametrize("power", [1, 2])
    def test_second_derivative_is_refused(self, power: int):
        inputs = [t.requires_grad_() for t in random_rays(2, 3, 3)]
        loss = (composite_dense(*inputs).values ** power).sum()
        with pytest.raises(RuntimeError, match="differentiable once; call its _reference twin"):
            torch.autograd.grad(loss, inputs[:1], create_graph=True)

    def test_only_wanted_gradients_are_computed(self):
        sigma, delta, values = random_rays(4, 6, 3)
        sigma.requires_grad_()
        composite_dense(sigma, delta, values).weights.sum().backward()
        assert sigma.grad is not None
        assert delta.grad is None
        assert values.grad is None

    def test_strided_inputs_are_taken(self):
        sigma, delta, values = random_rays(6, 10, 4)
        expected = composite_dense(sigma[:, ::2], delta[:, ::2], values[:, ::2, 1:])
        strided = composite_dense_reference(sigma[:, ::2], delta[:, ::2], values[:, ::2, 1:])
        torch.testing.assert_close(expected.values, strided.values)


@given(
    tau=st.lists(st.floats(0, 30, width=32), min_size=1, max_size=50),
    split=st.integers(0, 50),
)
def test_opacity_depends_on_total_depth_only(tau: list[float], split: int):
    """1 - exp(-sum tau) per ray, wherever a second ray begins."""
    split = min(split, len(tau))
    sigma = torch.tensor(tau, dtype=torch.float64)
    offsets = torch.tensor([0, split, len(tau)])
    result = composite(sigma, torch.ones_like(sigma), sigma[:, None], offsets)
    depth = torch.stack([sigma[:split].sum(), sigma[split:].sum()])
    torch.testing.assert_close(result.opacity, -torch.expm1(-depth))


def test_uniform_fog_has_its_closed_form():
    """Density s to depth D: opacity 1 - exp(-s D); mean depth, as D grows, 1 / s."""
    sigma, step, count = 2.0, 0.001, 20_000
    depths = (torch.arange(count) + 0.5)[None, :, None] * step
    result = composite_dense(torch.full((1, count), sigma), torch.full((1, count), step), depths)
    assert result.opacity.item() == pytest.approx(1 - math.exp(-sigma * step * count), rel=1e-5)
    assert result.values.item() == pytest.approx(1 / sigma, rel=1e-4)


def test_golden_row_of_nerf():
    """Raw network rows of the NeRF code: relu density, sigmoid colour, last delta 1e10."""
    raw = torch.tensor([[0, 0, 0, 0.5], [2, -1, 0, 3], [-1, 1, 2, 10]])
    z = torch.tensor([2.0, 3.0, 4.0])
    length = torch.tensor([0, 0.6, -1]).norm()
    delta = torch.cat([z.diff(), torch.tensor([1e10])]) * length
    values = torch.cat([raw[:, :3].sigmoid(), z[:, None]], dim=-1)
    result = composite_dense(raw[None, :, 3].relu(), delta[None], values[None])

    def near(golden: list[float]) -> Tensor:
        return torch.tensor([golden])

    close = {"rtol": 0, "atol": 1e-6}
    torch.testing.assert_close(result.weights, near([0.441832, 0.541289, 0.016879]), **close)
    torch.testing.assert_close(
        result.values, near([0.702221, 0.378831, 0.506428, 2.575047]), **close
    )
    assert (result.opacity / result.values[:, 3]).item() == pytest.approx(0.388342, abs=1e-6)


def test_reference_is_twice_differentiable():
    *floats, offsets = random_packed([2, 0, 3], 2)
    inputs = [t.double().requires_grad_() for t in floats]
    assert torch.autograd.gradgradcheck(
        lambda *args: composite_reference(*args, offsets).values, inputs
    )


def test_half_precision_is_served_by_the_reference():
    sigma, delta, values = (t.bfloat16() for t in random_rays(2, 5, 3))
    assert not native.serves(sigma, delta, values)
    assert composite_dense(sigma, delta, values).values.dtype == torch.bfloat16

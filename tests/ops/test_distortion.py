# SPDX-License-Identifier: Apache-2.0
"""The distortion loss against its reference, the double sum of the paper, and a closed form."""

import jaxtyping
import pytest
import torch
from torch import Tensor

from diorama.ops.distortion import distortion, distortion_reference
from tests.ops.parity import assert_parity


def random_packed(lengths: list[int]) -> tuple[Tensor, ...]:
    """Weights, midpoints in order, lengths and offsets; rays start far away."""
    generator = torch.Generator().manual_seed(sum(lengths))
    delta = 0.1 * torch.rand(sum(lengths), generator=generator) + 0.01
    ends = 50 + delta.cumsum(0) if lengths else delta
    weights = torch.rand(sum(lengths), generator=generator)
    return weights, ends - 0.5 * delta, delta, torch.tensor([0, *lengths]).cumsum(0)


def double_sum(weights: Tensor, t: Tensor, delta: Tensor) -> Tensor:
    """Equation 15 of mip-NeRF 360 as it stands, for one ray."""
    pairs = weights[:, None] * weights * (t[:, None] - t).abs()
    return pairs.sum() + (weights**2 * delta).sum() / 3


@pytest.mark.usefixtures("build")
class TestKernel:
    @pytest.mark.parametrize(
        "lengths", [[], [0], [0, 0, 3, 0], [1, 16, 17, 0, 15, 31, 64], [5, 0, 300, 2] * 70]
    )
    def test_matches_reference(self, lengths: list[int]):
        assert_parity(distortion, distortion_reference, *random_packed(lengths))

    def test_gradcheck(self):
        *floats, offsets = random_packed([3, 0, 9, 1])
        inputs = [x.double().requires_grad_() for x in floats]
        assert torch.autograd.gradcheck(lambda *args: distortion(*args, offsets), inputs)

    def test_is_the_double_sum_of_the_paper(self):
        lengths = [7, 0, 40, 1]
        weights, t, delta, offsets = random_packed(lengths)
        inputs = [x.double().requires_grad_() for x in (weights, t, delta)]
        parts = zip(*(x.split(lengths) for x in inputs), strict=True)
        expected = torch.stack([double_sum(*part) for part in parts])
        got = distortion(*inputs, offsets)
        torch.testing.assert_close(got, expected)
        for ours, theirs in zip(
            torch.autograd.grad(got.sum(), inputs),
            torch.autograd.grad(expected.sum(), inputs),
            strict=True,
        ):
            torch.testing.assert_close(ours, theirs)

    def test_only_wanted_gradients_are_computed(self):
        weights, t, delta, offsets = random_packed([20, 3])
        t.requires_grad_()
        distortion(weights, t, delta, offsets).sum().backward()
        assert t.grad is not None
        assert weights.grad is None

    def test_second_derivative_is_refused(self):
        weights, t, delta, offsets = random_packed([4])
        loss = distortion(weights.requires_grad_(), t, delta, offsets).sum()
        with pytest.raises(RuntimeError, match="differentiable once"):
            torch.autograd.grad(loss, weights, create_graph=True)


def test_a_uniform_ray_has_its_closed_form():
    """Weight 1 spread evenly over [0, 1]: the mean distance of two points, 1/3, however fine."""
    for count in (1, 10, 1000):
        edges = torch.linspace(0, 1, count + 1, dtype=torch.float64)
        middle, delta = 0.5 * (edges[1:] + edges[:-1]), edges.diff()
        weights = torch.full((count,), 1 / count, dtype=torch.float64)
        loss = distortion(weights, middle, delta, torch.tensor([0, count]))
        assert loss.item() == pytest.approx(1 / 3)


def test_wrong_shapes_are_named(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    offsets = torch.tensor([0, 2])
    with pytest.raises(ValueError, match=r"t must have the shape of weights \(2,\), got \(3,\)"):
        distortion(torch.ones(2), torch.ones(3), torch.ones(2), offsets)
    with pytest.raises(ValueError, match="delta must have the shape of weights"):
        distortion(torch.ones(2), torch.ones(2), torch.ones(1), offsets)


def test_reference_is_twice_differentiable():
    *floats, offsets = random_packed([2, 0, 3])
    inputs = [x.double().requires_grad_() for x in floats]
    assert torch.autograd.gradgradcheck(lambda *a: distortion_reference(*a, offsets), inputs)

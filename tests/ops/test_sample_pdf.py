# SPDX-License-Identifier: Apache-2.0
"""Inverse-CDF sampling against NeRF's golden numbers and the density that it should follow."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from diorama import native
from diorama.ops.sample_pdf import (
    resample_edges,
    resample_edges_reference,
    sample_pdf,
    sample_pdf_reference,
)

BINS = torch.arange(5.0)[None]
WEIGHTS = torch.tensor([[0.1, 0.6, 0.2, 0.1]])


def random_histograms(num_rays: int, num_bins: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(num_rays + num_bins)
    edges = 2 + torch.rand(num_rays, num_bins + 1, generator=generator).cumsum(-1)
    weights = torch.rand(num_rays, num_bins, generator=generator) ** 4
    return edges, weights / num_bins


def on_threads(num_threads: int, op, *arguments) -> Tensor:
    torch.set_num_threads(num_threads)
    return op(*arguments)


SHAPES = [(0, 4), (1, 1), (7, 33), (65, 64), (300, 256)]


@pytest.mark.usefixtures("build")
class TestKernel:
    @pytest.mark.parametrize("num_samples", [0, 1, 17, 128])
    @pytest.mark.parametrize("shape", SHAPES)
    def test_even_samples_match_reference(self, shape: tuple[int, int], num_samples: int):
        edges, weights = random_histograms(*shape)
        exact = sample_pdf_reference(edges.double(), weights.double(), num_samples)
        one, two, three = (
            on_threads(n, sample_pdf, edges, weights, num_samples) for n in (1, 2, 3)
        )
        assert one.dtype == torch.float32
        torch.testing.assert_close(one.double(), exact, rtol=1e-4, atol=0)
        assert torch.equal(one, two) and torch.equal(one, three)

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    @pytest.mark.parametrize("shape", SHAPES)
    def test_random_samples_match_reference(self, shape: tuple[int, int], dtype: torch.dtype):
        """The same generator gives the same samples, in the same order."""
        edges, weights = (t.to(dtype) for t in random_histograms(*shape))
        got, expected = (
            op(edges, weights, 50, torch.Generator().manual_seed(5))
            for op in (sample_pdf, sample_pdf_reference)
        )
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=0)

    @pytest.mark.parametrize("has_jitter", [False, True])
    @pytest.mark.parametrize("num_samples", [1, 48, 96])
    @pytest.mark.parametrize("shape", SHAPES)
    def test_edges_match_reference(
        self, shape: tuple[int, int], num_samples: int, has_jitter: bool
    ):
        edges, weights = random_histograms(*shape)
        jitter = torch.linspace(0, 0.999, shape[0]) if has_jitter else None
        exact = resample_edges_reference(
            edges.double(),
            weights.double(),
            num_samples,
            jitter if jitter is None else jitter.double(),
        )
        one, two = (
            on_threads(n, resample_edges, edges, weights, num_samples, jitter) for n in (1, 2)
        )
        torch.testing.assert_close(one.double(), exact, rtol=1e-4, atol=0)
        assert torch.equal(one, two)
        assert (one.diff() >= 0).all()

    def test_nan_is_not_hidden(self):
        weights = torch.tensor([[0.1, float("nan"), 0.2, 0.1]]).repeat(2, 1)
        weights[1] = 1.0
        assert sample_pdf(BINS.repeat(2, 1), weights, 3).isnan().any(1).tolist() == [True, False]

    def test_strided_inputs_are_taken(self):
        edges, weights = random_histograms(9, 8)
        got = resample_edges(edges[::2], weights.T.contiguous().T[::2], 4)
        torch.testing.assert_close(got, resample_edges(edges, weights, 4)[::2], rtol=0, atol=0)

    def test_constant_density_gives_even_edges(self):
        """u_k = (k + jitter) / (n + 1) itself, whatever the bins are."""
        edges = torch.tensor([[0.0, 0.1, 0.25, 0.7, 1.0]])
        got = resample_edges(edges, 3 * edges.diff(), 9, torch.tensor([0.25]), padding=1e-12)
        torch.testing.assert_close(got, (torch.arange(10.0)[None] + 0.25) / 10)

    def test_resampled_edges_follow_the_density(self):
        got = resample_edges(BINS, WEIGHTS, 9999, padding=1e-6)
        share = torch.histc(got, bins=4, min=0, max=4) / 10_000
        torch.testing.assert_close(share[None], WEIGHTS, rtol=0, atol=1e-3)


def test_golden_numbers_of_nerf():
    golden = torch.tensor([[0, 1.249996, 1.666672, 2.250037, 4]])
    torch.testing.assert_close(sample_pdf(BINS, WEIGHTS, 5), golden, rtol=0, atol=1e-6)


def test_random_samples_follow_the_density():
    samples = sample_pdf(BINS, WEIGHTS, 40_000, torch.Generator().manual_seed(0))
    share = torch.histc(samples, bins=4, min=0, max=4) / 40_000
    torch.testing.assert_close(share[None], WEIGHTS, rtol=0, atol=0.01)


def test_generator_decides_the_samples():
    first, again, other = (
        sample_pdf(BINS, WEIGHTS, 8, torch.Generator().manual_seed(seed)) for seed in (3, 3, 4)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@given(
    weights=st.lists(st.floats(0, 1e3, width=32), min_size=1, max_size=20),
    num_samples=st.integers(1, 40),
)
def test_samples_stay_in_the_bins_in_order(weights: list[float], num_samples: int):
    bins = torch.linspace(2, 6, len(weights) + 1)[None]
    samples = sample_pdf(bins, torch.tensor([weights]), num_samples)
    assert samples.isfinite().all()
    assert (samples >= 2).all()
    assert (samples <= 6).all()
    assert (samples.diff() >= -1e-4).all()


def test_empty_rays_are_sampled_evenly():
    samples = sample_pdf(BINS, torch.zeros(1, 4), 5)
    torch.testing.assert_close(samples, BINS, rtol=0, atol=1e-5)


def test_result_carries_no_gradient():
    assert not sample_pdf(BINS, WEIGHTS.clone().requires_grad_(), 3).requires_grad


def test_wrong_number_of_edges_is_named():
    with pytest.raises(ValueError, match=r"bins must have the shape \(1, 5\).*got \(1, 4\)"):
        sample_pdf(BINS[:, 1:], WEIGHTS, 3)


def test_wrong_arguments_of_resampling_are_named():
    with pytest.raises(ValueError, match=r"edges must have the shape \(1, 5\).*got \(1, 4\)"):
        resample_edges(BINS[:, 1:], WEIGHTS, 3)
    with pytest.raises(ValueError, match="padding must be positive"):
        resample_edges(BINS, WEIGHTS, 3, padding=0.0)
    with pytest.raises(ValueError, match="at least one bin"):
        resample_edges(torch.ones(2, 1), torch.ones(2, 0), 3)


@pytest.mark.skipif(native.module is None, reason="the native kernels are not built")
def test_binding_checks_sizes_and_survives_wild_places():
    samples = torch.empty(1, 3)
    wild = torch.tensor([[float("inf"), float("nan"), -1.0]])
    native.module.invert_cdf(BINS, WEIGHTS, wild, None, 1e-5, 1e-5, samples, 1)
    with pytest.raises(ValueError, match="u must have size 3 on axis 1, got 2"):
        native.module.invert_cdf(BINS, WEIGHTS, wild[:, :2].clone(), None, 0.1, 0.1, samples, 1)
    with pytest.raises(ValueError, match="jitter must have size 1 on axis 0, got 2"):
        native.module.invert_cdf(BINS, WEIGHTS, None, torch.ones(2), 0.1, 0.1, samples, 1)

# SPDX-License-Identifier: Apache-2.0
"""Inverse-CDF sampling against NeRF's golden numbers and the density that it should follow."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from diorama.ops.sample_pdf import sample_pdf

BINS = torch.arange(5.0)[None]
WEIGHTS = torch.tensor([[0.1, 0.6, 0.2, 0.1]])


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
    assert (samples <= 6 + 1e-5).all()
    assert (samples.diff() >= -1e-4).all()


def test_empty_rays_are_sampled_evenly():
    samples = sample_pdf(BINS, torch.zeros(1, 4), 5)
    torch.testing.assert_close(samples, BINS, rtol=0, atol=1e-5)


def test_result_carries_no_gradient():
    assert not sample_pdf(BINS, WEIGHTS.clone().requires_grad_(), 3).requires_grad


def test_wrong_number_of_edges_is_named():
    with pytest.raises(ValueError, match=r"bins must have the shape \(1, 5\).*got \(1, 4\)"):
        sample_pdf(BINS[:, 1:], WEIGHTS, 3)

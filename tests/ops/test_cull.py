# SPDX-License-Identifier: Apache-2.0
"""Culling against its reference and against rays whose visibility is known."""

import math

import jaxtyping
import pytest
import torch
from torch import Tensor

from diorama.ops.composite import composite
from diorama.ops.cull import cull, cull_reference


def random_packed(lengths: list[int]) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(sum(lengths))
    sigma = 12 * torch.rand(sum(lengths), generator=generator)
    delta = 0.1 * torch.rand(sum(lengths), generator=generator)
    return sigma, delta, torch.tensor([0, *lengths]).cumsum(0)


@pytest.mark.usefixtures("build")
class TestKernel:
    @pytest.mark.parametrize(
        ("min_transmittance", "min_alpha"), [(1e-4, 0.0), (0.3, 0.05), (0.0, 0.2), (0.0, 0.0)]
    )
    @pytest.mark.parametrize(
        "lengths", [[], [0], [0, 0, 3, 0], [1, 16, 17, 0, 15, 31, 64], [5, 0, 300, 2] * 70]
    )
    def test_matches_reference(self, lengths, min_transmittance, min_alpha):
        sigma, delta, offsets = random_packed(lengths)
        expected = cull_reference(
            sigma.double(), delta.double(), offsets, min_transmittance, min_alpha
        )
        for threads in (1, 2):
            torch.set_num_threads(threads)
            for dtype in (torch.float32, torch.float64):
                samples = sigma.to(dtype), delta.to(dtype), offsets
                kept, new_offsets = cull(*samples, min_transmittance, min_alpha)
                assert torch.equal(kept, expected[0])
                assert torch.equal(new_offsets, expected[1])

    def test_nan_hides_itself_and_what_is_behind(self):
        sigma, offsets = torch.ones(40), torch.tensor([0, 40])
        sigma[20] = math.nan
        assert cull(sigma, torch.full((40,), 0.1), offsets)[0].tolist() == list(range(20))

    def test_last_delta_may_be_infinite_in_all_but_name(self):
        sigma, delta = torch.tensor([0.0, 1.0, 5.0, 2.0]), torch.tensor([1.0, 1e10, 1.0, 1e10])
        assert cull(sigma, delta, torch.tensor([0, 2, 4]))[0].tolist() == [0, 1, 2, 3]

    def test_offsets_are_checked(self):
        with pytest.raises(ValueError, match="ray_offsets must not decrease"):
            cull(torch.ones(2), torch.ones(2), torch.tensor([0, 3, 2]))


@pytest.mark.parametrize("op", [cull, cull_reference])
def test_transmittance_counts_what_alpha_drops(op):
    """Ten faint samples dim the light below the bound, though each alone is dropped."""
    sigma = torch.tensor([0.1] * 10 + [5.0, 5.0])
    delta, offsets = torch.ones(12), torch.tensor([0, 12])
    assert op(sigma, delta, offsets, 0.5, 0.2)[0].tolist() == []
    assert op(sigma, delta, offsets, 0.3, 0.2)[0].tolist() == [10]


def test_what_is_dropped_changes_no_pixel():
    sigma, delta, offsets = random_packed([64] * 50)
    sigma = 5 * sigma
    values = torch.ones(len(sigma), 1)
    kept, new_offsets = cull(sigma, delta, offsets, 1e-4)
    whole = composite(sigma, delta, values, offsets).opacity
    part = composite(sigma[kept], delta[kept], values[kept], new_offsets).opacity
    assert len(kept) < 0.9 * len(sigma)
    assert (whole - part).abs().max() < 1.1e-4


def test_delta_of_another_shape_is_named(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match=r"delta must have the shape of sigma \(2,\), got \(3,\)"):
        cull(torch.ones(2), torch.ones(3), torch.tensor([0, 2]))

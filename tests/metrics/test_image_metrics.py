# SPDX-License-Identifier: Apache-2.0
"""PSNR and SSIM against closed forms and scikit-image."""

import math

import pytest
import torch
from skimage.metrics import structural_similarity

from diorama.metrics import psnr, ssim


def images(height: int, width: int, noise: float) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(height * width)
    a = torch.rand((height, width, 3), generator=generator, dtype=torch.float64)
    a = torch.cumsum(a, 0) / torch.arange(1, height + 1)[:, None, None]
    b = a + noise * torch.randn((height, width, 3), generator=generator, dtype=torch.float64)
    return a, b.clamp(0, 1)


@pytest.mark.parametrize("error", [0.5, 0.1, 1e-3])
def test_a_constant_error_has_its_closed_form(error):
    a = torch.full((4, 5, 3), 0.25, dtype=torch.float64)
    assert float(psnr(a, a + error)) == pytest.approx(-20 * math.log10(error))


def test_equal_images_have_infinite_psnr_and_unit_ssim():
    a, _ = images(20, 30, 0.0)
    assert float(psnr(a, a)) == math.inf
    assert float(ssim(a, a)) == pytest.approx(1.0)


def test_weights_choose_pixels():
    a = torch.zeros(1, 2, 3)
    b = torch.tensor([[[0.1] * 3, [0.5] * 3]])
    assert float(psnr(a, b, torch.tensor([[1.0, 0.0]]))) == pytest.approx(20.0)
    assert math.isnan(float(psnr(a, b, torch.zeros(1, 2))))


@pytest.mark.parametrize(("height", "width"), [(11, 11), (12, 31), (64, 48), (200, 100)])
@pytest.mark.parametrize("noise", [0.01, 0.2])
def test_ssim_is_that_of_scikit_image(height, width, noise):
    a, b = images(height, width, noise)
    expected = structural_similarity(
        a.numpy(), b.numpy(), gaussian_weights=True, sigma=1.5, use_sample_covariance=False,
        data_range=1.0, channel_axis=2,
    )  # fmt: skip
    assert float(ssim(a, b)) == pytest.approx(expected, abs=1e-9)
    assert float(ssim(a.float(), b.float())) == pytest.approx(expected, abs=1e-4)


def test_constant_images_leave_only_the_luminance_term():
    a, b = (torch.full((15, 15, 3), value, dtype=torch.float64) for value in (0.2, 0.6))
    expected = (2 * 0.2 * 0.6 + 1e-4) / (0.2**2 + 0.6**2 + 1e-4)
    assert float(ssim(a, b)) == pytest.approx(expected)


@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (5, 8), (10, 10)])
def test_small_images_are_measured_with_a_smaller_window(shape):
    a, b = images(*shape, 0.1)
    assert -1 <= float(ssim(a, b)) <= 1
    assert float(ssim(a, a)) == pytest.approx(1.0)


def test_ssim_is_differentiable():
    a, b = images(12, 12, 0.1)
    assert torch.autograd.gradcheck(lambda x: ssim(x, b), a.requires_grad_())

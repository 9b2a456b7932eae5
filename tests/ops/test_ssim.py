# SPDX-License-Identifier: Apache-2.0
"""SSIM against its reference, a direct evaluation of one window, and closed forms."""

import functools
import math

import pytest
import torch
from torch import Tensor

from diorama import native
from diorama.ops.ssim import Padding, ssim, ssim_reference
from tests.ops.parity import assert_parity

PADDINGS: list[Padding] = ["valid", "same"]


def random_images(height: int, width: int, channels: int) -> tuple[Tensor, Tensor]:
    """A smooth image and a noisy copy: moments and covariances of every size."""
    generator = torch.Generator().manual_seed(height * width + channels)
    phases = 6 * torch.rand(channels, generator=generator)
    y, x = torch.arange(height)[:, None, None], torch.arange(width)[None, :, None]
    a = 0.5 + 0.4 * torch.sin(0.3 * y + phases) * torch.cos(0.2 * x - phases)
    return a, a + 0.1 * torch.randn(a.shape, generator=generator)


@pytest.mark.usefixtures("build")
class TestKernel:
    @pytest.mark.parametrize("padding", PADDINGS)
    @pytest.mark.parametrize(
        "shape", [(1, 1, 1), (3, 40, 2), (11, 11, 3), (33, 85, 3), (70, 101, 4), (45, 300, 1)]
    )
    def test_matches_reference(self, shape: tuple[int, int, int], padding: Padding):
        assert_parity(
            functools.partial(ssim, padding=padding),
            functools.partial(ssim_reference, padding=padding),
            *random_images(*shape),
            rtol=5e-4,  # one pixel alone has a variance of rounding errors only
            atol=2e-5,
        )

    @pytest.mark.parametrize("padding", PADDINGS)
    @pytest.mark.parametrize("shape", [(12, 13, 2), (4, 7, 1)])
    def test_gradcheck(self, shape: tuple[int, int, int], padding: Padding):
        images = [t.double().requires_grad_() for t in random_images(*shape)]
        assert torch.autograd.gradcheck(lambda a, b: ssim(a, b, padding), images)

    @pytest.mark.parametrize("padding", PADDINGS)
    @pytest.mark.parametrize("wanted", [0, 1])
    def test_one_gradient_is_that_of_both(self, wanted: int, padding: Padding):
        images = [t.requires_grad_() for t in random_images(40, 90, 3)]
        both = torch.autograd.grad(ssim(*images, padding), images)
        images[1 - wanted].requires_grad_(False)
        (one,) = torch.autograd.grad(ssim(*images, padding), images[wanted])
        torch.testing.assert_close(one, both[wanted], rtol=0, atol=0)

    def test_one_window_by_hand(self):
        """An 11 x 11 image has one window: weighted moments in two loops."""
        a, b = (t.double() for t in random_images(11, 11, 1))
        gauss = [math.exp(-((k - 5) ** 2) / (2 * 1.5**2)) for k in range(11)]
        weights = [[gauss[y] * gauss[x] / sum(gauss) ** 2 for x in range(11)] for y in range(11)]

        def mean(image: Tensor) -> float:
            return sum(weights[y][x] * image[y, x].item() for y in range(11) for x in range(11))

        mu_a, mu_b = mean(a), mean(b)
        var_a, var_b = mean((a - mu_a) ** 2), mean((b - mu_b) ** 2)
        covariance = mean((a - mu_a) * (b - mu_b))
        expected = (
            (2 * mu_a * mu_b + 1e-4) / (mu_a**2 + mu_b**2 + 1e-4)
            * (2 * covariance + 9e-4) / (var_a + var_b + 9e-4)
        )  # fmt: skip
        assert ssim(a, b).item() == pytest.approx(expected, abs=1e-12)

    @pytest.mark.parametrize("padding", PADDINGS)
    def test_equal_images_are_a_maximum(self, padding: Padding):
        a, _ = random_images(50, 60, 3)
        a.requires_grad_()
        value = ssim(a, a.detach(), padding)
        assert value.item() == pytest.approx(1, abs=1e-6)
        (gradient,) = torch.autograd.grad(value, a)
        assert gradient.abs().max() < 1e-7

    def test_black_outside_is_a_black_frame(self):
        """Padding is what a black frame of five pixels would give to windows inside it."""
        images = random_images(30, 34, 3)
        framed = [torch.nn.functional.pad(t, (0, 0, 5, 5, 5, 5)) for t in images]
        torch.testing.assert_close(ssim(*images, "same"), ssim(*framed, "valid"))

    def test_strided_images_are_taken(self):
        a, b = random_images(40, 60, 3)
        got = ssim(a[::2, ::3], b.flip(0)[::2, ::3])
        torch.testing.assert_close(got, ssim_reference(a[::2, ::3], b.flip(0)[::2, ::3]))

    def test_nan_is_not_hidden(self):
        a, b = random_images(20, 20, 1)
        a[3, 4] = math.nan
        assert ssim(a, b).isnan()

    def test_second_derivative_is_refused(self):
        a, b = random_images(12, 12, 1)
        value = ssim(a.requires_grad_(), b)
        with pytest.raises(RuntimeError, match="differentiable once; call its _reference twin"):
            torch.autograd.grad(value, a, create_graph=True)


@pytest.mark.parametrize("op", [ssim, ssim_reference])
def test_empty_images_are_refused(op):
    with pytest.raises(ValueError, match=r"a must have at least one pixel.*\(0, 4, 3\)"):
        op(torch.ones(0, 4, 3), torch.ones(0, 4, 3))


@pytest.mark.skipif(native.module is None, reason="the native kernels are not built")
def test_binding_checks_sizes():
    image, window = torch.ones(12, 12, 1), torch.ones(11, dtype=torch.float64)
    maps = [None, None, None]
    with pytest.raises(ValueError, match="b must have size 12 on axis 1, got 11"):
        native.module.ssim_forward(image, image[:, 1:].clone(), window, True, *maps, None, 1)
    small = torch.ones(9, 12, 1)
    with pytest.raises(ValueError, match="window must fit into the images"):
        native.module.ssim_forward(small, small, window, False, *maps, None, 1)
    with pytest.raises(ValueError, match="by_product must have size 2 on axis 0, got 12"):
        native.module.ssim_forward(image, image, window, False, *maps, image.clone(), 1)
    with pytest.raises(ValueError, match="each wanted gradient must have its maps"):
        native.module.ssim_backward(
            image, image, window, True, *maps, None, 1.0, image.clone(), None, 1
        )

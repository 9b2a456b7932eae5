# SPDX-License-Identifier: Apache-2.0
"""Colours by view direction against their reference and closed forms."""

import math

import jaxtyping
import pytest
import torch
from torch import Tensor

from diorama import native
from diorama.ops.sh_colors import sh_colors, sh_colors_reference
from tests.ops.parity import assert_parity

ACTIVATIONS = ["shifted", "sigmoid"]


def random_inputs(count: int, num_coefficients: int) -> tuple[Tensor, ...]:
    """The constant coefficient, the others, means, camera centre, and who is visible."""
    generator = torch.Generator().manual_seed(count + num_coefficients)
    sh = 0.5 * torch.randn(count, num_coefficients, 3, generator=generator)
    means = torch.randn(count, 3, generator=generator)
    visible = torch.rand(count, generator=generator) < 0.7
    return sh[:, :1], sh[:, 1:], means, torch.tensor([0.3, -4.0, 0.5]), visible


@pytest.mark.usefixtures("build")
class TestKernel:
    @pytest.mark.parametrize("activation", ACTIVATIONS)
    @pytest.mark.parametrize("degrees", [(0, 0), (0, 3), (1, 1), (1, 3), (2, 2), (2, 3), (3, 3)])
    @pytest.mark.parametrize("count", [0, 1, 7, 33, 3000])
    def test_matches_reference(self, count: int, degrees: tuple[int, int], activation: str):
        active, stored = degrees
        dc, rest, means, center, visible = random_inputs(count, (stored + 1) ** 2)
        if active == 0:  # Constant in the direction: the coefficients alone have a gradient.
            assert_parity(
                lambda d, r: sh_colors(d, r, means.to(d), center.to(d), 0, activation, visible),
                lambda d, r: sh_colors_reference(
                    d, r, means.to(d), center.to(d), 0, activation, visible
                ),
                *(dc, rest),
            )
            return
        assert_parity(
            lambda *inputs: sh_colors(*inputs, active, activation, visible),
            lambda *inputs: sh_colors_reference(*inputs, active, activation, visible),
            *(dc, rest, means, center),
        )

    @pytest.mark.parametrize("activation", ACTIVATIONS)
    def test_faithful_gradients_reach_coefficients_only(self, activation: str):
        dc, rest, means, center, visible = random_inputs(40, 9)
        assert_parity(
            lambda d, r: sh_colors(
                d, r, means.to(d), center.to(d), 2, activation, visible, "faithful"
            ),
            lambda d, r: sh_colors_reference(
                d, r, means.double(), center.double(), 2, activation, visible, "faithful"
            ),
            *(dc, rest),
        )
        inputs = [t.clone().requires_grad_() for t in (dc, rest, means, center)]
        colors = sh_colors(*inputs, 2, activation, visible, "faithful")
        gradients = torch.autograd.grad(colors.sum(), inputs, allow_unused=True)
        assert gradients[0] is not None and gradients[1] is not None
        assert gradients[2] is None and gradients[3] is None

    @pytest.mark.parametrize("activation", ACTIVATIONS)
    @pytest.mark.parametrize("degree", [0, 1, 2, 3])
    def test_gradcheck(self, degree: int, activation: str):
        *floats, visible = random_inputs(5, 16)
        inputs = [t.double().requires_grad_(k < 2 or degree > 0) for k, t in enumerate(floats)]
        assert torch.autograd.gradcheck(
            lambda *args: sh_colors(*args, degree, activation, visible), inputs
        )

    def test_what_is_not_visible_or_not_active_has_no_gradient(self):
        dc, rest, means, center, visible = random_inputs(50, 16)
        # Memory that was used before: a row that the kernel forgets would show.
        trash = [torch.full((50, count, 3), math.nan) for count in (1, 15) for _ in range(4)]
        del trash
        inputs = [t.clone().requires_grad_() for t in (dc, rest, means)]
        colors = sh_colors(*inputs, center, 1, "sigmoid", visible)
        grad_dc, grad_rest, grad_means = torch.autograd.grad(colors.sum(), inputs)
        assert (colors[~visible] == 0).all() and (colors[visible] > 0).all()
        for gradient in (grad_dc, grad_rest, grad_means):
            assert (gradient[~visible] == 0).all()
        assert (grad_rest[:, 3:] == 0).all()
        assert (grad_dc[visible] != 0).all() and (grad_rest[visible][:, :3] != 0).all()

    def test_a_gradient_that_is_not_wanted_changes_no_other(self):
        inputs, visible = random_inputs(50, 16)[:4], random_inputs(50, 16)[4]
        wanted = [t.clone().requires_grad_() for t in inputs]
        whole = torch.autograd.grad(sh_colors(*wanted, 3, "shifted", visible).sum(), wanted)
        del wanted[1]
        colors = sh_colors(wanted[0], inputs[1], *wanted[1:], 3, "shifted", visible)
        part = torch.autograd.grad(colors.sum(), wanted)
        assert all(map(torch.equal, part, (whole[0], *whole[2:])))

    def test_clamped_colors_have_no_gradient(self):
        dc, rest = torch.full((1, 1, 3), -2.0), torch.zeros(1, 0, 3)
        dc[0, 0, 1] = 0.0
        dc.requires_grad_()
        visible = torch.tensor([True])
        colors = sh_colors(dc, rest, torch.ones(1, 3), torch.zeros(3), 0, "shifted", visible)
        assert colors.tolist() == [[0.0, 0.5, 0.0]]
        colors.sum().backward()
        torch.testing.assert_close(dc.grad, torch.tensor([[[0.0, 0.28209479, 0.0]]]))

    def test_second_derivative_is_refused(self):
        dc, *others, visible = random_inputs(3, 4)
        loss = sh_colors(dc.requires_grad_(), *others, 1, "sigmoid", visible).sum()
        with pytest.raises(RuntimeError, match="differentiable once; call its _reference twin"):
            torch.autograd.grad(loss, dc, create_graph=True)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_first_degree_is_a_gradient_of_colour(activation: str):
    """0.2821 c_0 + 0.4886 (-y c_1 + z c_2 - x c_3), from a camera that is not at the origin."""
    direction = torch.tensor([2.0, -3.0, 6.0]) / 7
    center = torch.tensor([1.0, 2.0, 3.0])
    sh = torch.zeros(1, 4, 3)
    sh[0, 0] = torch.tensor([1.0, 0.5, -3.0])
    sh[0, 1:, 0] = torch.tensor([0.1, 0.2, 0.3])
    x, y, z = direction.tolist()
    red = 0.28209479 + 0.48860251 * (-0.1 * y + 0.2 * z - 0.3 * x)
    raw = torch.tensor([[red, 0.28209479 * 0.5, -0.28209479 * 3]])
    expected = raw.sigmoid() if activation == "sigmoid" else (raw + 0.5).clamp(min=0)
    means = (center + 5 * direction)[None]
    visible = torch.tensor([True])
    colors = sh_colors(sh[:, :1], sh[:, 1:], means, center, 1, activation, visible)
    torch.testing.assert_close(colors, expected)


def test_distance_does_not_matter():
    dc, rest, means, center, _ = random_inputs(20, 16)
    visible = torch.ones(20, dtype=torch.bool)
    near = sh_colors(dc, rest, center + 0.01 * means, center, 3, "sigmoid", visible)
    far = sh_colors(dc, rest, center + 100 * means, center, 3, "sigmoid", visible)
    torch.testing.assert_close(near, far, rtol=0, atol=1e-3)


def test_mistakes_are_named(monkeypatch):
    dc, rest, means, center, visible = random_inputs(3, 9)
    for degree in (-1, 3):
        message = f"degree must be 0 to that of 9 coefficients, got {degree}"
        with pytest.raises(ValueError, match=message):
            sh_colors(dc, rest, means, center, degree, "shifted", visible)
    with pytest.raises(ValueError, match=r"sh_rest must have the shape .* got \(3, 5, 3\)"):
        sh_colors(dc, rest[:, :5], means, center, 1, "shifted", visible)
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match=r"means must have the shape \(3, 3\), got \(2, 3\)"):
        sh_colors(dc, rest, means[:2], center, 1, "shifted", visible)
    with pytest.raises(ValueError, match="activation must be shifted or sigmoid, got relu"):
        sh_colors(dc, rest, means, center, 1, "relu", visible)


@pytest.mark.skipif(native.module is None, reason="the native kernels are not built")
def test_binding_checks_sizes():
    inputs = [t.contiguous() for t in random_inputs(3, 4)]
    with pytest.raises(ValueError, match="colors must have size 3 on axis 0, got 2"):
        native.module.sh_colors_forward(*inputs, 2, False, torch.empty(2, 3), 1)
    with pytest.raises(ValueError, match=r"sh_rest must have at least num_bands\^2 - 1"):
        native.module.sh_colors_forward(*inputs, 3, False, torch.empty(3, 3), 1)

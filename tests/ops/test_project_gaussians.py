# SPDX-License-Identifier: Apache-2.0
"""Projection of Gaussians against its reference, closed forms and projected samples."""

import dataclasses
import math
from collections.abc import Callable

import jaxtyping
import pytest
import torch
from torch import Tensor

from diorama import native
from diorama.ops.project_gaussians import (
    ProjectedGaussians,
    View,
    project_gaussians,
    project_gaussians_reference,
)
from tests.ops.parity import assert_parity, tensors_of
from tests.ops.splat_scenes import (
    HEIGHT,
    WIDTH,
    Inputs,
    awkward_scene,
    camera_tensors,
    random_scene,
    world_from,
)

VIEWS = {
    "pinhole": View(WIDTH, HEIGHT),
    "antialiased": View(WIDTH, HEIGHT, antialiased=True),
    "fisheye": View(WIDTH, HEIGHT, model="fisheye", antialiased=True),
    "faithful": View(WIDTH, HEIGHT, antialiased=True, gradients="faithful"),
    "fisheye, faithful": View(WIDTH, HEIGHT, model="fisheye", gradients="faithful"),
}
Op = Callable[..., ProjectedGaussians]


def differentiable(op: Op, view: View) -> Callable[..., tuple[Tensor, ...]]:
    """The op without its output that has no gradient."""

    def outputs(*inputs: Tensor) -> tuple[Tensor, ...]:
        result = op(*inputs, view)
        return result.centers, result.conics, result.depths, result.opacities

    return outputs


def assert_same(inputs: Inputs, view: View, rtol: float = 2e-5, atol: float = 2e-6) -> None:
    kernel, reference = (
        differentiable(op, view) for op in (project_gaussians, project_gaussians_reference)
    )
    assert_parity(kernel, reference, *inputs, rtol=rtol, atol=atol)
    expected = project_gaussians_reference(*(t.double() for t in inputs), view).half_extents
    got = project_gaussians(*inputs, view).half_extents
    assert torch.equal(got == 0, expected == 0)
    torch.testing.assert_close(got.double(), expected, rtol=1e-4, atol=1e-5)


def double(inputs: Inputs) -> list[Tensor]:
    return [t.double().requires_grad_() for t in inputs]


@pytest.mark.usefixtures("build")
class TestKernel:
    @pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
    @pytest.mark.parametrize("count", [0, 1, 7, 33, 4000])
    def test_matches_reference(self, count: int, view: View):
        assert_same(random_scene(count), view)

    @pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
    def test_awkward_gaussians_match_reference(self, view: View):
        assert_same(awkward_scene(view.model == "fisheye"), view)

    @pytest.mark.parametrize("name", ["pinhole", "antialiased", "fisheye"])
    @pytest.mark.parametrize("scene", [random_scene(12), awkward_scene(is_fisheye=True)])
    def test_gradcheck(self, name: str, scene: Inputs):
        view = VIEWS[name]
        result = project_gaussians(*scene, view)
        kept = (result.half_extents[:, 0] > 0) & (scene[2].max(-1).values < 1)
        inputs = double((*(t[kept] for t in scene[:4]), *scene[4:]))
        assert kept.sum() > 3
        assert torch.autograd.gradcheck(differentiable(project_gaussians, view), inputs)

    def test_only_wanted_gradients_are_computed(self):
        means, *others = random_scene(5)
        project_gaussians(means.requires_grad_(), *others, VIEWS["pinhole"]).depths.sum().backward()
        assert means.grad is not None
        assert all(t.grad is None for t in others)

    def test_second_derivative_is_refused(self):
        inputs = [t.requires_grad_() for t in random_scene(3)]
        loss = project_gaussians(*inputs, VIEWS["pinhole"]).conics.sum()
        with pytest.raises(RuntimeError, match="differentiable once; call its _reference twin"):
            torch.autograd.grad(loss, inputs[:1], create_graph=True)

    def test_strided_inputs_are_taken(self):
        inputs = random_scene(20)
        strided = [t.repeat_interleave(2, dim=0)[::2] for t in inputs[:4]]
        got = project_gaussians(*strided, *inputs[4:], VIEWS["pinhole"])
        expected = project_gaussians(*inputs, VIEWS["pinhole"])
        assert torch.equal(got.conics, expected.conics)

    def test_unseen_gaussians_are_zeros_without_gradient(self):
        inputs = [t.requires_grad_() for t in awkward_scene(is_fisheye=False)]
        result = project_gaussians(*inputs, VIEWS["pinhole"])
        is_seen = result.half_extents[:, 0] > 0
        seen_kinds = [0, 2, 3, 4, 6, 10, 11]
        assert is_seen.nonzero()[:, 0].tolist() == seen_kinds
        outputs = tensors_of(result)
        assert all((t[~is_seen] == 0).all() for t in outputs)
        loss = sum((t.sum() for t in outputs[:4]), torch.zeros(()))
        gradients = torch.autograd.grad(loss, inputs)
        assert all(t.isfinite().all() for t in gradients)
        assert all((t[~is_seen] == 0).all() for t in gradients[:4])


def one_gaussian(point: list[float], sigma: float, logit: float = 2.0) -> Inputs:
    """A ball at a place of the camera's frame, in float64."""
    inputs = (
        world_from(torch.tensor([point])),
        torch.tensor([[0.2, -0.4, 0.3, 0.9]]),
        torch.full((1, 3), math.log(sigma)),
        torch.tensor([logit]),
        *camera_tensors(),
    )
    return tuple(t.double() for t in inputs)


def covariance(result: ProjectedGaussians) -> Tensor:
    a, b, c = result.conics[0]
    return torch.stack([torch.stack([a, b]), torch.stack([b, c])]).inverse()


@pytest.mark.parametrize("model", ["pinhole", "fisheye"])
@pytest.mark.parametrize("antialiased", [False, True])
def test_a_ball_on_the_axis_has_its_closed_form(model: str, antialiased: bool):
    """Sigma2D = (f s / z)^2 + 0.3 along each axis; opacity times the root of the areas' ratio."""
    view = View(WIDTH, HEIGHT, model=model, antialiased=antialiased)
    result = project_gaussians(*one_gaussian([0.0, 0.0, 2.5], 0.08), view)
    sharp = torch.tensor([50.0, 55.0], dtype=torch.float64).mul(0.08 / 2.5).square()
    torch.testing.assert_close(covariance(result), (sharp + 0.3).diag(), rtol=1e-5, atol=1e-6)
    opacity = 1 / (1 + math.exp(-2.0))
    if antialiased:
        opacity *= (sharp / (sharp + 0.3)).prod().sqrt().item()
    assert result.opacities.item() == pytest.approx(opacity, rel=1e-5)
    assert result.depths.item() == pytest.approx(2.5, rel=1e-6)
    torch.testing.assert_close(
        result.centers, torch.tensor([[27.0, 22.0]]).double(), rtol=1e-5, atol=1e-5
    )
    reach = math.sqrt(2 * math.log(255 * opacity))
    torch.testing.assert_close(
        result.half_extents[0], reach * (sharp + 0.3).sqrt(), rtol=1e-5, atol=0
    )


def project_by_hand(points: Tensor, intrinsics: Tensor, model: str) -> Tensor:
    x, y, z = points.unbind(-1)
    if model == "pinhole":
        plane = torch.stack([x / z, y / z], dim=-1)
    else:
        around = torch.atan2(y, x)
        angle = torch.acos(z / points.norm(dim=-1))
        plane = torch.stack([angle * around.cos(), angle * around.sin()], dim=-1)
    return plane * intrinsics[:2] + intrinsics[2:]


@pytest.mark.parametrize(
    ("model", "point"),
    [
        ("pinhole", [0.4, -0.3, 2.0]),
        ("fisheye", [0.4, -0.3, 2.0]),
        ("fisheye", [1.0, 0.8, 0.02]),
        ("fisheye", [0.7, 0.8, -0.3]),
    ],
)
def test_projected_samples_have_the_projected_covariance(model: str, point: list[float]):
    """A small Gaussian of three different axes against 200 000 points drawn from it."""
    means, quaternions, log_scales, logits, camera, intrinsics = one_gaussian(point, 0.01)
    log_scales = log_scales + torch.tensor([[0.5, 0.0, -1.0]])
    view = View(400, 400, model=model, blur=0.0)
    result = project_gaussians(means, quaternions, log_scales, logits, camera, intrinsics * 3, view)
    w, x, y, z = (quaternions[0] / quaternions[0].norm()).tolist()
    generator = torch.Generator().manual_seed(0)
    local = torch.randn(200_000, 3, generator=generator).double() * log_scales.exp()
    axis = torch.tensor([x, y, z], dtype=torch.float64).expand_as(local)
    twice = 2 * torch.linalg.cross(axis, local)
    samples = means + local + w * twice + torch.linalg.cross(axis, twice)
    seen = project_by_hand(samples @ camera[:, :3].T + camera[:, 3], intrinsics * 3, model)
    expected = torch.cov(seen.T)
    torch.testing.assert_close(covariance(result), expected, rtol=0.02, atol=0.01 * expected.max())
    torch.testing.assert_close(result.centers[0], seen.mean(0), rtol=0, atol=0.1)


def test_alpha_falls_to_one_255th_at_the_edge_of_the_box():
    result = project_gaussians(*one_gaussian([0.2, 0.1, 2.0], 0.1), View(WIDTH, HEIGHT))
    a, b, c = result.conics[0].tolist()
    half_width = result.half_extents[0, 0].item()
    # Along the vertical edge of the box the ellipse touches it where d(power)/d(dy) = 0.
    dy = -b * half_width / c
    power = 0.5 * (a * half_width**2 + c * dy**2) + b * half_width * dy
    assert result.opacities.item() * math.exp(-power) == pytest.approx(1 / 255, rel=1e-6)


def test_turning_camera_and_world_together_changes_nothing():
    means, quaternions, log_scales, logits, camera, intrinsics = (
        t.double() for t in random_scene(50)
    )
    view = View(WIDTH, HEIGHT, antialiased=True)
    expected = project_gaussians(means, quaternions, log_scales, logits, camera, intrinsics, view)
    # A turn by 90 degrees about z: x y z -> -y x z, and the same as a quaternion product.
    turn = torch.tensor([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]).double()
    w, x, y, z = quaternions.unbind(-1)
    turned = torch.stack([w - z, x - y, y + x, z + w], dim=-1)
    turned_camera = torch.cat([camera[:, :3] @ turn.T, camera[:, 3:]], dim=1)
    got = project_gaussians(
        means @ turn.T, turned, log_scales, logits, turned_camera, intrinsics, view
    )
    for one, two in zip(tensors_of(got), tensors_of(expected), strict=True):
        torch.testing.assert_close(one, two)


def test_faithful_gradients_leave_out_what_the_taichi_system_does():
    """By hand: the position moves the centre alone, the logit sees a constant compensation."""
    inputs = one_gaussian([0.4, -0.3, 2.0], 0.05)
    view = View(WIDTH, HEIGHT, antialiased=True, gradients="faithful")
    wanted = [t.requires_grad_() for t in inputs[:4]]
    result = project_gaussians(*inputs, view)
    zeros = torch.autograd.grad(
        result.conics.sum() + result.opacities.sum(), wanted, retain_graph=True
    )
    assert (zeros[0] == 0).all()
    opacity = 1 / (1 + math.exp(-2.0))
    slope = result.opacities.item() * (1 - opacity)
    assert zeros[3].item() == pytest.approx(slope, rel=1e-9)
    (grad,) = torch.autograd.grad(result.centers[:, 0].sum(), wanted[:1])
    in_camera = torch.tensor([50 / 2.0, 0.0, -50 * 0.4 / 2.0**2], dtype=torch.float64)
    torch.testing.assert_close(grad[0], in_camera @ inputs[4][:, :3], rtol=1e-5, atol=1e-5)


def test_reference_is_twice_differentiable():
    scene = random_scene(6)
    inputs = double(scene)

    def outputs(*args: Tensor) -> tuple[Tensor, ...]:
        return differentiable(project_gaussians_reference, VIEWS["fisheye"])(*args)

    assert torch.autograd.gradgradcheck(outputs, inputs, fast_mode=True)


def test_half_precision_is_served_by_the_reference():
    inputs = [t.bfloat16() for t in random_scene(4)]
    assert project_gaussians(*inputs, VIEWS["pinhole"]).conics.dtype == torch.bfloat16


def test_mistakes_are_named(monkeypatch):
    for wrong, message in (
        ({"width": 0}, "view must have a pixel, got 0 x 40"),
        ({"near": -1.0}, r"view.near must be in \(0, far\), got -1.0 and far 10000000000.0"),
        ({"far": 0.001}, "view.near must be in"),
        ({"blur": -0.1}, "view.blur must not be negative, got -0.1"),
    ):
        with pytest.raises(ValueError, match=message):
            dataclasses.replace(VIEWS["pinhole"], **wrong)
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match=r"view\.model must be pinhole or fisheye, got cube"):
        View(WIDTH, HEIGHT, model="cube")
    inputs = random_scene(3)
    names = (
        "means",
        "quaternions",
        "log_scales",
        "opacity_logits",
        "camera_from_world",
        "intrinsics",
    )
    for k, name in enumerate(names):
        wrong = [*inputs]
        wrong[k] = torch.ones(3, 5)
        with pytest.raises(ValueError, match=f"{name} must have the shape .*, got \\(3, 5\\)"):
            project_gaussians(*wrong, VIEWS["pinhole"])


@pytest.mark.skipif(native.module is None, reason="the native kernels are not built")
def test_binding_checks_sizes():
    inputs = random_scene(3)
    numbers = 8.0, 8.0, 0.1, 10.0, 0.3, False, False
    outputs = [torch.empty(3, *shape) for shape in ((2,), (3,), (), (), (1,))]
    with pytest.raises(ValueError, match="half_extents must have size 2 on axis 1, got 1"):
        native.module.project_gaussians_forward(*inputs, *numbers, *outputs, 1)
    gradients = [torch.empty_like(t) for t in inputs]
    gradients[1] = torch.empty(2, 4)
    with pytest.raises(ValueError, match="grad_quaternions must have size 3 on axis 0, got 2"):
        native.module.project_gaussians_backward(
            *inputs, *numbers, True, torch.ones(3, 2), None, None, None, None, *gradients, 1
        )

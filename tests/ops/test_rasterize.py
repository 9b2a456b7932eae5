# SPDX-License-Identifier: Apache-2.0
"""Rasterising against its reference, against a loop over pixels, and against closed forms."""

import dataclasses
import math
from typing import Any, Literal

import jaxtyping
import pytest
import torch
from torch import Tensor

from diorama.ops.rasterize import rasterize, rasterize_reference
from diorama.ops.rasterized import SplatSums
from tests.ops.image_plane_splats import Splats, concatenate, random_splats, splats_of
from tests.ops.parity import assert_parity

OPS = [rasterize, rasterize_reference]


def colored(scene: Splats, num_channels: int) -> tuple[Tensor, ...]:
    """The differentiable inputs: Gaussians, features and background."""
    generator = torch.Generator().manual_seed(7)
    features = torch.randn(len(scene.centers), num_channels, generator=generator)
    return *scene.drawn, features, torch.rand(num_channels, generator=generator)


def image_and_alpha(op, scene: Splats, **settings):
    """The op as a function of its differentiable inputs alone, with the lists of the scene."""
    lists = scene.lists()

    def run(*inputs: Tensor) -> tuple[Tensor, Tensor]:
        result = op(*inputs, lists, scene.width, scene.height, **settings)
        return result.image, result.alpha

    return run


def parity(scene: Splats, num_channels: int = 3, tolerance: float = 1.0, **settings) -> None:
    assert_parity(
        *(image_and_alpha(op, scene, **settings) for op in OPS),
        *colored(scene, num_channels),
        rtol=2e-5 * tolerance,
        atol=2e-6 * tolerance,
    )


def stack_of(opacities: list[float], width: int = 20, height: int = 18) -> Splats:
    """Gaussians so wide that they are flat, one behind the other."""
    count = len(opacities)
    return splats_of(
        *(torch.full((count, 2), 9.0), torch.full((count, 2), 1e5), torch.zeros(count)),
        *(torch.tensor(opacities), 1 + torch.arange(count, dtype=torch.float32)),
        *(width, height),
    )


@pytest.mark.usefixtures("build")
class TestKernel:
    @pytest.mark.parametrize("num_channels", [0, 1, 2, 3, 4, 7, 19])
    @pytest.mark.parametrize("size", [(1, 1), (17, 5), (123, 82)])
    def test_matches_reference(self, size: tuple[int, int], num_channels: int):
        parity(random_splats(200, *size), num_channels)

    @pytest.mark.parametrize("count", [0, 1, 2500])
    def test_few_and_many(self, count: int):
        """Many: lists of several batches."""
        parity(random_splats(count, 40, 33, size=3.0, opaque=0.1))

    @pytest.mark.parametrize("num_channels", [1, 3, 7, 9])
    def test_opaque_stacks_fill_pixels(self, num_channels: int):
        scene = random_splats(600, 40, 40, size=8.0, opaque=1.0)
        assert rasterize(*colored(scene, 1), scene.lists(), 40, 40).alpha.max() > 0.999
        parity(scene, num_channels)

    @pytest.mark.parametrize("gradients", ["exact", "faithful"])
    @pytest.mark.parametrize("max_alpha", [0.5, 0.999])
    def test_cut_alpha(self, max_alpha: float, gradients: Literal["exact", "faithful"]):
        scene = random_splats(150, 60, 50, opaque=1.0)
        parity(scene, max_alpha=max_alpha, gradients=gradients)

    def test_huge_thin_and_transparent_ones(self):
        huge = random_splats(30, 100, 70, size=200.0, stretch=1.0)
        thin = random_splats(60, 100, 70, size=0.5, stretch=80.0, seed=1)
        faint = random_splats(200, 100, 70, seed=2, opaque=0.02)
        parity(concatenate(huge, thin, faint), tolerance=3.0)

    def test_far_ends_of_long_ones_are_exact(self):
        """They reach over an image of 1500 pixels; their direction counts to the last digit."""
        scene = random_splats(12, 1500, 40, size=0.3, stretch=900.0, seed=5)
        parity(scene, tolerance=10.0)

    def test_degenerate_ones_are_not_drawn(self):
        scene = random_splats(20, 50, 40)
        lists = scene.lists()
        conics = scene.conics.clone()
        conics[3] = torch.tensor([1.0, 2.0, 1.0])
        conics[4] = 0
        broken = dataclasses.replace(scene, conics=conics)
        inputs = colored(broken, 3)
        assert_parity(
            *(
                lambda *x, op=op: op(*x, lists, 50, 40).image  # the lists still name them
                for op in OPS
            ),
            *inputs,
        )

    @pytest.mark.parametrize("num_channels", [2, 3])
    def test_gradcheck(self, num_channels: int):
        scene = random_splats(9, 19, 6, opaque=0.8)
        run = image_and_alpha(rasterize, scene)
        inputs = [t.double().requires_grad_() for t in colored(scene, num_channels)]
        assert torch.autograd.gradcheck(run, inputs)

    def test_only_wanted_gradients_are_computed(self):
        inputs = colored(random_splats(30, 40, 40), 3)
        inputs[3].requires_grad_()
        lists = random_splats(30, 40, 40).lists()
        rasterize(*inputs, lists, 40, 40).alpha.sum().backward()
        assert torch.equal(inputs[3].grad, torch.zeros(30, 3))
        assert all(inputs[k].grad is None for k in (0, 1, 2, 4))

    def test_second_derivative_is_refused(self):
        scene = random_splats(5, 20, 20)
        inputs = [t.requires_grad_() for t in colored(scene, 3)]
        image = rasterize(*inputs, scene.lists(), 20, 20).image
        with pytest.raises(RuntimeError, match="differentiable once; call its _reference twin"):
            torch.autograd.grad(image.sum(), inputs[:1], create_graph=True)

    @pytest.mark.parametrize("num_channels", [3, 5])
    def test_counts_medians_and_sums_match_reference(self, num_channels: int):
        scene = random_splats(700, 70, 45, size=5.0, opaque=1.0)
        results = []
        for op, dtype, threads in (
            (rasterize_reference, torch.float64, 1),
            (rasterize, torch.float32, 1),
            (rasterize, torch.float32, 2),
        ):
            torch.set_num_threads(threads)
            inputs = [t.to(dtype).requires_grad_() for t in colored(scene, num_channels)]
            sums = SplatSums.zeros(inputs[0].detach(), (45, 70))
            result = op(*inputs, scene.lists(), 70, 45, sums=sums)
            (result.image**2).mean().backward()
            results.append((result.count, result.median_splat, sums))
            # What was drawn to pixels on the way there is what was found on the way back.
            assert result.count.sum() == sums.pixels.sum()
        (count, median, expected), one, two = results
        assert torch.equal(count, one[0])
        assert torch.equal(median, one[1])
        for field in dataclasses.fields(SplatSums):
            exact, got = getattr(expected, field.name), getattr(one[2], field.name)
            scale = 2e-6 * exact.abs().max().item()
            torch.testing.assert_close(got.to(exact.dtype), exact, rtol=2e-5, atol=scale)
            assert torch.equal(got, getattr(two[2], field.name))

    def test_sums_without_pixel_gradients_are_the_same(self):
        scene = random_splats(200, 70, 45, size=5.0)
        inputs = [t.requires_grad_() for t in colored(scene, 3)]
        sums = [SplatSums.zeros(inputs[0].detach(), size) for size in (None, (45, 70))]
        gradients = [
            torch.autograd.grad(
                rasterize(*inputs, scene.lists(), 70, 45, sums=s).image.sum(), inputs
            )
            for s in (None, *sums)
        ]
        assert torch.equal(sums[0].gradient_norms, sums[1].gradient_norms)
        assert torch.equal(sums[0].pixels, sums[1].pixels)
        for plain, *others in zip(*gradients, strict=True):
            assert all(torch.equal(plain, other) for other in others)

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("splats", r"splats must lie in 0 \.\. 30 - 1"),
            ("slots", r"slots must lie in 0 \.\. \d+ - 1"),
            ("starts", "starts must not decrease"),
            ("splat_starts", "splat_starts must not decrease"),
        ],
    )
    @pytest.mark.parametrize("wrong", [-1, 2**30])
    def test_foreign_lists_are_refused(self, name: str, message: str, wrong: int):
        scene = random_splats(30, 40, 40)
        changed = getattr(scene.lists(), name).clone()
        changed[1] = wrong
        lists = dataclasses.replace(scene.lists(), **{name: changed})
        with pytest.raises(ValueError, match=message):
            rasterize(*colored(scene, 3), lists, 40, 40)

    def test_order_of_the_arrays_does_not_matter(self):
        scene = random_splats(300, 60, 60)
        inputs = colored(scene, 3)
        shuffle = torch.randperm(300, generator=torch.Generator().manual_seed(2))
        image = rasterize(*inputs, scene.lists(), 60, 60).image
        shuffled = *(t[shuffle] for t in inputs[:4]), inputs[4]
        assert torch.equal(rasterize(*shuffled, scene[shuffle].lists(), 60, 60).image, image)


@pytest.mark.parametrize("op", OPS)
class TestDefinition:
    def test_loop_over_pixels_and_gaussians(self, op):
        scene = random_splats(12, 21, 18, size=6.0, opaque=1.0).to(torch.float64)
        features, background = torch.rand(12, 2).double(), torch.tensor([0.3, -2.0]).double()
        order = sorted(range(12), key=lambda i: scene.depths[i].item())
        result = op(*scene.drawn, features, background, scene.lists(), 21, 18, max_alpha=0.9)
        for row in range(18):
            for column in range(21):
                left, color, count, median = 1.0, torch.zeros(2).double(), 0, -1
                for i in order:
                    dx, dy = column + 0.5 - scene.centers[i, 0], row + 0.5 - scene.centers[i, 1]
                    a, b, c = scene.conics[i]
                    power = 0.5 * (a * dx * dx + c * dy * dy) + b * dx * dy
                    alpha = min(0.9, float(scene.opacities[i] * math.exp(-power)))
                    if alpha < 1 / 255:
                        continue
                    if left * (1 - alpha) < 1e-4:
                        break
                    color += features[i] * alpha * left
                    left *= 1 - alpha
                    count += 1
                    median = i if left <= 0.5 and median < 0 else median
                torch.testing.assert_close(result.image[row, column], color + left * background)
                assert result.alpha[row, column].item() == pytest.approx(1 - left)
                assert result.count[row, column] == count
                assert result.median_splat[row, column] == median

    def test_nothing_shows_the_background(self, op):
        scene = random_splats(0, 33, 20)
        background = torch.tensor([0.1, 0.2, 0.3])
        result = op(*scene.drawn, torch.zeros(0, 3), background, scene.lists(), 33, 20)
        assert torch.equal(result.image, background.expand(20, 33, 3))
        assert (result.alpha == 0).all() and (result.count == 0).all()
        assert (result.median_splat == -1).all()

    def test_layers_have_their_closed_form(self, op):
        """Flat layers: a weighted sum. The third is where less than half is left."""
        scene = stack_of([0.25, 0.25, 0.5, 0.8])
        features = torch.eye(4)
        result = op(*scene.drawn, features, torch.zeros(4), scene.lists(), 20, 18)
        expected = torch.tensor([0.25, 0.1875, 0.28125, 0.225])
        torch.testing.assert_close(result.image, expected.expand(18, 20, 4), rtol=1e-5, atol=0)
        assert (result.count == 4).all() and (result.median_splat == 2).all()

    def test_full_pixels_end_before_what_fills_them(self, op):
        """0.1, 0.01, 0.001, then 1e-4 in exact arithmetic would be kept; 5e-5 is not."""
        scene = stack_of([0.9, 0.9, 0.9, 0.95, 0.5])
        result = op(*scene.drawn, torch.ones(5, 1), torch.zeros(1), scene.lists(), 20, 18)
        assert (result.count == 3).all()
        torch.testing.assert_close(result.alpha, torch.full((18, 20), 0.999))

    def test_alpha_is_cut(self, op):
        scene = stack_of([1.0])
        args = scene.drawn, torch.ones(1, 1), torch.zeros(1), scene.lists(), 20, 18
        torch.testing.assert_close(op(*args[0], *args[1:]).alpha, torch.full((18, 20), 0.99))
        half = op(*args[0], *args[1:], max_alpha=0.5)
        torch.testing.assert_close(half.alpha, torch.full((18, 20), 0.5))
        assert (half.median_splat == 0).all()

    def test_mass_of_a_gaussian(self, op):
        """Its alpha sums to 2 pi opacity |covariance|^(1/2), less what is cut off below 1 / 255."""
        size = torch.tensor([[5.0, 3.0]])
        scene = splats_of(
            *(torch.tensor([[40.2, 30.7]]), size, torch.tensor([0.6])),
            *(torch.tensor([0.7]), torch.ones(1), 80, 60),
        )
        result = op(*scene.drawn, torch.ones(1, 1), torch.zeros(1), scene.lists(), 80, 60)
        mass = 2 * math.pi * 15 * (0.7 - 1 / 255)
        assert result.alpha.sum().item() == pytest.approx(mass, rel=1e-3)

    def test_gradient_of_a_cut_alpha(self, op):
        """One flat opaque layer: exact says its opacity does not matter, taichi says it does."""
        scene = stack_of([1.0], 16, 16)
        for gradients, expected in (("exact", 0.0), ("faithful", 256.0)):
            opacities = scene.opacities.clone().requires_grad_()
            inputs = scene.centers, scene.conics, opacities, torch.ones(1, 1), torch.zeros(1)
            op(*inputs, scene.lists(), 16, 16, gradients=gradients).image.sum().backward()
            assert opacities.grad.item() == pytest.approx(expected, rel=1e-4)

    def test_sums_of_one_gaussian(self, op):
        """In the centre of an even image its gradient is zero, the sizes of its parts are not."""
        scene = splats_of(
            *(torch.tensor([[16.0, 8.0]]), torch.full((1, 2), 2.0), torch.zeros(1)),
            *(torch.tensor([0.5]), torch.ones(1), 32, 16),
        )
        centers = scene.centers.clone().requires_grad_()
        sums = SplatSums.zeros(scene.centers, (16, 32))
        inputs = centers, *scene.drawn[1:], torch.ones(1, 1), torch.zeros(1)
        result = op(*inputs, scene.lists(), 32, 16, sums=sums)
        result.image.sum().backward()
        assert centers.grad.abs().max() < 1e-4
        assert sums.pixels.item() == result.count.sum()
        assert sums.abs_gradients[0, 0].item() == pytest.approx(sums.abs_gradients[0, 1].item())
        torch.testing.assert_close(sums.pixel_gradients.sum((0, 1)), sums.abs_gradients[0])
        expected = sums.pixel_gradients.norm(dim=-1).sum().item()
        assert sums.gradient_norms.item() == pytest.approx(expected, rel=1e-5)
        # d alpha / d x_center = alpha dx / size^2, so the sum of |.| is about 2 o size sqrt(2 pi).
        assert sums.abs_gradients[0, 0].item() == pytest.approx(
            2 * 0.5 * 2 * math.sqrt(2 * math.pi), rel=0.03
        )


def test_reference_is_the_same_when_it_computes_its_tables_twice(monkeypatch):
    scene = random_splats(40, 40, 40)
    inputs = [t.requires_grad_() for t in colored(scene, 3)]
    gradients = []
    for limit in (0, 2**40):
        monkeypatch.setattr("diorama.ops.rasterize.LARGE_TABLE", limit)
        sums = SplatSums.zeros(inputs[0].detach(), (40, 40))
        image = rasterize_reference(*inputs, scene.lists(), 40, 40, sums=sums).image
        gradients.append((*torch.autograd.grad(image.square().sum(), inputs), sums))
    for once, twice in zip(*gradients, strict=True):
        if isinstance(once, Tensor):
            assert torch.equal(once, twice)
    assert torch.equal(gradients[0][-1].gradient_norms, gradients[1][-1].gradient_norms)
    assert torch.equal(gradients[0][-1].pixels, gradients[1][-1].pixels)


def test_half_precision_is_served_by_the_reference():
    scene = random_splats(5, 20, 20)
    inputs = [t.half() for t in colored(scene, 3)]
    assert rasterize(*inputs, scene.lists(), 20, 20).image.dtype == torch.float16


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_alpha": 1.0}, "max_alpha must lie between 0 and 1, got 1.0"),
        ({"sums": SplatSums.zeros(torch.zeros(3, 2))}, "sums must be for 5 Gaussians, got 3"),
        ({"gradients": "taichi"}, "gradients must be exact or faithful, got taichi"),
        ({"conics": torch.ones(4, 3)}, r"conics must have the shape \(5, 3\), got \(4, 3\)"),
        ({"features": torch.ones(4, 3)}, r"features must have the shape \(5, 3\), got \(4, 3\)"),
        ({"background": torch.ones(2)}, r"background must have the shape \(3,\), got \(2,\)"),
        ({"width": 50}, "starts must have size 9 on axis 0, got 5"),
    ],
)
def test_wrong_arguments_are_value_errors(monkeypatch, changes: dict[str, Any], message: str):
    # The shape guard would see most of these first; users run without it.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    scene = random_splats(5, 20, 20)
    names = "centers", "conics", "opacities", "features", "background"
    arguments = dict(zip(names, colored(scene, 3), strict=True))
    arguments |= {"tiles": scene.lists(), "width": 20, "height": 20}
    with pytest.raises(ValueError, match=message):
        rasterize(**{**arguments, **changes})

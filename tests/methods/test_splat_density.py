# SPDX-License-Identifier: Apache-2.0
"""Density strategies: who multiplies, who dies, and that moments and budgets follow."""

import math

import pytest
import torch
from torch import nn

from diorama.engine.optimizers import Optimizers
from diorama.methods.splat.config import SplatOptimConfig
from diorama.methods.splat.density.adaptive import AdaptiveDensity, foci
from diorama.methods.splat.density.default import DefaultDensity
from diorama.methods.splat.density.mcmc import McmcDensity, shares
from diorama.methods.splat.density.strategy import Observation
from diorama.methods.splat.density_config import AdaptiveConfig, DefaultConfig, McmcConfig
from diorama.methods.splat.gaussians import NAMES, Gaussians
from diorama.methods.splat.schedule import budget_at, is_due
from diorama.ops.rasterized import SplatSums
from diorama.splats import Splats

WIDTH, HEIGHT = 64, 32


def made(count: int = 8, opacity: float = 0.5, scale: float = 0.1) -> Gaussians:
    """Gaussians on a line; row i of every tensor can be told from the others."""
    row = torch.arange(count, dtype=torch.float32)
    return Gaussians(
        Splats(
            means=torch.stack((row, row.sin(), row.cos()), dim=1),
            quaternions=torch.nn.functional.normalize(
                torch.stack((1 + row, row.sin(), row.cos(), 0 * row), dim=1), dim=1
            ),
            log_scales=torch.full((count, 3), math.log(scale)) + 0.01 * row[:, None],
            opacity_logits=torch.full((count,), math.log(opacity / (1 - opacity))),
            sh=row[:, None, None].expand(count, 4, 3).clone(),
            color="shifted",
            antialiased=False,
        )
    )


def optimized(gaussians: Gaussians) -> Optimizers:
    """Optimisers after one step, so that there are moments; row i's equal a function of i."""
    groups = {name: [p] for name, p in gaussians.named_tensors().items()}
    optimizers = Optimizers(SplatOptimConfig(lr=1e-9, lr_final=1e-9), groups)
    for parameter in gaussians.named_tensors().values():
        row = torch.arange(1.0, len(gaussians) + 1)
        parameter.grad = row.view(-1, *[1] * (parameter.ndim - 1)).expand_as(parameter).clone()
    optimizers.step(0, 10, 1.0)
    return optimizers


def seen(gaussians: Gaussians, norms=None, pixels=None, gradients=None) -> Observation:
    num = len(gaussians)
    sums = SplatSums.zeros(torch.zeros(num, 2))
    if norms is not None:
        sums.gradient_norms.copy_(torch.as_tensor(norms))
    if pixels is not None:
        sums.pixels.copy_(torch.as_tensor(pixels))
    gradients = torch.zeros(num, 2) if gradients is None else gradients
    return Observation(
        torch.ones(num, dtype=torch.bool), gradients, sums, torch.full((num,), 5.0),
        torch.full((num, 2), 10.0), WIDTH, HEIGHT,
    )  # fmt: skip


def assert_moments_match(gaussians: Gaussians, optimizers: Optimizers, rows: list[float]) -> None:
    """The first moment of each row is 0.1 times the gradient 'row' that it was made with."""
    for name in NAMES:
        parameter = gaussians.named_tensors()[name]
        moment = optimizers.state_of(parameter)["exp_avg"]
        assert moment.shape == parameter.shape
        found = moment.reshape(len(gaussians), -1)[:, 0]
        torch.testing.assert_close(found, 0.1 * torch.tensor(rows), msg=name)


def test_take_reorders_everything_together():
    gaussians = made()
    optimizers = optimized(gaussians)
    before = {name: p.detach().clone() for name, p in gaussians.named_tensors().items()}
    identity = dict(gaussians.named_tensors())
    source = torch.tensor([3, 3, 0, 7])
    gaussians.take(source, torch.tensor([False, True, False, False]), optimizers)
    for name, parameter in gaussians.named_tensors().items():
        assert parameter is identity[name]
        torch.testing.assert_close(parameter.detach(), before[name][source])
    assert_moments_match(gaussians, optimizers, [4, 0, 1, 8])


def test_the_optimiser_goes_on_after_a_change_of_number():
    gaussians = made()
    optimizers = optimized(gaussians)
    gaussians.take(torch.arange(5), torch.zeros(5, dtype=torch.bool), optimizers)
    loss = sum((p**2).sum() for p in gaussians.parameters())
    assert isinstance(loss, torch.Tensor)
    loss.backward()
    optimizers.step(1, 10, 1.0)
    assert all(p.isfinite().all() and len(p) == 5 for p in gaussians.parameters())


def default(gaussians: Gaussians, limit: int = 100, **options) -> DefaultDensity:
    options = {"start": 0, "every": 1, "reset_every": 0, **options}
    return DefaultDensity(DefaultConfig(**options), gaussians, limit, extent=1.0)


def test_default_clones_small_and_splits_large():
    gaussians = made(4, scale=0.005)
    optimizers = optimized(gaussians)
    gaussians.log_scales.data[2] = math.log(0.5)
    density = default(gaussians)
    density.optimizers = optimizers
    gradients = torch.zeros(4, 2)
    gradients[1], gradients[2] = torch.tensor([1e-4, 0.0]), torch.tensor([0.0, 1e-4])
    density.observe(seen(gaussians, gradients=gradients), 0)
    facts = density.refine(0, torch.Generator().manual_seed(0))
    # One pixel is 1/32 (1/16) of half the image: 1e-4 * 32 and 1e-4 * 16 exceed 2e-4.
    assert (facts["cloned"], facts["split"], facts["pruned"]) == (1, 1, 0)
    assert len(gaussians) == 6
    torch.testing.assert_close(gaussians.means[4], gaussians.means[1])
    halves = gaussians.log_scales[[2, 5]].exp()
    torch.testing.assert_close(halves, torch.full((2, 3), 0.5 / 1.6))
    assert not torch.equal(gaussians.means[2], gaussians.means[5])
    assert_moments_match(gaussians, optimizers, [1, 2, 0, 4, 0, 0])


def test_default_prunes_the_transparent_and_later_the_huge():
    gaussians = made(5)
    gaussians.opacity_logits.data[1] = -6.0
    gaussians.log_scales.data[3] = math.log(0.2)
    density = default(gaussians, reset_every=10, prune_scale=0.15)
    density.observe(seen(gaussians), 0)
    density.refine(0, torch.Generator())
    assert len(gaussians) == 4
    density.observe(seen(gaussians), 10)
    density.refine(10, torch.Generator())
    assert len(gaussians) == 3


def test_default_reset_cuts_opacities_and_forgets_their_moments():
    gaussians = made(4, opacity=0.9)
    optimizers = optimized(gaussians)
    density = default(gaussians, reset_every=2)
    density.optimizers = optimizers
    density.refine(1, torch.Generator())
    torch.testing.assert_close(gaussians.opacities.detach(), torch.full((4,), 0.01))
    assert not optimizers.state_of(gaussians.opacity_logits)["exp_avg"].any()
    assert optimizers.state_of(gaussians.means)["exp_avg"].all()


@pytest.mark.parametrize("strategy", ["default", "mcmc", "adaptive"])
def test_the_budget_always_holds(strategy):
    gaussians = made(8)
    density = {
        "default": lambda: default(gaussians, limit=11, gradient=0.0),
        "mcmc": lambda: McmcDensity(McmcConfig(start=0, every=1, growth=1.9), gaussians, 11, 1.0),
        "adaptive": lambda: AdaptiveDensity(
            AdaptiveConfig(warmup=0, every=1, gradient=0.0), gaussians, 11, 1.0
        ),
    }[strategy]()
    for step in range(1, 9):
        gaussians.means.grad = torch.zeros_like(gaussians.means)
        ones = torch.ones(len(gaussians))
        told = seen(gaussians, ones, ones.int(), torch.ones(len(gaussians), 2))
        density.observe(told, step)
        density.refine(step, torch.Generator().manual_seed(step))
        assert 1 <= len(gaussians) <= 11
        assert all(len(b) == len(gaussians) for b in density.statistics().values())
    assert len(gaussians) == 11


def test_budget_curve_lets_the_most_pulled_about_multiply():
    gaussians = made(10, scale=0.001)
    density = default(gaussians, limit=20, start=0, stop=100, budget_curve=True, gradient=1e9)
    gradients = torch.zeros(10, 2)
    gradients[:, 0] = torch.arange(10.0)
    density.observe(seen(gaussians, gradients=gradients), 9)
    density.refine(9, torch.Generator())  # step 10 of 100: 10 + 10 (0.2 - 0.01) = 11
    assert len(gaussians) == 11
    torch.testing.assert_close(gaussians.means[10], gaussians.means[9])


def adaptive(gaussians: Gaussians, **options) -> AdaptiveDensity:
    options = {"warmup": 0, "every": 1, "split_pixels": 100, **options}
    return AdaptiveDensity(AdaptiveConfig(**options), gaussians, 100, 1.0)


def test_adaptive_splits_clones_and_moves_as_published():
    gaussians = made(4, opacity=0.6)
    density = adaptive(gaussians, gradient=1.0)
    before = gaussians.means.detach().clone()
    scales = gaussians.log_scales.detach().clone()
    gradient = torch.zeros(4, 3)
    gradient[1] = torch.tensor([0.01, 0.0, -0.02])
    gaussians.means.grad = gradient
    density.observe(seen(gaussians, [0.5, 2.0, 2.0, 0.5], [5, 5, 500, 5]), 5)
    gaussians.means.data += 1.0  # the optimiser's step comes in between
    facts = density.refine(5, torch.Generator().manual_seed(0))
    assert (facts["cloned"], facts["split"]) == (1, 1)
    assert len(gaussians) == 6
    # A clone starts where its parent was before the step, moved along the gradient.
    torch.testing.assert_close(gaussians.means[4].detach(), before[1] + 100 * gradient[1])
    torch.testing.assert_close(gaussians.log_scales[4].detach(), scales[1])
    # Both halves of a split are drawn around the old place, with the smaller size.
    for row in (2, 5):
        torch.testing.assert_close(gaussians.log_scales[row].detach(), scales[2] - math.log(1.6))
        assert (gaussians.means[row] - before[2]).norm() < 6 * 0.1
    torch.testing.assert_close(gaussians.means[0].detach(), before[0] + 1)


def test_adaptive_removes_floaters_and_the_transparent():
    gaussians = made(5, opacity=0.6)
    gaussians.opacity_logits.data[1] = -0.6
    gaussians.sh_dc.data[2] = math.nan
    gaussians.means.grad = torch.zeros(5, 3)
    density = adaptive(gaussians, floater_start=3, gradient=1e3)
    told = seen(gaussians, [0.0] * 5, [5, 5, 5, 20_000, 5])
    density.observe(told, 2)
    assert density.plan is not None
    assert density.plan.is_floater.tolist() == [False] * 5
    density.observe(told, 4)
    assert density.plan.is_floater.tolist() == [False, False, False, True, False]
    facts = density.refine(4, torch.Generator())
    assert (facts["floaters"], facts["transparent"]) == (1, 2)
    assert len(gaussians) == 2


def test_adaptive_rests_during_warm_up_and_resets_logits():
    gaussians = made(3, opacity=0.9)
    gaussians.means.grad = torch.zeros(3, 3)
    density = adaptive(gaussians, warmup=10, reset_every=20, reset_to=-1.9, gradient=0.0)
    density.observe(seen(gaussians, [1.0] * 3), 5)
    assert density.plan is None
    assert density.refine(5, torch.Generator()) == {}
    density.refine(20, torch.Generator())
    torch.testing.assert_close(gaussians.opacity_logits.detach(), torch.full((3,), -1.9))


def test_focus_of_an_ellipsoid():
    quaternions = torch.tensor([[math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5)]])  # x to y
    found = foci(quaternions, torch.tensor([[5.0, 3.0, 4.0]]))
    torch.testing.assert_close(found, torch.tensor([[0.0, 4.0, 0.0]]), atol=1e-5, rtol=0)


def test_mcmc_shares_are_the_published_sums():
    opacity = torch.tensor([0.3, 0.7, 0.95])
    copies = torch.tensor([1, 2, 5])
    new, factor = shares(opacity, copies)
    torch.testing.assert_close(1 - (1 - new) ** copies, opacity)
    for o, n, o_new, found in zip(opacity, copies, new, factor, strict=True):
        total = sum(
            math.comb(i - 1, k) * (-1) ** k * float(o_new) ** (k + 1) / math.sqrt(k + 1)
            for i in range(1, int(n) + 1)
            for k in range(i)
        )
        assert float(found) == pytest.approx(float(o) / total, rel=1e-5)
    assert float(factor[0]) == pytest.approx(1.0)


def test_mcmc_relocates_the_dead_onto_the_living():
    gaussians = made(6)
    gaussians.opacity_logits.data[:2] = -8.0
    optimizers = optimized(gaussians)
    density = McmcDensity(McmcConfig(start=0, every=1, growth=1.0, noise=0.0), gaussians, 6, 1.0)
    density.optimizers = optimizers
    facts = density.refine(0, torch.Generator().manual_seed(1))
    assert facts["relocated"] == 2
    assert len(gaussians) == 6
    assert (gaussians.opacities > 0.005).all()
    # A relocated one sits exactly on a living one, which shares its opacity.
    distance = torch.cdist(gaussians.means[:2].detach(), gaussians.means[2:].detach())
    assert (distance.amin(dim=1) == 0).all()


def test_mcmc_noise_moves_only_what_is_nearly_transparent():
    gaussians = made(2, opacity=0.5)
    gaussians.opacity_logits.data[0] = -7.0
    optimizers = optimized(gaussians)
    before = gaussians.means.detach().clone()
    density = McmcDensity(McmcConfig(start=10, noise=1e12), gaussians, 2, 1.0)
    density.optimizers = optimizers
    density.refine(0, torch.Generator().manual_seed(0))
    assert not torch.equal(gaussians.means[0], before[0])
    torch.testing.assert_close(gaussians.means[1].detach(), before[1])


def test_schedules():
    assert [budget_at(t, 10, 110) for t in (-1.0, 0.0, 0.5, 1.0, 2.0)] == [10, 10, 85, 110, 110]
    assert [step for step in range(1, 9) if is_due(step, 2.5)] == [3, 5, 8]
    assert not is_due(5, 0.0)


def test_a_last_gaussian_survives():
    gaussians = made(3, opacity=0.001)
    density = default(gaussians)
    density.refine(0, torch.Generator())
    assert len(gaussians) == 1
    assert isinstance(gaussians.means, nn.Parameter)

# SPDX-License-Identifier: Apache-2.0
"""Marching against its reference, against lattices written down by hand, and against itself."""

import math
from typing import Any

import jaxtyping
import pytest
import torch
from torch import Tensor

from diorama import native
from diorama.ops.march import Box, Marched, march, march_reference
from tests.ops.parity import tensors_of

BOX: Box = ((-1.0, -0.5, 0.0), (1.0, 0.75, 1.5))
UNIT: Box = ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))


def random_grid(levels: int, resolution: int, share: float = 0.3) -> Tensor:
    """Blobs, so that there are empty, full and mixed bricks."""
    generator = torch.Generator().manual_seed(resolution)
    coarse = torch.rand(levels, 1, *[max(resolution // 6, 1)] * 3, generator=generator)
    smooth = torch.nn.functional.interpolate(coarse, size=[resolution] * 3, mode="trilinear")
    return smooth[:, 0] > smooth.flatten().quantile(1 - share)


def random_rays(num_rays: int) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(num_rays)
    origins = 4 * torch.randn(num_rays, 3, generator=generator)
    origins[::3] *= 0.1
    target = torch.rand(num_rays, 3, generator=generator) - torch.tensor([0.5, 0.3, 0.0])
    directions = torch.nn.functional.normalize(target - origins, dim=1)
    directions[1::7, 1] = 0  # parallel to a face
    near = 0.5 * torch.rand(num_rays, generator=generator)
    far = near + 12 * torch.rand(num_rays, generator=generator)
    far[2::5] = torch.inf
    far[3::11] = near[3::11]
    jitter = torch.rand(num_rays, generator=generator)
    return {
        "origins": origins,
        "directions": directions,
        "near": near,
        "far": far,
        "jitter": jitter,
    }


def in_double(rays: dict[str, Any]) -> dict[str, Any]:
    return {name: x.double() for name, x in rays.items()}


def assert_same(got: Marched, expected: Marched, atol: float = 1e-5) -> None:
    assert torch.equal(got.ray_offsets, expected.ray_offsets)
    assert torch.equal(got.ray, expected.ray)
    for name in ("t", "delta", "t_next"):
        one, other = getattr(got, name).double(), getattr(expected, name).double()
        torch.testing.assert_close(one, other, rtol=1e-6, atol=atol, msg=lambda m, n=name: n + m)


@pytest.mark.usefixtures("build")
class TestKernel:
    @pytest.mark.parametrize("max_samples", [None, 7])
    @pytest.mark.parametrize(("step", "cone"), [(0.043, 0.0), (0.02, 0.03)])
    @pytest.mark.parametrize(
        ("num_rays", "levels", "resolution"),
        [(0, 1, 4), (1, 1, 1), (61, 1, 33), (61, 3, 16), (61, 2, 21)],
    )
    def test_matches_reference(self, num_rays, levels, resolution, step, cone, max_samples):
        """A float32 ray marched by the kernel is that ray marched in float64 by the reference."""
        grid, rays = random_grid(levels, resolution), random_rays(num_rays)
        settings = {"step": step, "cone": cone, "max_samples": max_samples}
        got = march(is_occupied=grid, box=BOX, **rays, **settings)
        expected = march_reference(is_occupied=grid, box=BOX, **in_double(rays), **settings)
        assert got.t.dtype == torch.float32
        assert_same(got, expected)
        in_float64 = march(is_occupied=grid, box=BOX, **in_double(rays), **settings)
        assert_same(in_float64, expected, atol=1e-11)

    @pytest.mark.parametrize("cone", [0.0, 0.01])
    def test_a_ray_of_many_runs_is_not_cut_short(self, cone: float):
        """Every second cell is occupied: more runs than the first pass remembers."""
        grid = (torch.arange(64) % 2 == 0).expand(1, 64, 64, 64).contiguous()
        generator = torch.Generator().manual_seed(0)
        start, goal = (torch.rand(20, 3, generator=generator).double() for _ in range(2))
        start[:, 2], goal[:, 2] = -0.1, 1.2
        lines = (start, goal - start, grid, UNIT, start[:, 0], torch.ones(20).double())
        got = march(*lines, step=0.004, cone=cone)
        assert_same(got, march_reference(*lines, step=0.004, cone=cone), atol=1e-11)
        num_gaps = (got.t.diff() > 1.5 * got.delta[1:]) & (got.ray.diff() == 0)
        assert torch.bincount(got.ray[1:][num_gaps]).max() > 20

    @pytest.mark.parametrize("cone", [0.0, 0.01])
    def test_threads_give_the_same_bits(self, cone: float):
        grid, rays = random_grid(2, 32), random_rays(300)
        results = []
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            marched = march(is_occupied=grid, box=BOX, **rays, step=0.01, cone=cone)
            results.append(tensors_of(marched))
        assert all(torch.equal(a, b) for a, b in zip(results[0], results[1], strict=True))
        assert all(torch.equal(a, b) for a, b in zip(results[0], results[2], strict=True))

    @pytest.mark.parametrize("cone", [0.0, 0.015])
    def test_continued_calls_give_the_samples_of_one(self, cone: float):
        grid, rays = random_grid(2, 24), in_double(random_rays(50))
        settings = {"is_occupied": grid, "box": BOX, "step": 0.03, "cone": cone}
        whole = march(**rays, **settings)
        parts = [march(**rays, **settings, max_samples=13)]
        while bool((parts[-1].t_next < rays["far"]).any()):
            rest = {**rays, "near": parts[-1].t_next, "jitter": None}
            parts.append(march(**rest, **settings, max_samples=13))
        ray, order = torch.cat([part.ray for part in parts]).sort(stable=True)
        assert len(parts) > 3
        assert torch.equal(ray, whole.ray)
        for name in ("t", "delta"):
            pieces = torch.cat([getattr(part, name) for part in parts])[order]
            torch.testing.assert_close(pieces, getattr(whole, name), rtol=1e-10, atol=1e-10)

    def test_rays_that_have_no_samples(self):
        grid = torch.ones(1, 4, 4, 4, dtype=torch.bool)
        origins = torch.tensor([[0.5, 0.5, 0.5], [math.nan, 0, 0], [5, 5, 5], [0.5, 0.5, -1]])
        directions = torch.tensor([[0.0, 0, 0], [0, 0, 1], [0, 0, 1], [0, 0, -1]])
        far = torch.tensor([math.inf, 4, 5, math.inf])
        result = march(origins, directions, grid, UNIT, torch.zeros(4), far, step=0.1)
        assert len(result.t) == 0
        assert torch.equal(result.t_next, far)

    def test_the_binding_checks_what_the_kernel_follows(self):
        words, bits = torch.zeros(9, dtype=torch.int64), torch.ones(1, 5, 5, 5) > 0
        native.module.march_pack(bits, words, 1)
        with pytest.raises(ValueError, match="words must have size 9 on axis 0, got 8"):
            native.module.march_pack(bits, words[:8], 1)
        with pytest.raises(ValueError, match="is_occupied must have size 5 on axis 3, got 4"):
            native.module.march_pack(bits[..., 1:].contiguous(), words, 1)
        rays = (torch.zeros(2, 3), torch.ones(2, 3), torch.zeros(2), torch.ones(2), None)
        grid = (words, 1, 5, [0.0] * 3, [1.0] * 3, 0.1, 0.0)
        runs, out = torch.zeros(2, native.module.MARCH_RUNS, 2).double(), torch.zeros(4)
        offsets, ray = torch.tensor([0, 3, 5]), torch.zeros(4, dtype=torch.int64)
        with pytest.raises(ValueError, match=r"ray_offsets must start at 0 and end at .* 4"):
            native.module.march_write(*rays, *grid, runs, offsets, out, out.clone(), ray, 1)


@pytest.mark.parametrize("op", [march, march_reference])
class TestByHand:
    def test_far_cuts_the_last_interval(self, op):
        grid = torch.ones(1, 2, 2, 2, dtype=torch.bool)
        origin, up = torch.tensor([[0.5, 0.5, 0.0]]), torch.tensor([[0.0, 0.0, 1.0]])
        near, far = torch.tensor([0.125]), torch.tensor([0.75])
        result = op(origin, up, grid, UNIT, near, far, step=0.25)
        assert result.t.tolist() == [0.25, 0.5, 0.6875]
        assert result.delta.tolist() == [0.25, 0.25, 0.125]
        assert result.t_next.tolist() == [0.75]
        assert op(origin, up, grid, UNIT, near, far, 0.25, max_samples=2).t_next.item() == 0.625
        assert op(origin, up, grid, UNIT, near, far, 0.25, max_samples=3).t_next.item() == 0.75

    def test_jitter_shifts_the_lattice_by_part_of_a_step(self, op):
        grid = torch.ones(1, 2, 2, 2, dtype=torch.bool)
        origin, up = torch.full((1, 3), 0.5), torch.tensor([[0.0, 0.0, 1.0]])
        arguments = (origin, up, grid, UNIT, torch.zeros(1), torch.ones(1), 0.125, 0.0)
        assert op(*arguments, torch.tensor([0.5])).t.tolist() == [0.125, 0.25, 0.375]

    def test_a_cone_widens_the_steps(self, op):
        grid = torch.ones(2, 4, 4, 4, dtype=torch.bool)
        origin, up = torch.tensor([[0.5, 0.5, -1.0]]), torch.tensor([[0.0, 0.0, 1.0]])
        result = op(origin, up, grid, UNIT, torch.ones(1), torch.ones(1) * 9, 0.25, cone=0.5)
        # Edges 1, 1.5, 2.25, 3.375; the coarse box ends at 2.5.
        assert result.t.tolist() == [1.25, 1.875]
        assert result.delta.tolist() == [0.5, 0.75]

    def test_the_finest_level_decides(self, op):
        """Level 0 is empty and hides what coarser cells say about its box."""
        grid = torch.ones(3, 8, 8, 8, dtype=torch.bool)
        grid[0] = False
        grid[2, :, :, 0] = False  # The lowest layer of the coarsest box: z in -1.5 .. -1.
        origin, up = torch.tensor([[0.5, 0.5, -2.0]]), torch.tensor([[0.0, 0.0, 1.0]])
        z = op(origin, up, grid, UNIT, torch.zeros(1), torch.ones(1) * 9, 0.125).t - 2
        # Without the lowest layer: -1 .. 0 below level 0, 1 .. 2.5 above it.
        middles = torch.arange(-24, 20) * 0.125 + 0.0625
        assert torch.equal(z, middles[(middles > -1) & ((middles < 0) | (middles > 1))])


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("directions", torch.ones(3, 3), r"directions must have the shape \(2, 3\), got \(3, 3\)"),
        ("near", torch.ones(1), r"near must have the shape \(2,\), got \(1,\)"),
        ("jitter", torch.ones(3), r"jitter must have the shape \(2,\)"),
        ("is_occupied", torch.ones(1, 2, 2, 3) > 0, r"is_occupied must have the shape \(levels"),
        ("box", ((0.0, 0.0, 0.0), (1.0, 0.0, 1.0)), "box must have its lower corner first"),
        ("step", 0.0, "step must be positive, got 0.0"),
        ("cone", -1.0, "cone must not be negative"),
        ("max_samples", 0, "max_samples must be positive or None, got 0"),
    ],
)
def test_wrong_arguments_are_value_errors(monkeypatch, name: str, wrong: Any, message: str):
    # The shape guard would see most of these first; users run without it.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    arguments = {
        "origins": torch.zeros(2, 3),
        "directions": torch.ones(2, 3),
        "is_occupied": torch.ones(1, 2, 2, 2) > 0,
        "box": UNIT,
        "near": torch.zeros(2),
        "far": torch.ones(2),
        "step": 0.1,
    }
    with pytest.raises(ValueError, match=message):
        march(**{**arguments, name: wrong})

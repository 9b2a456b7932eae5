# SPDX-License-Identifier: Apache-2.0
"""Distances are distances: unit gradients, no overshoot, brute-force agreement, culling is free."""

import math

import pytest
import torch

from diorama.scenes import SCENES, load_procedural, primitives
from diorama.scenes.solids import columnwise

PRIMITIVES = {
    "sphere": lambda p: primitives.sphere(p, 0.5),
    "box": lambda p: primitives.box(p, (0.5, 0.3, 0.4), 0.05),
    "cylinder": lambda p: primitives.cylinder(p, 0.5, 0.3, 0.06),
    "torus": lambda p: primitives.torus(p, 0.5, 0.2),
    "cone": lambda p: primitives.cone(p, 0.5, 0.1, 0.4, 0.03),
    "dome": lambda p: primitives.dome(p, 0.5, 0.15),
    "horseshoe": lambda p: primitives.horseshoe(p, 0.4, 0.2, 0.1, 0.2, 0.03),
    "gable": lambda p: primitives.gable(p, 0.4, 0.3, 0.5, 0.02),
}


def random_points(count: int, half: float, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (torch.rand(count, 3, generator=generator, dtype=torch.float64) * 2 - 1) * half


@pytest.mark.parametrize("name", PRIMITIVES)
def test_outside_distance_is_the_distance_to_the_nearest_surface_point(name):
    """Walk from random points by -d * gradient: an exact distance lands on the surface at once."""
    points = random_points(4000, 1.0).requires_grad_(True)
    distance = PRIMITIVES[name](points)
    (gradient,) = torch.autograd.grad(distance.sum(), points)
    outside = distance.detach() > 1e-3
    assert 1000 < int(outside.sum()) < 4000
    landed = (points - distance[:, None] * gradient)[outside].detach()
    assert PRIMITIVES[name](landed).abs().max() < 2e-7  # Roots are clamped at 1e-7.
    assert (gradient[outside].norm(dim=-1) - 1).abs().max() < 1e-9


@pytest.mark.parametrize("name", PRIMITIVES)
def test_no_distance_grows_faster_than_the_way_walked(name):
    a, b = random_points(20000, 1.0, 1), random_points(20000, 1.0, 2)
    gain = (PRIMITIVES[name](a) - PRIMITIVES[name](b)).abs()
    assert bool((gain <= (a - b).norm(dim=-1) + 1e-9).all())


@pytest.mark.parametrize("name", SCENES)
def test_scene_gradient_has_unit_length_near_surfaces(name):
    scene = load_procedural(name)
    points = random_points(60000, 1.1).requires_grad_(True)
    distance = scene.sdf(points)
    (gradient,) = torch.autograd.grad(distance.sum(), points)
    near = distance.detach().abs() < 0.03
    assert int(near.sum()) > 500
    assert (gradient[near].norm(dim=-1) - 1).abs().max() < 1e-5


@pytest.mark.parametrize("name", SCENES)
def test_scene_stays_inside_its_box(name):
    scene = load_procedural(name)
    low, high = torch.tensor(scene.aabb_min).double(), torch.tensor(scene.aabb_max).double()
    faces = torch.rand(6000, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    points = low + faces * (high - low)
    for k in range(3):
        points[k * 2000 : k * 2000 + 1000, k] = low[k]
        points[k * 2000 + 1000 : (k + 1) * 2000, k] = high[k]
    assert float(scene.sdf(points).min()) > 0
    assert max(high.abs().max(), low.abs().max()) <= 1.2


def test_roof_fold_is_exact():
    """Each solid of the tabletop, the folded roof among them, is a distance on its own."""
    for solid in load_procedural("tabletop").solids:
        points = (random_points(3000, 0.9)).requires_grad_(True)
        distance = solid.sdf(points)
        (gradient,) = torch.autograd.grad(distance.sum(), points)
        landed = (points - distance[:, None] * gradient)[distance > 1e-3].detach()
        assert float(solid.sdf(landed).abs().max()) < 1e-6, solid.name


def test_grid_changes_nothing_but_the_time():
    scene = load_procedural("tabletop")
    low, high = torch.tensor(scene.grid.low), torch.tensor(scene.grid.high)
    points = columnwise(low + random_points(40000, 0.5).add(0.5).float() * (high - low))
    cells = scene.grid.cell_of(points)
    expected, owner = scene.sdf_and_owner(points)
    torch.testing.assert_close(scene.grid.sdf(points, cells), expected, rtol=0, atol=0)
    torch.testing.assert_close(scene.grid.sdf_and_owner(points, cells)[1], owner)
    assert bool((scene.grid.lower_bound(cells) <= expected + 1e-6).all())


def test_albedo_and_normals_are_usable_everywhere():
    scene = load_procedural("tabletop")
    points = random_points(20000, 1.1).float()
    albedo, normal = scene.albedo(points), scene.normal(points)
    assert bool(((albedo >= 0) & (albedo <= 1)).all())
    assert bool(normal.isfinite().all())
    with torch.inference_mode():
        torch.testing.assert_close(scene.normal(points), normal)


def test_sphere_normals_are_radial():
    scene = load_procedural("spheres")
    points = torch.tensor([[0.0, 0.0, 0.6], [0.36, 0.48, 0.0], [0.75, -0.3, 0.5]])
    expected = torch.tensor([[0.0, 0.0, 1.0], [0.6, 0.8, 0.0], [0.0, 0.0, 1.0]])
    torch.testing.assert_close(scene.normal(points), expected, atol=1e-6, rtol=0)


def test_torus_volume_has_its_closed_form():
    points = random_points(200000, 0.8)
    inside = (PRIMITIVES["torus"](points) < 0).double().mean() * 1.6**3
    assert abs(float(inside) - 2 * math.pi**2 * 0.5 * 0.2**2) < 0.02

# SPDX-License-Identifier: Apache-2.0
"""Ground truth against closed forms, against itself from another view, and byte for byte."""

import math

import pytest
import torch

from diorama.cameras import Cameras, look_at
from diorama.scenes import load_procedural
from diorama.scenes.shading import shade
from diorama.scenes.solids import columnwise
from diorama.scenes.spheres import BALLS
from diorama.scenes.tracing import Hits, trace


def camera_at(turn: float, elevation: float, size: int, radius: float = 4.0) -> Cameras:
    a, e = math.radians(turn), math.radians(elevation)
    eye = (
        radius * math.cos(e) * math.cos(a),
        radius * math.cos(e) * math.sin(a),
        radius * math.sin(e),
    )
    focal = 0.5 * size / math.tan(0.32)
    pose = look_at(eye, (0.0, 0.0, 0.0))
    return Cameras.pinhole(pose, focal, focal, size / 2, size / 2, size, size)


def closed_form(camera: Cameras) -> tuple[torch.Tensor, torch.Tensor]:
    """Distance to the first ball (inf for a miss) and its outward normal, in float64."""
    rays = camera.to(torch.float64).image_rays(0)
    best = torch.full((len(rays),), math.inf, dtype=torch.float64)
    normal = torch.zeros(len(rays), 3, dtype=torch.float64)
    for center, radius, _ in BALLS:
        offset = rays.origins - torch.tensor(center, dtype=torch.float64)
        b = (offset * rays.directions).sum(-1)
        under_root = b * b - offset.square().sum(-1) + radius * radius
        t = torch.where(under_root > 0, -b - under_root.clamp_min(0).sqrt(), math.inf)
        n = (offset + rays.directions * t.nan_to_num(0, 0, 0)[:, None]) / radius
        normal = torch.where((t < best)[:, None], n, normal)
        best = torch.minimum(best, t)
    return best, normal


@pytest.fixture(scope="module")
def spheres():
    return load_procedural("spheres")


@pytest.fixture(scope="module")
def tabletop():
    return load_procedural("tabletop")


@pytest.mark.parametrize("turn", [0, 100, 230])
def test_sphere_depth_and_normals_have_their_closed_forms(spheres, turn):
    camera = camera_at(turn, 25, 72)
    truth = spheres.render(camera, supersampling=1)
    distance, normal = closed_form(camera)
    hit = truth.depth.flatten() > 0
    # Rays that pass within a ten-thousandth of a ball may be called either way.
    assert int((hit != distance.isfinite()).sum()) <= 1
    both = hit & distance.isfinite()
    z_depth = distance * camera.to(torch.float64).image_rays(0).z_scale
    slope = (normal * camera.image_rays(0).directions).sum(-1).abs()
    fair = both & (slope > 0.1)
    error = (truth.depth.flatten() - z_depth)[fair].abs()
    assert float(error.max()) < 2e-5
    assert float((truth.normal.reshape(-1, 3) - normal)[fair].abs().max()) < 1e-4


@pytest.fixture(scope="module")
def view(tabletop):
    return tabletop.render(camera_at(-60, 30, 64))


def test_mask_alpha_and_colour_agree(view):
    truth = view
    assert torch.equal(truth.mask, truth.alpha > 0.5)
    assert 0.3 < float(truth.alpha.mean()) < 0.7
    assert float(truth.rgb.min()) >= 0
    assert float(truth.rgb.max()) <= 1
    edge = (truth.alpha > 0) & (truth.alpha < 1)
    assert int(edge.sum()) > 20
    # Straight colours: an edge pixel is as bright as its object, not darkened by its coverage.
    assert float(truth.rgb[edge].mean()) > 0.6 * float(truth.rgb[truth.alpha == 1].mean())
    lengths = truth.normal.norm(dim=-1)[truth.depth > 0]
    assert float((lengths - 1).abs().max()) < 1e-4


def test_every_visible_normal_faces_the_camera(view):
    camera = camera_at(-60, 30, 64)
    hit = view.depth.flatten() > 0
    facing = (view.normal.reshape(-1, 3) * camera.image_rays(0).directions).sum(-1)[hit]
    assert float((facing < 1e-3).float().mean()) > 0.999


def reprojection_errors(scene, depth, first: Cameras, second: Cameras, shift: float):
    """Depth of the first view carried into the second: z differences where both see the point.

    ``shift`` moves the sampling position in the second view: the error that the test must notice.
    """
    rays = first.image_rays(0)
    seen = depth > 0
    points = (rays.origins + rays.directions * (depth / rays.z_scale)[:, None])[seen]
    xy, z, _ = second.project(points)
    exact = second.rays(torch.zeros(len(xy), dtype=torch.int64), xy + shift)
    hits = trace(scene.grid, columnwise(exact.origins), columnwise(exact.directions))
    return (hits.distance * exact.z_scale[hits.ray] - z[hits.ray]).abs()


def test_two_views_agree_on_where_things_are_and_half_a_pixel_would_show(tabletop, view):
    first, second = camera_at(-60, 30, 64), camera_at(-45, 38, 64)
    depth = view.depth.flatten()
    exact = reprojection_errors(tabletop, depth, first, second, 0.0)
    wrong = reprojection_errors(tabletop, depth, first, second, 0.5)
    # Most points are visible in both views: their depth agrees to the tracer's precision.
    assert float(exact.quantile(0.75)) < 5e-5
    assert float(wrong.quantile(0.75)) > 100 * float(exact.quantile(0.75))


def test_colour_does_not_depend_on_the_view(tabletop):
    rays = camera_at(-70, 30, 48).image_rays(0)
    hits = trace(tabletop.grid, columnwise(rays.origins), columnwise(rays.directions))
    order = torch.arange(len(hits.ray)).flip(0)
    again = Hits(hits.ray, hits.distance, columnwise(hits.points[order]), hits.owner[order])
    a, b = shade(tabletop.grid, hits), shade(tabletop.grid, again)
    torch.testing.assert_close(a, b[order], atol=1e-5, rtol=0)


def test_an_image_is_the_same_every_time_and_in_any_company(spheres):
    one, other = camera_at(10, 20, 48), camera_at(200, 50, 48)
    alone = load_procedural("spheres").render_rgba(one)[0]
    assert torch.equal(alone, spheres.render_rgba(one)[0])
    together = spheres.render_rgba(Cameras.cat([other, one]))[1]
    assert float((alone - together).abs().max()) < 1e-6


def test_a_camera_that_sees_nothing_gets_an_empty_image(spheres):
    away = Cameras.pinhole(look_at((4.0, 0, 0), (8.0, 0, 0)), 20.0, 20.0, 8, 8, 16, 16)
    truth = spheres.render(away)
    assert not truth.mask.any()
    assert not truth.depth.any()


def test_callers_mistakes_are_named(spheres):
    two = Cameras.cat([camera_at(0, 0, 16), camera_at(9, 0, 16)])
    with pytest.raises(ValueError, match="one camera at a time, got 2"):
        spheres.render(two)
    with pytest.raises(ValueError, match="one image size"):
        spheres.render_rgba(Cameras.cat([camera_at(0, 0, 16), camera_at(0, 0, 24)]))
    with pytest.raises(ValueError, match="supersampling must be at least 1, got 0"):
        spheres.render_rgba(two, supersampling=0)
    with pytest.raises(ValueError, match="resolution must be at least 8, got 2"):
        spheres.mesh(2)


@pytest.mark.parametrize("name", ["spheres", "tabletop"])
def test_mesh_lies_on_the_surface_and_faces_outwards(name):
    scene = load_procedural(name)
    mesh = scene.mesh(64)
    vertices = torch.tensor(mesh.vertices, dtype=torch.float32)
    gap = scene.sdf(vertices).abs()
    assert float(gap.quantile(0.99)) < 1e-5
    assert float(gap.max()) < 2.4 / 64
    assert mesh.volume > 0


def test_sphere_mesh_has_the_volume_of_its_union(spheres):
    def overlap(r, s, d):  # Lens of two balls.
        return math.pi * (r + s - d) ** 2 * (d * d + 2 * d * (r + s) - 3 * (r - s) ** 2) / (12 * d)

    expected = sum(4 / 3 * math.pi * r**3 for _, r, _ in BALLS)
    (a, r, _), *others = BALLS
    for b, s, _ in others:
        d = math.dist(a, b)
        expected -= overlap(r, s, d) if d < r + s else 0
    assert abs(spheres.mesh(96).volume - expected) / expected < 3e-3

# SPDX-License-Identifier: Apache-2.0
"""Project and unproject are inverses for every model, alone and mixed, in both float types."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from diorama.cameras import CameraModel, Cameras
from diorama.cameras.distortion import distort, distort_angle, fold_radius, undistort
from tests.cameras.strategies import (
    COLMAP_PARAMETERS,
    colmap_cameras,
    mixed_cameras,
    random_pixels,
    random_poses,
    seeds,
)

NO_POSE = torch.eye(3, 4, dtype=torch.float64)


def reprojected(cameras: Cameras, index: Tensor, xy: Tensor, distance: float) -> Tensor:
    """Pixels of the points at this distance on the rays of the given pixels."""
    rays = cameras.rays(index, xy)
    points = rays.origins + distance * rays.directions
    parts = [cameras[int(i)].project(point[None]) for i, point in zip(index, points, strict=True)]
    assert all(bool(part.is_valid.all()) for part in parts)
    depth = torch.cat([part.depth for part in parts])
    torch.testing.assert_close(depth, distance * rays.z_scale, rtol=1e-3, atol=1e-4)
    return torch.cat([part.xy for part in parts])


@settings(max_examples=25, deadline=None)
@given(seed=seeds, name=st.sampled_from(sorted(COLMAP_PARAMETERS)), distance=st.floats(0.1, 50))
def test_rays_project_to_their_pixels(seed, name, distance):
    cameras = colmap_cameras(name, random_poses(2, seed))
    index, xy = random_pixels(cameras, 16, seed)
    assert bool(cameras.is_unprojectable(index, xy).all())
    assert float((reprojected(cameras, index, xy, distance) - xy).abs().max()) < 1e-6


@settings(max_examples=15, deadline=None)
@given(seed=seeds)
def test_mixed_models_in_one_batch(seed):
    cameras = mixed_cameras(seed)
    index, xy = random_pixels(cameras, 20, seed)
    assert float((reprojected(cameras, index, xy, 2.0) - xy).abs().max()) < 1e-6
    batched = cameras.unproject(index, xy)
    for camera, direction, pixel in zip(index.tolist(), batched, xy, strict=True):
        single = cameras[camera].unproject(torch.zeros(1).long(), pixel[None])
        torch.testing.assert_close(direction, single[0])


@settings(max_examples=10, deadline=None)
@given(seed=seeds)
def test_float32_is_good_to_a_thousandth_of_a_pixel(seed):
    cameras = mixed_cameras(seed, torch.float32)
    index, xy = random_pixels(cameras, 256, seed)
    exact = cameras.to(torch.float64).unproject(index, xy.double())
    assert float((cameras.unproject(index, xy).double() - exact).abs().max()) < 2e-6
    assert cameras.rays(index, xy).directions.dtype == torch.float32


@settings(max_examples=20, deadline=None)
@given(seed=seeds)
def test_points_come_back_from_pixel_and_depth(seed):
    cameras = mixed_cameras(seed)
    generator = torch.Generator().manual_seed(seed)
    local = torch.randn(len(cameras), 8, 3, generator=generator, dtype=torch.float64)
    local[..., 2] = local[..., 2].abs() + 2.0
    local[..., :2] *= 0.3
    poses = cameras.world_from_camera
    points = torch.einsum("npi,nji->npj", local, poses[:, :, :3]) + poses[:, None, :, 3]
    xy, depth, is_valid = cameras.project(points)
    assert bool(is_valid.all())
    index = torch.arange(len(cameras)).repeat_interleave(8)
    rays = cameras.rays(index, xy.reshape(-1, 2))
    found = rays.origins + (depth.reshape(-1) / rays.z_scale)[:, None] * rays.directions
    torch.testing.assert_close(found, points.reshape(-1, 3), rtol=0, atol=1e-9)


def test_half_pixel_convention():
    camera = Cameras.pinhole(NO_POSE, 100.0, 100.0, 32.0, 24.0, 64, 48)
    first = torch.tensor([[(0.5 - 32) / 100, (0.5 - 24) / 100, 1.0]], dtype=torch.float64)
    torch.testing.assert_close(camera.project(first).xy, torch.tensor([[0.5, 0.5]]).double())
    rays = camera.image_rays()
    torch.testing.assert_close(rays.directions[0], first[0] / first[0].norm())
    # Row by row: the second ray is the pixel to the right, ray 64 the one below.
    assert float(rays.directions[1, 0]) > float(rays.directions[0, 0])
    assert float(rays.directions[64, 1]) > float(rays.directions[0, 1])
    middle = rays.directions.mean(0)
    torch.testing.assert_close(middle[:2], torch.zeros(2).double(), rtol=0, atol=1e-12)


def test_equirectangular_directions():
    camera = Cameras.equirectangular(NO_POSE, 400, 200)
    xy = torch.tensor([[200.0, 100], [300, 100], [100, 100], [200, 0], [0, 100]]).double()
    expected = [[0.0, 0, 1], [1, 0, 0], [-1, 0, 0], [0, -1, 0], [0, 0, -1]]
    found = camera.unproject(torch.zeros(5).long(), xy)
    torch.testing.assert_close(found, torch.tensor(expected).double(), rtol=0, atol=1e-12)
    assert bool((camera.image_rays().z_scale == 1).all())


def test_behind_the_camera_is_invalid():
    camera = Cameras.pinhole(NO_POSE, 100.0, 100.0, 32.0, 24.0, 64, 48)
    points = torch.tensor([[0.0, 0, -1], [0, 0, 0], [0, 0, 1]]).double()
    assert camera.project(points).is_valid.tolist() == [False, False, True]
    fisheye = replace(camera, model=camera.model + 1)
    sideways = torch.tensor([[1.0, 0, -0.1], [0, 0, -1], [0, 0, 1]]).double()
    assert fisheye.project(sideways).is_valid.tolist() == [True, False, True]


@pytest.mark.parametrize("model", [CameraModel.PERSPECTIVE, CameraModel.FISHEYE])
def test_pixels_beyond_the_fold_are_flagged_and_finite(model):
    camera = Cameras.pinhole(NO_POSE, 200.0, 200.0, 320.0, 240.0, 640, 480)
    distortion = torch.zeros(1, 9, dtype=torch.float64)
    distortion[0, 0] = -0.3
    camera = replace(camera, distortion=distortion, model=camera.model + int(model))
    xy = torch.tensor([[320.0, 240], [330, 250], [0, 0]]).double()
    index = torch.zeros(3).long()
    assert camera.is_unprojectable(index, xy).tolist() == [True, True, False]
    rays = camera.rays(index, xy)
    assert bool(rays.directions.isfinite().all() & rays.radii.isfinite().all())
    # A far side point folds back into the image; it must not count as seen.
    radius = float(fold_radius(distortion, torch.tensor([model == CameraModel.FISHEYE]))[0])
    outside = radius * 1.7 if model == CameraModel.PERSPECTIVE else math.tan(min(radius * 1.3, 1.5))
    xy, _, is_valid = camera.project(torch.tensor([[outside, 0.0, 1.0]]).double())
    assert 0 < float(xy[0, 0]) < 640
    assert not bool(is_valid[0])


def test_fold_radius_has_its_closed_form():
    # d/dr (r + k r^3) = 0 at r = 1 / sqrt(-3 k), for both the plane and the angle.
    distortion = torch.zeros(2, 9, dtype=torch.float64)
    distortion[:, 0] = -0.25
    found = fold_radius(distortion, torch.tensor([False, True]))
    torch.testing.assert_close(
        found, torch.full((2,), 1 / math.sqrt(0.75)).double(), rtol=5e-3, atol=0
    )
    assert bool((found <= 1 / math.sqrt(0.75)).all())
    none = fold_radius(torch.zeros(2, 9), torch.tensor([False, True]))
    assert none.tolist() == [math.inf, pytest.approx(math.pi)]


def test_opencv_formula_term_by_term():
    k1, k2, p1, p2, k3, k4, k5, k6 = 0.3, -0.2, 0.01, -0.02, 0.05, 0.1, 0.04, -0.03
    x, y = 0.31, -0.22
    r2 = x * x + y * y
    radial = (1 + k1 * r2 + k2 * r2**2 + k3 * r2**3) / (1 + k4 * r2 + k5 * r2**2 + k6 * r2**3)
    expected = [
        x * radial + 2 * p1 * x * y + p2 * (r2 + 2 * x * x),
        y * radial + p1 * (r2 + 2 * y * y) + 2 * p2 * x * y,
    ]
    ours = torch.tensor([[k1, k2, k3, 0, p1, p2, k4, k5, k6]]).double()
    found = distort(torch.tensor([[x, y]]).double(), ours)
    torch.testing.assert_close(found, torch.tensor([expected]).double())


def test_jacobian_and_slope_are_the_derivatives():
    distortion = torch.tensor([[-0.2, 0.05, 0.01, -0.003, 2e-3, -1e-3, 0.02, 0.01, 0.003]]).double()
    xy = torch.tensor([[0.4, -0.3]]).double()
    fold = torch.tensor([math.inf]).double()
    solution, jacobian, _ = undistort(distort(xy, distortion), distortion, fold)
    torch.testing.assert_close(solution, xy)
    exact = torch.autograd.functional.jacobian(lambda p: distort(p, distortion)[0], xy)[:, 0]
    torch.testing.assert_close(jacobian[0], exact.reshape(4)[[0, 1, 3]])
    theta = torch.tensor([0.7]).double().requires_grad_()
    value, slope = distort_angle(theta, distortion)
    torch.testing.assert_close(torch.autograd.grad(value.sum(), theta)[0], slope.detach())


@pytest.mark.parametrize("name", ["OPENCV", "FULL_OPENCV", "OPENCV_FISHEYE"])
def test_gradients_flow_through_undistortion(name):
    camera = colmap_cameras(name, random_poses(1, 3))
    xy = torch.tensor([[100.0, 50.0], [500.0, 400.0]]).double()
    index = torch.zeros(2).long()

    def directions(pose: Tensor, intrinsics: Tensor, distortion: Tensor) -> Tensor:
        moved = replace(
            camera, world_from_camera=pose, intrinsics=intrinsics, distortion=distortion
        )
        return moved.rays(index, xy).directions

    inputs = (camera.world_from_camera, camera.intrinsics, camera.distortion)
    inputs = tuple(x.clone().requires_grad_() for x in inputs)
    assert torch.autograd.gradcheck(directions, inputs, eps=1e-7, atol=1e-5)


def test_coordinates_take_the_cameras_float_type():
    cameras = mixed_cameras(0, torch.float32)
    index, xy = random_pixels(cameras, 9, 0)
    assert cameras.rays(index, xy.double()).directions.dtype == torch.float32
    points = torch.ones(len(cameras), 2, 3, dtype=torch.float64)
    assert cameras.project(points).xy.dtype == torch.float32


def test_distortion_can_be_learned_from_zero():
    camera = Cameras.pinhole(NO_POSE, 100.0, 100.0, 32.0, 24.0, 64, 48)
    distortion = torch.zeros(1, 9, dtype=torch.float64, requires_grad=True)
    rays = replace(camera, distortion=distortion).rays(torch.zeros(1).long(), torch.ones(1, 2))
    rays.directions.sum().backward()
    assert distortion.grad is not None
    assert float(distortion.grad[0, 0]) != 0


def test_empty_batches():
    cameras = mixed_cameras(0)
    rays = cameras.rays(torch.zeros(0).long(), torch.zeros(0, 2).double())
    assert len(rays) == 0
    assert cameras[[]].project(torch.zeros(0, 4, 3).double()).depth.shape == (0, 4)
    assert cameras.project(torch.zeros(len(cameras), 0, 3).double()).xy.shape == (
        len(cameras),
        0,
        2,
    )

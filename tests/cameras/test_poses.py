# SPDX-License-Identifier: Apache-2.0
"""Poses, quaternions and NDC rays against closed forms and NeRF's golden numbers."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from diorama.cameras import (
    Cameras,
    average_pose,
    distance_from_ndc,
    flip_yz,
    look_at,
    matrix_from_quaternion,
    ndc_rays,
    ndc_rays_opencv,
    nearest_point_to_axes,
    quaternion_from_matrix,
    recentre,
    slerp,
    spherical_pose,
)
from tests.cameras.strategies import random_poses, seeds


def assert_rigid(poses):
    rotation = poses[..., :3]
    eye = torch.eye(3, dtype=poses.dtype).expand_as(rotation)
    torch.testing.assert_close(rotation @ rotation.mT, eye, rtol=0, atol=1e-5)
    assert bool((torch.linalg.det(rotation) > 0).all())


def test_look_at_axes():
    pose = look_at((0.0, -5.0, 0.0), (0.0, 0.0, 0.0))
    # From the south looking north with +z up: right is east, down is -z, forward is north.
    expected = torch.tensor([[1.0, 0, 0, 0], [0, 0, 1, -5], [0, -1, 0, 0]])
    torch.testing.assert_close(pose, expected)


@settings(max_examples=25, deadline=None)
@given(seed=seeds)
def test_look_at_puts_the_target_in_the_middle_and_up_above_it(seed):
    generator = torch.Generator().manual_seed(seed)
    eye, target, up = torch.randn(3, 3, generator=generator, dtype=torch.float64)
    pose = look_at(eye, target, up)
    assert_rigid(pose)
    camera = Cameras.from_fov(pose, 50.0, 64, 48)
    above = target + 1e-3 * up
    xy, depth, _ = camera.project(torch.stack([target, above]))
    torch.testing.assert_close(xy[0], torch.tensor([32.0, 24.0]).double(), rtol=0, atol=1e-6)
    torch.testing.assert_close(depth[0], (target - eye).norm())
    assert float(xy[1, 1]) < 24


def test_look_at_without_a_usable_up():
    assert_rigid(look_at((0, 0, 3), (0, 0, 0), (0, 0, 1)))
    with pytest.raises(ValueError, match="target that differs"):
        look_at((1, 1, 1), (1, 1, 1))
    with pytest.raises(ValueError, match="three numbers"):
        look_at((1, 1), (1, 1, 1))


def test_golden_spherical_pose():
    pose = spherical_pose(-180, -30, 4)
    expected = torch.tensor([0, -3.464102, 2])
    torch.testing.assert_close(pose[:, 3], expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize(("angle", "elevation"), [(-180, -30), (37, -12), (100, 45)])
def test_spherical_pose_is_nerfs_matrix_product(angle, elevation):
    a, e = math.radians(angle), math.radians(elevation)
    shift = torch.eye(4, dtype=torch.float64)
    shift[2, 3] = 4
    tilt, turn = torch.eye(4, dtype=torch.float64), torch.eye(4, dtype=torch.float64)
    tilt[1:3, 1:3] = torch.tensor([[math.cos(e), -math.sin(e)], [math.sin(e), math.cos(e)]])
    turn[0, 0], turn[0, 2], turn[2, 0], turn[2, 2] = (
        math.cos(a), -math.sin(a), math.sin(a), math.cos(a),
    )  # fmt: skip
    swap = torch.tensor([[-1.0, 0, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1]]).double()
    opengl = (swap @ turn @ tilt @ shift)[:3]
    torch.testing.assert_close(spherical_pose(angle, elevation, 4, torch.float64), flip_yz(opengl))


def test_flip_yz_is_its_own_inverse_for_both_shapes():
    poses = random_poses(3, 0)
    assert torch.equal(flip_yz(flip_yz(poses)), poses)
    flipped = flip_yz(torch.eye(4))
    assert torch.equal(flipped.diagonal(), torch.tensor([1.0, -1, -1, 1]))


def test_average_and_recentre():
    poses = torch.stack(
        [look_at((x, -4.0, z), (0, 0, 0)) for x in (-1, 1) for z in (-1, 1)]
    ).double()
    average = average_pose(poses)
    torch.testing.assert_close(average, look_at((0, -4, 0), (0, 0, 0)).double(), rtol=0, atol=1e-6)
    similarity, moved = recentre(poses)
    torch.testing.assert_close(average_pose(moved), torch.eye(3, 4).double(), rtol=0, atol=1e-6)
    torch.testing.assert_close(similarity.inverse().apply_to_poses(moved), poses)
    turned = torch.stack([look_at((0, 0, 0), (1, 0, 0)), look_at((0, 0, 0), (-1, 0, 0))])
    with pytest.raises(ValueError, match="no average"):
        average_pose(turned)
    ring = [look_at((math.cos(a), math.sin(a), 0.5), (0, 0, 0)) for a in (0.3, 2.394395, 4.488790)]
    with pytest.raises(ValueError, match="no average"):
        average_pose(torch.stack(ring))


@settings(max_examples=20, deadline=None)
@given(seed=seeds)
def test_nearest_point_to_axes_finds_the_common_target(seed):
    generator = torch.Generator().manual_seed(seed)
    target = torch.randn(3, generator=generator, dtype=torch.float64)
    eyes = 3 * torch.randn(6, 3, generator=generator, dtype=torch.float64)
    poses = torch.stack([look_at(eye, target) for eye in eyes])
    torch.testing.assert_close(nearest_point_to_axes(poses), target, rtol=0, atol=1e-6)


def test_nearest_point_to_parallel_axes_is_their_mean():
    poses = torch.eye(3, 4).repeat(3, 1, 1)
    poses[:, 0, 3] = torch.tensor([0.0, 1.0, 5.0])
    torch.testing.assert_close(nearest_point_to_axes(poses), torch.tensor([2.0, 0, 0]))


@settings(max_examples=30, deadline=None)
@given(seed=seeds)
def test_quaternions_round_trip(seed):
    rotation = random_poses(8, seed)[:, :, :3]
    quaternion = quaternion_from_matrix(rotation)
    assert bool((quaternion[:, 0] >= 0).all())
    torch.testing.assert_close(matrix_from_quaternion(quaternion), rotation)


def test_quaternion_order_is_wxyz():
    half = math.sqrt(0.5)
    about_z = torch.tensor([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
    torch.testing.assert_close(quaternion_from_matrix(about_z), torch.tensor([half, 0, 0, half]))
    for axis in range(3):  # Half turns, where w = 0.
        rotation = torch.diag(2 * torch.eye(3)[axis] - 1)
        torch.testing.assert_close(quaternion_from_matrix(rotation)[1:], torch.eye(3)[axis])


@settings(max_examples=20, deadline=None)
@given(seed=seeds, t=st.floats(0, 1))
def test_slerp_turns_at_constant_speed(seed, t):
    a, b = quaternion_from_matrix(random_poses(2, seed)[:, :, :3])
    middle = slerp(a, b, torch.tensor(t).double())
    whole = 2 * math.acos(min(1.0, abs(float(a @ b))))
    part = 2 * math.acos(min(1.0, abs(float(a @ middle))))
    assert part == pytest.approx(t * whole, abs=1e-6)


ORIGIN = torch.tensor([[0.1, -0.2, 0.05]]).double()
DIRECTION = torch.tensor([[0.3, 0.1, -1.0]]).double()


def test_golden_ndc():
    o, d = ndc_rays(ORIGIN, DIRECTION, 407, 407, 504, 378)
    expected_o = torch.tensor([[0.670258, -0.204577, -1]]).double()
    expected_d = torch.tensor([[-0.185734, 0.419921, 2]]).double()
    torch.testing.assert_close(o, expected_o, rtol=0, atol=1e-6)
    torch.testing.assert_close(d, expected_d, rtol=0, atol=1e-6)


def test_ndc_of_our_axes_is_the_same():
    flip = torch.tensor([1.0, -1, -1]).double()
    ours = ndc_rays_opencv(ORIGIN * flip, DIRECTION * flip, 407, 407, 504, 378)
    for a, b in zip(ours, ndc_rays(ORIGIN, 5 * DIRECTION, 407, 407, 504, 378), strict=True):
        torch.testing.assert_close(a, b)


def test_ndc_parameter_and_distance_name_the_same_point():
    flip = torch.tensor([1.0, -1, -1]).double()
    origin = ORIGIN * flip
    direction = torch.nn.functional.normalize(DIRECTION * flip, dim=-1)
    o, d = ndc_rays_opencv(origin, direction, 407, 407, 504, 378)
    t = torch.tensor([[0.0, 0.25, 0.9]]).double()
    points = origin + distance_from_ndc(t, origin, direction)[0, :, None] * direction
    x, y, z = points.unbind(-1)
    # The perspective divide itself, in our axes: y and z are opposite to OpenGL's.
    expected = torch.stack([2 * 407 / 504 * x / z, -2 * 407 / 378 * y / z, 1 - 2 / z], dim=-1)
    torch.testing.assert_close(o + t[0, :, None] * d, expected)

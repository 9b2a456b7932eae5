# SPDX-License-Identifier: Apache-2.0
"""Paths look where they promise to and pass through what they are given."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from diorama.cameras import (
    Cameras,
    average_pose,
    blender_circle,
    flip_yz,
    interpolate,
    interpolate_cameras,
    look_at,
    orbit,
    spherify,
    spiral,
    spiral_focus_depth,
)
from tests.cameras.strategies import random_poses, seeds
from tests.cameras.test_poses import assert_rigid


@settings(max_examples=25, deadline=None)
@given(seed=seeds, radius=st.floats(0.1, 10), elevation=st.floats(-90, 90), num=st.integers(1, 12))
def test_orbit_looks_at_its_centre(seed, radius, elevation, num):
    generator = torch.Generator().manual_seed(seed)
    center, up = torch.randn(2, 3, generator=generator, dtype=torch.float64)
    poses = orbit(center, radius, elevation, num, up)
    assert poses.shape == (num, 3, 4)
    assert_rigid(poses)
    offset = center - poses[:, :, 3]
    torch.testing.assert_close(offset, radius * poses[:, :, 2])
    height = -(offset @ up) / up.norm()
    expected = torch.full_like(height, radius * math.sin(math.radians(elevation)))
    torch.testing.assert_close(height, expected, rtol=0, atol=1e-9)
    assert bool((poses[:, :, 1] @ up <= 1e-9).all())


def test_orbit_is_counter_clockwise_and_does_not_repeat_its_start():
    centers = orbit((0, 0, 0), 2.0, 0.0, 4)[:, :, 3]
    torch.testing.assert_close(centers[2], -centers[0])
    turn = torch.linalg.cross(centers[0], centers[1])
    torch.testing.assert_close(turn, torch.tensor([0.0, 0, 4]))


def test_blender_circle():
    poses = blender_circle()
    assert len(poses) == 40
    assert_rigid(poses)
    torch.testing.assert_close(poses[0, :, 3], torch.tensor([0, -3.4641016, 2]), rtol=0, atol=1e-6)
    torch.testing.assert_close(poses[:, :, 3], -4 * poses[:, :, 2])


def grid_poses():
    eyes = [(x, y, 0.1 * x * y) for x in (-1.0, 0, 1.0) for y in (-0.5, 0, 0.5)]
    poses = [look_at(eye, (eye[0] * 0.3, eye[1] * 0.3, 8), (0, -1, 0)) for eye in eyes]
    return torch.stack(poses).double()


def test_spiral_is_llffs():
    poses = grid_poses()
    found = flip_yz(spiral(poses, 5.0))
    assert found.shape == (120, 3, 4)
    # The published loop, in OpenGL axes, with the average pose as its camera.
    average = flip_yz(average_pose(poses))
    local = (poses[:, :, 3] - average[:, 3]) @ average[:, :3]
    radii = torch.quantile(local.abs(), 0.9, dim=0)
    up = flip_yz(poses)[:, :, 1].sum(0)
    for k in (0, 1, 37, 119):
        angle = 2 * math.pi * 2 * k / 120
        offset = torch.tensor([math.cos(angle), -math.sin(angle), -math.sin(angle * 0.5)]) * radii
        c = average[:, :3] @ offset + average[:, 3]
        z = torch.nn.functional.normalize(c - (average[:, 3] - 5.0 * average[:, 2]), dim=0)
        x = torch.nn.functional.normalize(torch.linalg.cross(up, z), dim=0)
        expected = torch.stack([x, torch.linalg.cross(z, x), z, c], dim=-1)
        torch.testing.assert_close(found[k], expected)


def test_spiral_focus_depth():
    assert spiral_focus_depth(2, 10) == pytest.approx(1 / (0.25 / 1.8 + 0.75 / 50))


def test_spherify_brings_an_inward_capture_to_the_unit_sphere():
    target = torch.tensor([3.0, -2.0, 7.0]).double()
    poses = orbit(target, 2.5, 35.0, 9, up=(0.2, 0.1, 1.0)).double()
    similarity, circle = spherify(poses)
    moved = similarity.apply_to_poses(poses)
    torch.testing.assert_close(similarity.apply(target), torch.zeros(3).double(), rtol=0, atol=1e-6)
    torch.testing.assert_close(moved[:, :, 3].norm(dim=-1), torch.ones(9).double())
    assert circle.shape == (120, 3, 4)
    height = math.sin(math.radians(35))
    torch.testing.assert_close(moved[:, 2, 3], torch.full((9,), height).double(), rtol=0, atol=1e-6)
    torch.testing.assert_close(circle[:, 2, 3], torch.full((120,), height).double())
    torch.testing.assert_close(circle[:, :, 3], -circle[:, :, 2])


def test_spherify_of_cameras_all_around_and_of_none_apart():
    ring = torch.cat([orbit((0, 0, 0), 1.0, 20.0, 6), orbit((0, 0, 0), 1.0, -20.0, 6)])
    assert_rigid(spherify(ring).similarity.rotation)
    with pytest.raises(ValueError, match="apart from the point"):
        spherify(torch.stack([look_at((0, 0, 0), p) for p in ((1, 0, 0), (0, 1, 0))]))


@settings(max_examples=20, deadline=None)
@given(seed=seeds, count=st.integers(1, 6), per=st.integers(1, 5), loop=st.booleans())
def test_interpolation_passes_through_the_keyframes(seed, count, per, loop):
    keys = random_poses(count, seed)
    num = count * per if loop else (count - 1) * per + 1
    poses = interpolate(keys, num, loop)
    assert poses.shape == (num, 3, 4)
    assert_rigid(poses)
    torch.testing.assert_close(poses[::per][:count], keys, rtol=0, atol=1e-6)


@pytest.mark.parametrize("loop", [False, True])
def test_interpolation_is_smooth(loop):
    keys = random_poses(5, 4)
    poses = interpolate(keys, 5 * 400 if loop else 4 * 400 + 1, loop)
    if loop:
        poses = torch.cat([poses, poses[:2]])
    speed = poses[1:] - poses[:-1]
    change = (speed[1:] - speed[:-1]).norm(dim=(1, 2))
    # A kink would change the speed at a keyframe by its own size, not by a small part of it.
    assert float(change.max()) < 0.03 * float(speed.norm(dim=(1, 2)).max())


def test_two_keyframes_give_a_straight_line_and_a_plain_turn():
    keys = random_poses(2, 9)
    poses = interpolate(keys, 5)
    torch.testing.assert_close(poses[2, :, 3], keys[:, :, 3].mean(0))
    first, second = keys[0, :, :3].T @ poses[1, :, :3], poses[3, :, :3].T @ keys[1, :, :3]
    torch.testing.assert_close(first, second)


def test_interpolating_cameras_zooms_linearly():
    first, second = grid_poses()[:2]
    keys = Cameras.cat([Cameras.from_fov(first, 40, 64, 48), Cameras.from_fov(second, 60, 64, 48)])
    path = interpolate_cameras(keys, 5)
    torch.testing.assert_close(path.intrinsics[2], keys.intrinsics.mean(0))
    with pytest.raises(ValueError, match="keyframe and num"):
        interpolate(grid_poses()[:0], 3)
    with pytest.raises(ValueError, match="share one camera model"):
        interpolate_cameras(keys[[]], 3)

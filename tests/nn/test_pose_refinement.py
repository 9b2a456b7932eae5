# SPDX-License-Identifier: Apache-2.0
"""Pose corrections: rotations are rotations, zero means none, and gradients find a shift."""

import torch

from diorama.cameras import Cameras, Rays
from diorama.nn.pose_refinement import PoseRefinement, rotation_matrices


def some_cameras(count: int) -> Cameras:
    """Cameras in a row, one unit apart, that look along +z."""
    poses = torch.eye(3, 4).repeat(count, 1, 1)
    poses[:, 0, 3] = torch.arange(float(count))
    return Cameras.pinhole(poses, 20.0, 20.0, 4.0, 3.0, 8, 6)


def refinement(count: int) -> PoseRefinement:
    return PoseRefinement(some_cameras(count), tuple(range(count)))


def some_rays(count: int = 40) -> Rays:
    directions = torch.nn.functional.normalize(torch.randn(count, 3), dim=1)
    ones = torch.ones(count)
    return Rays(torch.randn(count, 3), directions, ones, ones, torch.zeros(count).long())


def test_rotations_agree_with_the_matrix_exponential():
    vectors = torch.cat((torch.randn(20, 3), 1e-6 * torch.randn(20, 3), torch.zeros(1, 3))).double()
    x, y, z = vectors.unbind(1)
    zero = torch.zeros_like(x)
    skew = torch.stack((zero, -z, y, z, zero, -x, -y, x, zero), 1).view(-1, 3, 3)
    torch.testing.assert_close(rotation_matrices(vectors), torch.linalg.matrix_exp(skew))


def test_the_gradient_is_right_at_zero_and_away_from_it():
    vectors = torch.tensor([[0.0, 0, 0], [0.3, -1.0, 2.0], [1e-6, 0, 1e-6]], dtype=torch.float64)
    assert torch.autograd.gradcheck(rotation_matrices, vectors.requires_grad_())


def test_no_correction_changes_nothing_and_costs_nothing():
    poses, rays = refinement(3), some_rays()
    corrected = poses(rays, torch.arange(40) % 3)
    torch.testing.assert_close(corrected.origins, rays.origins)
    torch.testing.assert_close(corrected.directions, rays.directions)
    poses.penalty().backward()
    assert poses.penalty().item() < 1e-6
    assert torch.isfinite(poses.corrections.grad).all()


def test_each_image_has_its_own_correction():
    poses, rays = refinement(2), some_rays()
    with torch.no_grad():
        poses.corrections[1] = torch.tensor([1.0, 2.0, 3.0, 0.0, 0.0, torch.pi / 2])
    corrected = poses(rays, torch.tensor([0, 1] * 20))
    moved = corrected.origins - rays.origins
    torch.testing.assert_close(moved[1::2], torch.tensor([[1.0, 2.0, 3.0]]).expand(20, 3))
    assert moved[::2].abs().max() == 0
    x, y, z = rays.directions[1::2].unbind(1)  # a quarter turn about z: x to y
    torch.testing.assert_close(corrected.directions[1::2], torch.stack((-y, x, z), 1))


CORRECTION = torch.tensor([0.1, -0.2, 0.3, 0.02, -0.03, 0.05])


def test_the_corrected_camera_of_an_image_has_the_corrected_rays():
    poses, camera = refinement(3), some_cameras(3)[1]
    with torch.no_grad():
        poses.corrections[1] = CORRECTION
    rays = camera.image_rays()
    expected = poses(rays, torch.ones(len(rays), dtype=torch.int64))
    for moved in (poses.of_image(camera, 1), poses.at(camera)):
        torch.testing.assert_close(moved.image_rays().origins, expected.origins)
        torch.testing.assert_close(moved.image_rays().directions, expected.directions)


def test_another_view_moves_with_the_training_cameras_around_it_and_no_others():
    cameras = some_cameras(5)
    poses = PoseRefinement(cameras, (0, 1, 3, 4))
    with torch.no_grad():
        poses.corrections[[1, 3]] = CORRECTION
        poses.corrections[2] = 100.0  # held out: nothing was learned here
    between = (
        poses.at(cameras[2]).world_from_camera[0, :, 3] - cameras[2].world_from_camera[0, :, 3]
    )
    # Cameras 0 and 4 are twice as far as 1 and 3, which makes their weight a sixteenth.
    torch.testing.assert_close(between, CORRECTION[:3] * 16 / 17, rtol=1e-5, atol=1e-6)
    at_first = poses.at(cameras[0]).world_from_camera
    torch.testing.assert_close(at_first, cameras[0].world_from_camera, rtol=0, atol=1e-6)

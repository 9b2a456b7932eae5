# SPDX-License-Identifier: Apache-2.0
"""Scene plots: everything is in the picture, and degenerate scenes can be drawn too."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from diorama.cameras import Cameras
from diorama.data.scene import PointCloud
from diorama.export.plot_view import frustums, plot_view, up_and_ahead
from diorama.export.scene_plot import COLORS, scene_plot
from tests.data.made_scene import made_scene


@pytest.fixture
def scene(tmp_path):
    return made_scene(tmp_path, [(24, 18)] * 12, num_test=3)


def near(image: torch.Tensor, color: tuple[int, int, int]) -> int:
    return int(((image.int() - torch.tensor(color)).abs().amax(-1) < 40).sum())


@pytest.mark.parametrize("stand", ["corner", "top"])
def test_cameras_of_each_split_are_seen(scene, stand):
    image = scene_plot(scene, (400, 300), stand)
    assert image.shape == (300, 400, 3)
    assert near(image, COLORS["train"]) > near(image, COLORS["test"]) > 20


@pytest.mark.parametrize("stand", ["corner", "top"])
def test_cameras_and_sphere_lie_within_the_frame(scene, stand):
    corners = frustums(scene)
    view = plot_view(scene, corners, (400, 300), stand)
    np.testing.assert_allclose(view.axes @ view.axes.T, np.eye(3), atol=1e-9)
    assert np.linalg.det(view.axes) > 0
    sphere = np.random.default_rng(0).normal(size=(100, 3))
    sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
    for points in (corners.reshape(-1, 3), sphere):
        xy = view(points)[..., :2]
        assert (xy > 0).all()
        assert (xy < [400, 300]).all()


def test_up_is_up(scene):
    up, ahead = up_and_ahead(scene)
    assert up.tolist() == [0, 0, 1]
    assert abs(ahead @ up) < 1e-9
    view = plot_view(scene, frustums(scene), (400, 300), "corner")
    assert view(up)[1] < view(0 * up)[1]


def test_points_are_drawn_in_their_colour(scene):
    points = PointCloud(
        torch.rand(400, 3) - 0.5, torch.tensor([[200, 20, 200]]).to(torch.uint8).expand(400, 3)
    )
    with_points = scene_plot(replace(scene, points=points), (400, 300))
    assert (
        near(with_points, (200, 20, 200)) > 50 > near(scene_plot(scene, (400, 300)), (200, 20, 200))
    )


def test_far_and_near_planes_of_forward_facing_scenes_are_drawn(scene):
    plain, planes = (
        scene_plot(replace(scene, kind=k), (400, 300)) for k in ("object", "forward-facing")
    )
    assert not torch.equal(plain, planes)


def test_degenerate_scenes_are_drawn(tmp_path):
    one = made_scene(tmp_path, [(4, 4)], num_test=0)
    assert scene_plot(one, (200, 150)).shape == (150, 200, 3)
    empty = PointCloud(torch.zeros(0, 3), torch.zeros(0, 3, dtype=torch.uint8))
    huge = replace(one.bounds, radius=1e6, aabb_max=(1e6, 1e6, 1e6))
    assert scene_plot(replace(one, points=empty, bounds=huge), (200, 150)).shape == (150, 200, 3)
    poses = torch.eye(4)[None, :3].repeat(3, 1, 1)
    panoramas = replace(
        made_scene(tmp_path, [(8, 4)] * 3), cameras=Cameras.equirectangular(poses, 8, 4)
    )
    assert scene_plot(panoramas, (200, 150)).shape == (150, 200, 3)

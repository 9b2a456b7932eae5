# SPDX-License-Identifier: Apache-2.0
"""A splat file as a scene: where its middle is, which way is up, how it is drawn."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from diorama.errors import UserError
from diorama.export.camera_path import camera_path
from diorama.methods.splat.still import StillSplats
from diorama.methods.splat.still_scene import UPS, scene_of_splats, weighted_box
from tests.export.test_splats import made_splats

FILE = Path("made.ply")


def ball(count: int = 2000):
    """Splats in the unit ball around (1, 2, 3), opaque and small."""
    splats = made_splats(count, degree=0)
    offset = splats.means - torch.tensor([1.0, 2.0, 3.0])
    offset = offset / offset.norm(dim=1, keepdim=True).clamp(min=1.0)
    return replace(
        splats,
        means=offset + torch.tensor([1.0, 2.0, 3.0]),
        opacity_logits=torch.full((count,), 3.0),
        log_scales=torch.full((count, 3), -3.0),
    )


def test_weighted_box_is_the_quantile_box_of_equal_weights():
    points = torch.rand(1001, 3)
    lower, upper = weighted_box(points, torch.ones(1001), 0.1)
    torch.testing.assert_close(lower, points.quantile(0.1, dim=0), atol=3e-3, rtol=0)
    torch.testing.assert_close(upper, points.quantile(0.9, dim=0), atol=3e-3, rtol=0)


def test_weighted_box_ignores_what_has_no_weight():
    points = torch.cat([torch.rand(50, 3), torch.full((200, 3), 1000.0)])
    weights = torch.cat([torch.ones(50), torch.full((200,), 1e-6)])
    assert float(weighted_box(points, weights, 0.02)[1].max()) <= 1


def test_a_few_floaters_do_not_move_the_scene():
    splats = ball()
    far = replace(splats.select(slice(0, 10)), means=torch.full((10, 3), 1e4))
    bounds = scene_of_splats(splats.cat([splats, far]), FILE).bounds
    assert bounds.center == pytest.approx((1, 2, 3), abs=0.15)
    assert 0.7 < bounds.radius < 1.1


@pytest.mark.parametrize("up", UPS)
def test_cameras_stand_upright_around_the_middle(up):
    scene = scene_of_splats(ball(), FILE, up)
    poses, center = scene.cameras.world_from_camera, torch.tensor(scene.bounds.center)
    axis = torch.tensor(UPS[up])
    assert bool((-poses[:, :, 1] @ axis > 0.9).all())
    assert bool(((poses[:, :, 3] - center) @ axis > 0).all())
    pixels = scene.cameras.project(center.expand(len(poses), 1, 3))[0]
    torch.testing.assert_close(pixels, torch.tensor([400.0, 300.0]).expand_as(pixels))
    assert scene.cameras.size.unique(dim=0).tolist() == [[800, 600]]


def test_everything_is_in_the_picture():
    splats, scene = ball(), scene_of_splats(ball(), FILE)
    pixels = scene.cameras.project(splats.means.expand(len(scene.cameras), -1, -1))[0]
    inside = ((pixels > 0) & (pixels < torch.tensor([800.0, 600.0]))).all(dim=-1)
    assert float(inside.float().mean()) > 0.99
    bounds = scene.bounds
    assert 0 < bounds.near < bounds.far


@pytest.mark.parametrize("name", ["auto", "orbit", "tour", "train"])
def test_paths_work(name):
    path = camera_path(scene_of_splats(ball(), FILE, "z"), name, 4)
    heights = path.cameras.world_from_camera[:, 2, 3]
    assert len(heights) == (8 if name == "train" else 4)
    assert float(heights.max() - heights.min()) < 0.2


def test_a_spiral_needs_photographs():
    with pytest.raises(UserError, match="--path spiral: the cameras look from all sides"):
        camera_path(scene_of_splats(ball(), FILE), "spiral", 4)


def test_one_splat_is_a_scene():
    bounds = scene_of_splats(ball(1), FILE).bounds
    assert 0 < bounds.radius < 1
    assert 0 < bounds.near < bounds.far


def test_none_is_not():
    with pytest.raises(UserError, match=r"made\.ply: it holds no splats"):
        scene_of_splats(made_splats(0), FILE)
    with pytest.raises(UserError, match="--up w: there are x, y, z"):
        scene_of_splats(ball(), FILE, "w")


def test_a_still_model_draws_its_splats_in_the_middle():
    splats = ball()
    scene = scene_of_splats(splats, FILE)
    model = StillSplats(splats, scene)
    assert not any(parameter.requires_grad for parameter in model.parameters())
    view = model.render(scene.cameras[0].rescaled(0.1))
    assert view.rgb.shape == (60, 80, 3)
    assert float(view.alpha[30, 40]) > 0.9
    assert float(view.alpha[0, 0]) == 0
    assert bool((view.rgb[0, 0] == 0).all())
    distance = float(
        (scene.cameras.world_from_camera[0, :, 3] - torch.tensor(scene.bounds.center)).norm()
    )
    assert distance - 1.2 < float(view.depth[30, 40]) < distance
    assert torch.equal(model.splats().means, splats.means)

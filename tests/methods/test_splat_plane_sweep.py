# SPDX-License-Identifier: Apache-2.0
"""Points from photographs alone: they must lie on the surfaces, and tell when they cannot."""

from dataclasses import replace

import pytest
import torch

from diorama.config import DataConfig
from diorama.data.load import load_scene
from diorama.data.scene import Scene
from diorama.errors import UserError
from diorama.methods.splat.config import SplatConfig
from diorama.methods.splat.initialize import initial_splats
from diorama.methods.splat.plane_sweep import sweep_points
from diorama.scenes import load_procedural, make_scene


@pytest.fixture(scope="module")
def scene(tmp_path_factory) -> Scene:
    folder = tmp_path_factory.mktemp("scene") / "tabletop"
    make_scene("tabletop", folder, size=64, num_train=20, num_val=1, num_test=1)
    return load_scene(DataConfig(path=folder))


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def test_swept_points_lie_on_the_surface(scene):
    xyz, rgb = sweep_points(scene, 2000, generator())
    assert len(xyz) > 500
    assert rgb.shape == xyz.shape
    truth = load_procedural("tabletop")
    user = scene.scene_from_user.inverse().apply(xyz.double()).float()
    distance = truth.sdf(user).abs()
    assert distance.median() < 0.03, "a pixel is 0.06 wide there, and the scene about 2"
    assert (distance < 0.1).float().mean() > 0.9


def test_a_capture_without_points_or_masks_begins_with_the_sweep(scene):
    bare = replace(scene, kind="unbounded", points=None)
    splats = initial_splats(SplatConfig(init_count=600), bare, generator())
    xyz, _ = sweep_points(bare, 600, generator())
    assert len(splats) == 600
    assert torch.equal(splats.means, xyz.float())


def test_too_few_agreeing_points_fall_back_to_random_or_are_told(scene):
    alone = replace(scene, kind="unbounded", points=None, splits={**scene.splits, "train": (0,)})
    config = SplatConfig(init_count=600)
    assert len(initial_splats(config, alone, generator())) == 600
    with pytest.raises(UserError, match="agree on only 0 points"):
        initial_splats(replace(config, init="sweep"), alone, generator())

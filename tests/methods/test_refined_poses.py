# SPDX-License-Identifier: Apache-2.0
"""Pose corrections in the methods that learn them: pictures follow the training cameras."""

from dataclasses import replace

import pytest
import torch

from diorama.config import DataConfig, ModelConfig, RayDataConfig
from diorama.data.load import load_scene
from diorama.data.ray_manager import RayDataManager
from diorama.data.scene import Scene
from diorama.methods.nerfacto.config import NerfactoConfig
from diorama.methods.nerfacto.model import POSES_EVERY, NerfactoModel
from diorama.methods.ngp.config import NgpConfig
from diorama.methods.ngp.model import NgpModel
from diorama.methods.registry import method_config
from diorama.methods.splat.config import SplatConfig
from diorama.methods.splat.model import SplatModel
from diorama.model import Model
from diorama.nn.pose_refinement import PoseRefinement
from diorama.scenes import make_scene

NERFACTO = NerfactoConfig(
    levels=4, log2_table=10, max_resolution=64, width=16, samples=8, proposal_samples=(24, 12)
)
NGP = NgpConfig(levels=4, log2_table=10, max_resolution=64, width=16, grid_resolution=16)
SPLAT = SplatConfig(init_count=200, max_gaussians=400)
MODELS = [(NerfactoModel, NERFACTO), (NgpModel, NGP), (SplatModel, SPLAT)]


@pytest.fixture(scope="module")
def scene(tmp_path_factory) -> Scene:
    folder = tmp_path_factory.mktemp("scene") / "spheres"
    make_scene("spheres", folder, size=24, num_train=4, num_val=1, num_test=1)
    return load_scene(DataConfig(path=folder))


def model_of(kind: type[Model], config: ModelConfig, scene: Scene) -> Model:
    torch.manual_seed(0)
    return kind(config, scene)


@pytest.mark.parametrize(("kind", "config"), MODELS)
def test_a_picture_is_taken_where_the_cameras_around_it_turned_out_to_be(kind, config, scene):
    refined = model_of(kind, replace(config, refine_poses=True), scene)
    plain = model_of(kind, config, scene)
    plain.load_state_dict(refined.state_dict(), strict=False)
    assert isinstance(refined.poses, PoseRefinement)
    with torch.no_grad():  # as if all training cameras had been found 0.3 to the side
        refined.poses.corrections[list(scene.splits["train"]), 0] = 0.3
    camera = scene.cameras[scene.splits["test"][0]]
    moved = replace(camera, world_from_camera=camera.world_from_camera.clone())
    moved.world_from_camera[:, 0, 3] += 0.3
    seen, expected = refined.render(camera), plain.render(moved)
    torch.testing.assert_close(seen.rgb, expected.rgb, rtol=1e-4, atol=1e-4)
    assert (seen.rgb - plain.render(camera).rgb).abs().max() > 1e-3


def test_the_preset_of_nerfacto_corrects_the_poses_of_captures_only(scene):
    config = replace(NERFACTO, refine_poses=method_config("nerfacto").model.refine_poses)
    place = replace(scene, kind="unbounded", has_alpha=False, background=None)
    assert model_of(NerfactoModel, config, scene).poses is None
    assert isinstance(model_of(NerfactoModel, config, place).poses, PoseRefinement)


def test_nerfacto_corrects_poses_in_some_of_its_steps(scene):
    config = replace(NERFACTO, refine_poses=True, initial_density=1.0)
    model = model_of(NerfactoModel, config, scene)
    batch = RayDataManager(RayDataConfig(path=scene.root, rays=64), scene).next_train(0)
    learned = []
    for step in range(2 * POSES_EVERY):
        model.zero_grad()
        losses = model.get_loss_dict(model(batch, step, torch.Generator()), batch)
        sum(losses.values()).backward()
        assert isinstance(model.poses, PoseRefinement)
        learned.append(model.poses.corrections.grad is not None)
        assert ("poses" in losses) == learned[-1]
    assert [step for step, is_learned in enumerate(learned) if is_learned] == [0, POSES_EVERY]

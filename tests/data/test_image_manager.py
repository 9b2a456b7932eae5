# SPDX-License-Identifier: Apache-2.0
"""Whole images as batches: every image once a round, bounded memory, no distortion."""

from dataclasses import replace

import pytest
import torch

from diorama.cameras import CameraModel
from diorama.config import DataConfig, ImageDataConfig
from diorama.data.image_manager import ImageDataManager, load_image
from diorama.data.load import load_scene
from diorama.data.scene import Scene
from diorama.errors import UserError
from diorama.scenes import make_scene


@pytest.fixture(scope="module")
def scene(tmp_path_factory) -> Scene:
    folder = tmp_path_factory.mktemp("scene") / "spheres"
    make_scene("spheres", folder, size=40, num_train=7, num_val=1, num_test=2)
    return load_scene(DataConfig(path=folder))


def manager_of(scene: Scene, cache_gb: float = 1.0, seed: int = 0) -> ImageDataManager:
    return ImageDataManager(ImageDataConfig(path=scene.root, cache_gb=cache_gb), scene, seed)


def test_each_round_has_every_training_image_once(scene):
    manager = manager_of(scene)
    rounds = [[manager.image_at(7 * turn + i) for i in range(7)] for turn in range(4)]
    assert all(sorted(order) == sorted(scene.splits["train"]) for order in rounds)
    assert len({tuple(order) for order in rounds}) > 1
    assert rounds[0] != [manager_of(scene, seed=1).image_at(i) for i in range(7)]


def test_a_batch_depends_on_the_step_alone(scene):
    one, other = manager_of(scene), manager_of(scene, cache_gb=1e-9)
    one.next_train(3)
    for step in (11, 2, 5):
        a, b = one.next_train(step), other.next_train(step)
        assert a.image_index == b.image_index
        assert torch.equal(a.rgba, b.rgba)
    assert one.num_rays == 40 * 40


def test_the_cache_is_bounded(scene):
    size = 40 * 40 * 4
    manager = manager_of(scene, cache_gb=2.5 * size / 1e9)
    for step in range(20):
        manager.next_train(step)
        assert manager.num_cached_bytes <= 3 * size  # one more may be on its way


def test_distorted_images_are_seen_through_an_ideal_lens(scene):
    distortion = torch.zeros(len(scene.frames), 9)
    distortion[:, 0] = 0.1
    bent = replace(scene, cameras=replace(scene.cameras, distortion=distortion))
    batch = load_image(bent, 0)
    assert not batch.camera.distortion.any()
    assert batch.rgba.shape == (40, 40, 4)
    assert batch.weights is None  # the ideal image lies wholly within the photograph
    # A point of the world falls on the same colour in both.
    point = torch.tensor([[0.05, 0.02, 0.0]])
    (x, y), _, _ = (part[0] for part in bent.cameras[0].project(point))
    (u, v), _, _ = (part[0] for part in batch.camera.project(point))
    original = load_image(scene, 0).rgba[int(y), int(x)].float()
    torch.testing.assert_close(batch.rgba[int(v), int(u)].float(), original, atol=40.0, rtol=0)


def test_fisheyes_become_ideal_ones_of_the_same_focal_length(scene):
    distortion = torch.zeros(len(scene.frames), 9)
    distortion[:, 0] = -0.2
    model = torch.full_like(scene.cameras.model, int(CameraModel.FISHEYE))
    round_ = replace(scene, cameras=replace(scene.cameras, distortion=distortion, model=model))
    batch = load_image(round_, 0)
    assert int(batch.camera.model[0]) == int(CameraModel.FISHEYE)
    assert not batch.camera.distortion.any()
    torch.testing.assert_close(batch.camera.intrinsics, scene.cameras.intrinsics[:1])


def test_what_cannot_be_is_said(scene):
    with pytest.raises(UserError, match=r"--data\.cache-gb must be above 0"):
        manager_of(scene, cache_gb=0.0)
    empty = replace(scene, splits={**scene.splits, "train": ()})
    with pytest.raises(UserError, match="no image is left for training"):
        manager_of(empty)
    model = torch.full_like(scene.cameras.model, int(CameraModel.EQUIRECTANGULAR))
    panoramas = replace(scene, cameras=replace(scene.cameras, model=model))
    with pytest.raises(UserError, match="panoramas"):
        manager_of(panoramas)


def test_state_goes_on(scene):
    manager = manager_of(scene, seed=3)
    manager.load_state_dict(manager_of(scene, seed=3).state_dict())
    with pytest.raises(ValueError, match="seed"):
        manager.load_state_dict({"seed": 4})

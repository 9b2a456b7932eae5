# SPDX-License-Identifier: Apache-2.0
"""The image store: sizes, what masks mean, and the memory bound."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from diorama.data.image_store import GIGABYTE, ImageStore
from diorama.data.images import resize_area
from diorama.errors import UserError
from tests.data.made_scene import coded_image, made_scene, with_depths, with_masks


def test_images_come_at_the_cameras_size(tmp_path):
    scene = made_scene(tmp_path, [(12, 8), (6, 4)])
    store = ImageStore(scene, 1.0)
    np.testing.assert_array_equal(store.rgba(0), coded_image(0, 12, 8))
    half = replace(scene, cameras=scene.cameras.rescaled(0.5))
    expected = resize_area(torch.from_numpy(coded_image(0, 12, 8)), 6, 4)
    assert torch.equal(ImageStore(half, 1.0).rgba(0), expected)


def test_images_without_alpha_are_opaque(tmp_path):
    store = ImageStore(made_scene(tmp_path, [(12, 8), (6, 4)], alpha=False), 1.0)
    assert store.rgba(1).shape == (4, 6, 4)
    assert bool((store.rgba(1)[..., 3] == 255).all())
    assert store.loss_mask(1) is None
    assert store.depth(1) is None


def test_an_alpha_mask_multiplies_alpha_and_an_ignore_mask_does_not(tmp_path):
    half = np.zeros((4, 6), np.uint8)
    half[:, 3:] = 1
    for alpha in (True, False):
        scene = made_scene(tmp_path, [(6, 4), (6, 4)], alpha=alpha)
        as_alpha = ImageStore(with_masks(scene, [half, None], is_alpha=True), 1.0)
        plain = ImageStore(scene, 1.0).rgba(0)[..., 3].numpy()
        np.testing.assert_array_equal(as_alpha.rgba(0)[..., 3], plain * half)
        assert as_alpha.loss_mask(0) is None
        ignored = ImageStore(with_masks(scene, [half, None], is_alpha=False), 1.0)
        np.testing.assert_array_equal(ignored.rgba(0)[..., 3], plain)
        np.testing.assert_array_equal(ignored.loss_mask(0), half * 255)
        assert ignored.loss_mask(1) is None


def test_masks_and_depths_follow_the_cameras_size(tmp_path):
    scene = made_scene(tmp_path, [(6, 4), (6, 4)])
    scene = with_masks(scene, [np.full((8, 12), 255, np.uint8), None], is_alpha=False)
    scene = with_depths(scene, [np.arange(24.0).reshape(4, 6), None], unit=0.5)
    store = ImageStore(replace(scene, cameras=scene.cameras.rescaled(0.5)), 1.0)
    mask, depth = store.loss_mask(0), store.depth(0)
    assert mask is not None
    assert depth is not None
    assert mask.shape == depth.shape == (2, 3)
    torch.testing.assert_close(depth, torch.tensor([[7.0, 9, 11], [19, 21, 23]]) * 0.5)


def test_memory_stays_within_the_bound_and_the_oldest_goes_first(tmp_path):
    scene = made_scene(tmp_path, [(10, 10)] * 8)
    store = ImageStore(scene, 3 * 400 / GIGABYTE)
    for i in range(8):
        store.rgba(i)
        assert store.num_bytes <= 1200
    for frame in scene.frames:
        frame.image_path.unlink()
    for i in (5, 6, 7):
        np.testing.assert_array_equal(store.rgba(i), coded_image(i, 10, 10))
    with pytest.raises(UserError, match=r"000\.png: no such image file"):
        store.rgba(0)


def test_an_image_larger_than_the_cache_is_given_but_not_kept(tmp_path):
    store = ImageStore(made_scene(tmp_path, [(10, 10)] * 2), 100 / GIGABYTE)
    assert store.rgba(0).shape == (10, 10, 4)
    assert store.num_bytes == 0
    with pytest.raises(ValueError, match="cache_gb"):
        ImageStore(store.scene, -1.0)


def test_a_file_that_changed_size_is_named(tmp_path):
    scene = made_scene(tmp_path, [(10, 10)] * 2)
    Image.new("RGB", (5, 5)).save(scene.frames[0].image_path)
    with pytest.raises(UserError, match=r"000\.png: the image's size changed"):
        ImageStore(scene, 1.0).rgba(0)

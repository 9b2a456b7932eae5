# SPDX-License-Identifier: Apache-2.0
"""Training batches: right pixels, right rays, exact resume, fair use and bounded memory."""

import time
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from diorama.config import RayDataConfig
from diorama.data import resident_window
from diorama.data.drawn_pixels import PATCH_SIDE, PATCH_SIZE, PATCH_STRIDE, REACH, TRIES
from diorama.data.image_store import GIGABYTE
from diorama.data.ray_manager import CAPTURE_PATCHES, RayBatch, RayDataManager
from diorama.data.resident_window import STEPS_PER_IMAGE
from diorama.data.scene import Scene
from diorama.errors import UserError
from tests.data.made_scene import made_scene, with_depths, with_masks

MIXED = [(12, 8), (5, 9), (1, 1), (30, 2), (7, 7)]


def same(a: RayBatch, b: RayBatch) -> bool:
    return all(
        torch.equal(x, y)
        for x, y in [
            (a.pixels, b.pixels),
            (a.xy, b.xy),
            (a.image_index, b.image_index),
            (a.weights, b.weights),
            (a.rays.directions, b.rays.directions),
            (a.rays.origins, b.rays.origins),
        ]
    )


@pytest.mark.parametrize("sampling", ["all-images", "per-image"])
@pytest.mark.parametrize("cache", [1.0, 1000 / GIGABYTE])
@pytest.mark.parametrize(("detail", "patches"), [(0.0, 0.0), (0.4, 0.3)])
def test_pixels_belong_to_their_images_and_rays(tmp_path, sampling, cache, detail, patches):
    scene = made_scene(tmp_path, MIXED)
    config = RayDataConfig(
        rays=500, sampling=sampling, cache_gb=cache, detail=detail, patches=patches
    )
    manager = RayDataManager(config, scene, seed=3)
    for step in range(0, 200, 9):
        batch = manager.next_train(step)
        column, row = (batch.xy - 0.5).T
        code = torch.stack([batch.image_index, column, row, batch.image_index + column + row], -1)
        torch.testing.assert_close(batch.pixels * 255, code.float())
        size = scene.cameras.size[batch.image_index]
        assert bool(((batch.xy > 0) & (batch.xy < size)).all())
        xy, _, valid = scene.cameras[0].project(
            batch.rays[batch.image_index == 0].origins
            + 3 * batch.rays[batch.image_index == 0].directions
        )
        assert bool(valid.all())
        torch.testing.assert_close(xy, batch.xy[batch.image_index == 0], atol=1e-3, rtol=0)
        assert bool((batch.weights == 1).all())
        assert batch.depth is None
        if sampling == "per-image":
            assert len(batch.image_index.unique()) == 1


def test_every_pixel_is_drawn(tmp_path):
    manager = RayDataManager(RayDataConfig(rays=20_000), made_scene(tmp_path, MIXED))
    batch = manager.next_train(0)
    for i, (width, height) in enumerate(MIXED[:-1]):
        assert len(batch.xy[batch.image_index == i].unique(dim=0)) == width * height
        share = (batch.image_index == i).float().mean().item()
        assert abs(share - 0.25) < 0.02
    assert not bool((batch.image_index == 4).any())


def test_a_batch_depends_on_seed_step_and_count_only(tmp_path):
    scene = made_scene(tmp_path, MIXED)
    config = RayDataConfig(rays=64)
    manager = RayDataManager(config, scene, seed=1)
    batches = [manager.next_train(step) for step in range(5)]
    again = RayDataManager(config, scene, seed=1)
    assert all(same(again.next_train(step), batches[step]) for step in (3, 0, 4, 1, 2))
    assert not same(batches[0], batches[1])
    assert not same(RayDataManager(config, scene, seed=2).next_train(0), batches[0])
    manager.num_rays = 100
    assert len(manager.next_train(0).rays) == 100
    again.load_state_dict(manager.state_dict())
    assert same(again.next_train(7), manager.next_train(7))
    with pytest.raises(ValueError, match="seed"):
        RayDataManager(config, scene, seed=2).load_state_dict(manager.state_dict())


def test_precrop_uses_the_centre_first(tmp_path):
    scene = made_scene(tmp_path, [(40, 20), (1, 1), (4, 4)])
    config = RayDataConfig(rays=4000, precrop_steps=5, precrop_fraction=0.5)
    manager = RayDataManager(config, scene)
    batch = manager.next_train(4)
    large = batch.xy[batch.image_index == 0]
    assert large.amin(0).tolist() == [10.5, 5.5]
    assert large.amax(0).tolist() == [29.5, 14.5]
    large = manager.next_train(5)
    assert large.xy[large.image_index == 0].amax(0).tolist() == [39.5, 19.5]


def test_masks_and_depths_ride_along(tmp_path):
    scene = made_scene(tmp_path, [(6, 4)] * 4)
    mask = np.zeros((4, 6), np.uint8)
    mask[:, 3:] = 255
    scene = with_masks(scene, [mask, None, None, None], is_alpha=False)
    depth = np.arange(24, dtype=np.float32).reshape(4, 6)
    scene = with_depths(scene, [None, depth, None, None], unit=2.0)
    for cache in (1.0, 450 / GIGABYTE):
        manager = RayDataManager(RayDataConfig(rays=200, cache_gb=cache), scene)
        for step in range(0, 64, 8):
            batch = manager.next_train(step)
            column, row = (batch.xy - 0.5).T
            is_ignored = (batch.image_index == 0) & (column < 3)
            assert torch.equal(batch.weights == 0, is_ignored)
            assert batch.depth is not None
            expected = torch.where(batch.image_index == 1, 2 * (row * 6 + column), 0.0)
            assert torch.equal(batch.depth, expected)


@pytest.fixture
def large(tmp_path):
    """Twenty training images in a cache for a quarter of them."""
    scene = made_scene(tmp_path, [(64, 48)] * 21)
    config = RayDataConfig(rays=256, cache_gb=20 * 64 * 48 * 4 / 4 / GIGABYTE)
    return scene, config


def test_a_set_four_times_the_cache_uses_every_image_equally(large):
    scene, config = large
    manager = RayDataManager(config, scene, seed=5)
    epoch = STEPS_PER_IMAGE * 20
    counts = torch.zeros(21)
    for step in range(epoch, 3 * epoch):
        counts += torch.bincount(manager.next_train(step).image_index, minlength=21)
    share = counts[:20] / counts.sum()
    assert counts[20] == 0
    assert share.min() > 0.9 / 20
    assert share.max() < 1.1 / 20


def test_each_image_stays_equally_long(large):
    scene, config = large
    window = RayDataManager(config, scene, seed=5)._window
    assert window.capacity in (3, 4)
    stays = torch.zeros(21)
    for step in range(STEPS_PER_IMAGE * 20):
        resident = window.images_at(step)
        assert len(set(resident)) == window.capacity
        stays[resident] += 1
    assert stays[:20].tolist() == [STEPS_PER_IMAGE * window.capacity] * 20


def test_a_windowed_run_resumes_at_any_step(large):
    scene, config = large
    manager = RayDataManager(config, scene, seed=5)
    batches = {step: manager.next_train(step) for step in range(150)}
    for start in (1, 15, 16, 17, 83, 149):
        resumed = RayDataManager(config, scene, seed=5)
        resumed.load_state_dict(manager.state_dict())
        for step in range(start, min(start + 20, 150)):
            assert same(resumed.next_train(step), batches[step])
    assert all(same(manager.next_train(step), batches[step]) for step in (149, 3, 77, 76))


def test_resident_bytes_stay_within_the_cache(large, monkeypatch):
    scene, config = large
    decoded: list[int] = []
    original = resident_window.load_rgba

    def counted(scene, index):
        decoded.append(index)
        return original(scene, index)

    monkeypatch.setattr(resident_window, "load_rgba", counted)
    manager = RayDataManager(config, scene, seed=5)
    window, cache = manager._window, int(config.cache_gb * GIGABYTE)
    image = 64 * 48 * 4
    for step in range(STEPS_PER_IMAGE * 20):
        manager.next_train(step)
        if step % 50 == 0:
            manager.eval_image("test", 0)
        held = sum(x.nbytes for x in (window._rgba, window._mask, window._depth) if x is not None)
        assert held == window.nbytes
        assert held + window._num_ahead * image + manager.store.num_bytes <= cache
    assert len(decoded) <= 20 + window.capacity + 1


def test_process_memory_does_not_grow_with_the_data_set(tmp_path):
    scene = made_scene(tmp_path, [(400, 300)] * 25, num_test=1)
    config = RayDataConfig(rays=64, cache_gb=24 * 400 * 300 * 4 / 4 / GIGABYTE)
    manager = RayDataManager(config, scene)
    manager.next_train(0)
    tracemalloc.start()
    for step in range(1, STEPS_PER_IMAGE * 24, STEPS_PER_IMAGE):
        manager.next_train(step)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Python's and numpy's share: decoded files on their way into the buffer, a few at a time.
    assert peak < 6 * 400 * 300 * 4


def test_a_corrupt_image_is_named_when_it_enters_the_window(large):
    scene, config = large
    path = scene.frames[7].image_path
    path.write_bytes(path.read_bytes()[:90])
    manager = RayDataManager(config, scene, seed=5)

    def epoch() -> None:
        for step in range(STEPS_PER_IMAGE * 20):
            manager.next_train(step)

    with pytest.raises(UserError, match=r"007\.png"):
        epoch()


def test_held_out_images_come_with_their_cameras(tmp_path):
    manager = RayDataManager(RayDataConfig(), made_scene(tmp_path, MIXED, num_test=2))
    assert manager.eval_indices("test") == (3, 4)
    assert manager.eval_indices("val") == ()
    camera, rgba = manager.eval_image("test", 1)
    assert rgba.shape == (7, 7, 4)
    assert torch.equal(camera.intrinsics, manager.scene.cameras[4].intrinsics)
    with pytest.raises(ValueError, match="split must be one of train, val, test"):
        manager.eval_indices("training")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"cache_gb": 0.0}, "--data.cache-gb must be above 0"),
        ({"rays": 0}, "--data.rays must be at least 1"),
        ({"precrop_fraction": 1.5}, "--data.precrop-fraction"),
        ({"detail": -0.1}, "--data.detail must be between 0 and 1"),
        ({"detail": float("nan")}, "--data.detail must be between 0 and 1"),
        ({"patches": 1.5}, "--data.patches must be between 0 and 1"),
    ],
)
def test_bad_settings_are_named(tmp_path, change, sentence):
    scene = made_scene(tmp_path, [(4, 4)] * 2)
    with pytest.raises(UserError, match=sentence):
        RayDataManager(RayDataConfig(**change), scene)


def test_no_training_image_is_an_error(tmp_path):
    scene = made_scene(tmp_path, [(4, 4)])
    with pytest.raises(UserError, match="no image is left for training"):
        RayDataManager(RayDataConfig(), scene)


def test_one_image_larger_than_the_cache_still_trains(tmp_path):
    scene = made_scene(tmp_path, [(40, 40)] * 2)
    manager = RayDataManager(RayDataConfig(rays=8, cache_gb=1e-6), scene)
    for step in (0, STEPS_PER_IMAGE, 5 * STEPS_PER_IMAGE):
        assert len(manager.next_train(step).rays) == 8
    two = replace(scene, splits={"train": (0, 1), "val": (), "test": ()})
    manager = RayDataManager(RayDataConfig(rays=8, cache_gb=1e-6), two)
    seen = {int(manager.next_train(step).image_index[0]) for step in range(4 * STEPS_PER_IMAGE)}
    assert seen == {0, 1}


def test_batches_are_quick(tmp_path):
    manager = RayDataManager(RayDataConfig(rays=4096), made_scene(tmp_path, [(200, 200)] * 20))
    manager.next_train(0)
    durations = []
    threads = torch.get_num_threads()
    # On a busy machine the threads of small operations wait for each other; that is not measured.
    torch.set_num_threads(1)
    for step in range(30):
        start = time.perf_counter()
        manager.next_train(step)
        durations.append(time.perf_counter() - start)
    torch.set_num_threads(threads)
    assert min(durations) < 0.02


def with_an_edge(tmp_path: Path, masks: list[np.ndarray | None]) -> Scene:
    """Grey pictures of 60 x 40 that turn white at column 30; the last is held out."""
    scene = made_scene(tmp_path, [(60, 40)] * 3, alpha=False)
    picture = np.full((40, 60, 3), 90, dtype=np.uint8)
    picture[:, 30:] = 255
    for frame in scene.frames:
        Image.fromarray(picture).save(frame.image_path)
    return with_masks(scene, masks, is_alpha=False)


def share_at_the_edge(batch: RayBatch) -> float:
    """Of the rays, how many are so close to column 30 that both sides of it are neighbours."""
    return ((batch.xy[:, 0] - 30).abs() < REACH).float().mean().item()


def test_detail_draws_rays_to_edges(tmp_path):
    scene = with_an_edge(tmp_path, [None] * 3)
    narrow = 2 * REACH / 60
    for detail in (0.0, 0.25, 1.0):
        batch = RayDataManager(RayDataConfig(rays=40_000, detail=detail), scene).next_train(0)
        # The best of TRIES lies at the edge unless all of them miss it.
        expected = (1 - detail) * narrow + detail * (1 - (1 - narrow) ** TRIES)
        assert share_at_the_edge(batch) == pytest.approx(expected, abs=0.01)
        assert len(batch.rays) == 40_000
        for image in (0, 1):
            assert (batch.image_index == image).float().mean().item() == pytest.approx(
                0.5, abs=0.02
            )


def test_detail_under_a_mask_attracts_no_rays(tmp_path):
    mask = np.full((40, 60), 255, dtype=np.uint8)
    mask[:, 25:35] = 0
    scene = with_an_edge(tmp_path, [mask] * 3)
    batch = RayDataManager(RayDataConfig(rays=40_000, detail=1.0), scene).next_train(0)
    assert share_at_the_edge(batch) <= 2 * REACH / 60 + 0.01


def test_patches_are_neighbours_and_the_other_rays_stay_as_they_were(tmp_path):
    scene = made_scene(tmp_path, [(40, 30), (3, 50), (9, 7)])
    config = RayDataConfig(rays=1000, detail=0.3)
    alone = RayDataManager(config, scene).next_train(5)
    batch = RayDataManager(replace(config, patches=0.5), scene).next_train(5)
    count = batch.num_patches * PATCH_SIZE
    assert alone.num_patches == 0 and 500 - PATCH_SIZE < count <= 500
    assert len(batch.rays) == 1000
    assert torch.equal(batch.xy[count:], alone.xy[count:])
    assert torch.equal(batch.pixels[count:], alone.pixels[count:])

    xy = batch.xy[:count].view(-1, PATCH_SIDE, PATCH_SIDE, 2)
    image = batch.image_index[:count].view(-1, PATCH_SIZE)
    assert torch.equal(image, alone.image_index[: batch.num_patches, None].expand_as(image))
    fits = image[:, 0] == 0
    assert 0 < fits.sum() < len(fits)
    right, down = xy[fits].diff(dim=2), xy[fits].diff(dim=1)
    assert torch.equal(right, torch.tensor((PATCH_STRIDE, 0.0)).expand_as(right))
    assert torch.equal(down, torch.tensor((0.0, PATCH_STRIDE)).expand_as(down))
    # Also of images that are narrower than a patch.
    assert bool(((batch.xy > 0) & (batch.xy < scene.cameras.size[batch.image_index])).all())


def test_detail_comes_before_patches(tmp_path):
    scene = made_scene(tmp_path, [(40, 30)] * 2)
    config = RayDataConfig(rays=100, detail=0.75, patches=0.5)
    assert RayDataManager(config, scene).next_train(0).num_patches == 25 // PATCH_SIZE


@pytest.mark.parametrize(("kind", "share"), [("unbounded", CAPTURE_PATCHES), ("object", 0.0)])
def test_patches_left_open_are_drawn_of_captures_and_not_of_objects(tmp_path, kind, share):
    scene = replace(made_scene(tmp_path, [(40, 30)] * 2), kind=kind)
    batch = RayDataManager(RayDataConfig(rays=256, patches=None), scene).next_train(0)
    assert batch.num_patches == share * 256 // PATCH_SIZE

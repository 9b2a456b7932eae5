# SPDX-License-Identifier: Apache-2.0
"""Bundle adjustment: exact slopes, cameras that come back, points that follow, bits that stay."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from diorama.data.bundle.adjust import LensPrior, adjust, robust_losses
from diorama.data.bundle.families import FREE_SIGMA, adjust_in_families, family_middles
from diorama.data.bundle.model import LENS, POSE, Bundle, Observations
from diorama.data.bundle.projection import (
    BEHIND,
    project,
    slopes_by_place,
    slopes_by_point,
    slopes_by_view,
)
from diorama.data.bundle.settle import settled
from diorama.data.bundle.thin import believable, held_back, thinned
from tests.data.made_bundle import as_mapped, observed, true_bundle


@pytest.fixture(scope="module")
def capture() -> tuple[Bundle, Observations, Bundle]:
    truth = true_bundle()
    seen = observed(truth)
    return truth, seen, as_mapped(truth, seen)


def bent(bundle: Bundle) -> Bundle:
    """With all nine coefficients of distortion."""
    coefficients = np.random.default_rng(2).normal(size=bundle.distortion.shape) * 0.03
    return replace(bundle, distortion=coefficients)


@pytest.mark.parametrize("share_a_camera", [False, True])
def test_slopes_are_those_of_the_error(share_a_camera):
    bundle = bent(true_bundle(6, 40))
    if share_a_camera:
        bundle = replace(bundle, camera_of=np.arange(6) % 2)
    seen = observed(true_bundle(6, 40))
    rng = np.random.default_rng(3)
    views, points = rng.normal(size=bundle.num_unknowns), rng.normal(size=bundle.xyz.shape)
    found = project(bundle, seen)
    by_place = slopes_by_place(bundle, seen, found)
    by_view = slopes_by_view(bundle, seen, found, by_place)
    by_point = slopes_by_point(bundle, seen, by_place)
    pose = views[: 6 * POSE].reshape(-1, POSE)[seen.image]
    lens = views[6 * POSE :].reshape(-1, LENS)[bundle.camera_of[seen.image]]
    expected = np.einsum("mrv,mv->mr", by_view, np.concatenate((pose, lens), axis=1))
    expected += np.einsum("mri,mi->mr", by_point, points[seen.point])
    h = 1e-6
    ahead, behind = (project(bundle.moved(s * views, s * points), seen).error for s in (h, -h))
    np.testing.assert_allclose((ahead - behind) / (2 * h), expected, rtol=1e-6, atol=1e-4)


def test_exact_observations_leave_the_truth_alone():
    truth = true_bundle()
    seen = observed(truth, noise=0, wrong=0)
    out = adjust(truth, seen, LensPrior(truth.lenses, FREE_SIGMA))
    np.testing.assert_allclose(out.intrinsics, truth.intrinsics, atol=1e-6)


def test_cropped_photographs_get_their_principal_points_back(capture):
    truth, seen, mapped = capture
    assert np.abs(mapped.intrinsics[:, 2] - truth.intrinsics[:, 2]).max() > 40
    out = adjust_in_families(mapped, seen)
    assert np.abs(out.intrinsics[:, 2:] - truth.intrinsics[:, 2:]).max() < 4
    np.testing.assert_allclose(out.intrinsics[:, 0], truth.intrinsics[:, 0], rtol=0.006)
    np.testing.assert_allclose(out.distortion[:, 0], truth.distortion[:, 0], atol=0.006)
    # Turns between neighbours do not depend on the frame of the world.
    turns = [b.rotation[1:] @ b.rotation[:-1].transpose(0, 2, 1) for b in (out, truth, mapped)]
    assert np.abs(turns[0] - turns[1]).max() < 0.006
    assert np.abs(turns[2] - turns[1]).max() > 0.06


def test_lenses_that_are_shared_move_together(capture):
    truth, seen, mapped = capture
    kinds = (np.arange(16) % 3 != 0).astype(np.int64)
    two = {name: getattr(mapped, name)[:2] for name in ("intrinsics", "distortion", "side")}
    out = adjust_in_families(replace(mapped, camera_of=kinds, **two), seen)
    assert out.intrinsics.shape == (2, 4)
    np.testing.assert_allclose(out.intrinsics, truth.intrinsics[:2], atol=1.0)


def test_an_image_without_observations_stays(capture):
    _, seen, mapped = capture
    out = adjust_in_families(mapped, seen.where(seen.image != 5))
    np.testing.assert_array_equal(out.translation[5], mapped.translation[5])
    assert np.isfinite(out.intrinsics).all()


def test_a_point_behind_the_camera_is_a_large_error_without_slope_into_it():
    truth = true_bundle(3, 1)
    center = -truth.rotation[0].T @ truth.translation[0]
    turned = replace(truth, xyz=(center - truth.rotation[0].T[:, 2])[None])
    found = project(turned, Observations(np.zeros(1, int), np.zeros(1, int), np.zeros((1, 2))))
    assert not found.is_in_front[0]
    assert (found.error == BEHIND).all()
    assert robust_losses(found.error)[0] < 10


def test_points_follow_cameras(capture):
    truth, seen, _ = capture
    wandered = replace(truth, xyz=truth.xyz + 0.1)
    off = np.linalg.norm(settled(wandered, seen).xyz - truth.xyz, axis=1)
    assert np.median(off) < 0.002
    assert np.quantile(off, 0.95) < 0.01


def test_points_settle_the_same_in_small_parts(monkeypatch, capture):
    truth, seen, _ = capture
    wandered = replace(truth, xyz=truth.xyz + 0.1)
    whole = settled(wandered, seen)
    monkeypatch.setattr("diorama.data.bundle.settle.PART", 50)
    np.testing.assert_allclose(settled(wandered, seen).xyz, whole.xyz, atol=1e-6)


def test_points_that_nobody_sees_stay(capture):
    truth, seen, _ = capture
    few = seen.where(seen.point != 7)
    np.testing.assert_array_equal(settled(truth, few).xyz[7], truth.xyz[7])


def test_families_gather_and_strangers_stay_alone():
    rng = np.random.default_rng(4)
    first, second = np.array([-0.3, 0.5, 0.375, -0.02]), np.array([-0.33, 0.44, 0.375, 0.0])
    noise = rng.normal(size=(30, 4)) * 0.002
    lenses = np.concatenate((first + noise[:20], second + noise[20:], [first + 0.2]))
    middles = family_middles(lenses)
    np.testing.assert_allclose(middles[:20], np.tile(first, (20, 1)), atol=0.002)
    np.testing.assert_allclose(middles[20:30], np.tile(second, (10, 1)), atol=0.002)
    np.testing.assert_allclose(middles[30], lenses[30], atol=1e-9)


def test_what_cannot_be_believed_is_left_out(monkeypatch, capture):
    truth, seen, _ = capture
    off = seen.xy.copy()
    off[::7] += 300
    monkeypatch.setattr("diorama.data.bundle.thin.PART", 100)
    kept = believable(truth, replace(seen, xy=off))
    assert len(kept) == pytest.approx(len(seen) * 6 / 7, rel=0.01)
    assert np.bincount(kept.point)[np.unique(kept.point)].min() >= 2


def test_thinning_keeps_the_longest_tracks_whole(monkeypatch, capture):
    _, seen, _ = capture
    monkeypatch.setattr("diorama.data.bundle.thin.MAX_OBSERVATIONS", 16 * 30)
    monkeypatch.setattr("diorama.data.bundle.thin.LEAST_PER_IMAGE", 10)
    few = thinned(seen, 16)
    assert len(few) < len(seen)
    assert (np.bincount(few.image, minlength=16) >= 30).all()
    length = np.bincount(seen.point)
    chosen = np.unique(few.point)
    np.testing.assert_array_equal(np.bincount(few.point)[chosen], length[chosen])
    assert length[chosen].mean() > length.mean()


def test_held_back_observations_leave_every_point_three():
    seen = observed(true_bundle())
    is_held = held_back(seen)
    assert 0.05 < is_held.mean() < 0.11
    length = np.bincount(seen.point)
    left = np.bincount(seen.point[~is_held], minlength=len(length))
    assert (left[length >= 3] >= 2).all()


def test_same_bits_with_one_and_two_threads(capture):
    _, seen, mapped = capture
    prior = LensPrior(mapped.lenses, FREE_SIGMA)
    threads, found = torch.get_num_threads(), []
    try:
        for num in (1, 2):
            torch.set_num_threads(num)
            found.append(adjust(mapped, seen, prior))
    finally:
        torch.set_num_threads(threads)
    assert found[0].xyz.tobytes() == found[1].xyz.tobytes()
    assert found[0].intrinsics.tobytes() == found[1].intrinsics.tobytes()

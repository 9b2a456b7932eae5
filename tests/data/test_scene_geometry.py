# SPDX-License-Identifier: Apache-2.0
"""Splits, normalisation and bounds, each against what it promises."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from diorama.config.data import DataConfig
from diorama.data.bounds import scene_bounds
from diorama.data.normalize import (
    focus_point,
    from_cameras,
    from_points,
    looks_forward,
    upright,
)
from diorama.data.pose_check import checked_pose
from diorama.data.splits import make_splits
from diorama.errors import UserError
from tests.data import tiny_sets as tiny


def rig_poses(**options) -> torch.Tensor:
    return torch.from_numpy(tiny.rig(**options).poses)


def test_every_eighth_includes_the_first():
    splits, _ = make_splits(20, None, DataConfig())
    assert splits["test"] == splits["val"] == (0, 8, 16)
    assert len(splits["train"]) == 17


@given(count=st.integers(1, 200), fraction=st.floats(0.01, 1.0))
@settings(max_examples=60, deadline=None)
def test_fraction_splits_are_a_partition_from_first_to_last(count, fraction):
    config = DataConfig(split="fraction", train_fraction=fraction)
    splits, _ = make_splits(count, None, config)
    train, test = set(splits["train"]), set(splits["test"])
    assert not train & test
    assert train | test == set(range(count))
    assert len(train) == int(np.ceil(fraction * count)) or len(train) == 1
    if len(train) > 1:
        assert {0, count - 1} <= train


def test_split_all_and_errors():
    splits, _ = make_splits(3, None, DataConfig(split="all"))
    assert splits["train"] == splits["test"] == (0, 1, 2)
    for config in (
        DataConfig(eval_every=0),
        DataConfig(test_skip=0),
        DataConfig(split="fraction", train_fraction=1.5),
    ):
        with pytest.raises(UserError, match="--data"):
            make_splits(5, None, config)


def test_upright_turns_up_to_z_and_is_a_rotation():
    for axes in ([0, 1, 2], [2, 0, 1], [1, 2, 0]):
        poses = rig_poses()[:, axes]
        turn = upright(poses)
        up = -turn.apply_to_poses(poses)[:, :, 1].mean(0)
        assert float(up[2] / up.norm()) == pytest.approx(1.0)
        torch.testing.assert_close(turn.rotation @ turn.rotation.T, torch.eye(3).double())
    flipped = torch.diag(torch.tensor([1.0, -1.0, -1.0])).double() @ rig_poses()
    up = -upright(flipped).apply_to_poses(flipped)[:, :, 1].mean(0)
    assert float(up[2] / up.norm()) == pytest.approx(1.0)


def test_one_lost_camera_does_not_shrink_the_scene():
    poses = rig_poses(count=40)
    lost = poses.clone()
    lost[7, :, 3] *= 1000
    assert from_cameras(lost).scale > 0.4 * from_cameras(poses).scale


def test_a_few_wild_points_do_not_move_the_bounds():
    rng = np.random.default_rng(0)
    xyz = torch.from_numpy(rng.uniform(-1, 1, (5000, 3)))
    wild = torch.cat([xyz, 1e6 * torch.from_numpy(rng.normal(size=(20, 3)))])
    poses, tangents = rig_poses(), torch.full((10, 2), 0.4).double()
    clean, dirty = (scene_bounds(poses, tangents, p, "object") for p in (xyz, wild))
    assert dirty.radius == pytest.approx(clean.radius, rel=0.05)
    assert dirty.far == pytest.approx(clean.far, rel=0.1)
    assert clean.near < 3.0
    assert clean.far > 5.0
    assert from_points(wild).scale == pytest.approx(from_points(xyz).scale, rel=0.05)


def test_bounds_from_cameras_hold_what_fills_the_images():
    poses, tangents = rig_poses(), torch.full((10, 2), 0.4).double()
    bounds = scene_bounds(poses, tangents, None, "object")
    assert np.linalg.norm(bounds.center) < 0.1
    assert bounds.radius == pytest.approx(4 * np.sin(np.arctan(0.4)) * 1.05, rel=0.01)
    assert bounds.near < 4 - bounds.radius
    assert bounds.far > 4 + bounds.radius


def test_focus_and_direction():
    assert float(focus_point(rig_poses()).norm()) < 1e-6
    assert not looks_forward(rig_poses())
    assert looks_forward(torch.from_numpy(tiny.forward_rig().poses))
    outwards = rig_poses()
    outwards[:, :, [0, 2]] *= -1
    torch.testing.assert_close(focus_point(outwards), outwards[:, :, 3].mean(0))


def test_pose_check_repairs_noise_exactly():
    pose = tiny.rig().poses[3]
    noisy = pose.copy()
    noisy[:, :3] += np.random.default_rng(0).normal(0, 0.005, (3, 3))
    repaired, was_repaired = checked_pose(noisy, "x")
    assert was_repaired
    assert np.abs(repaired - pose).max() < 0.02
    np.testing.assert_allclose(repaired[:, :3] @ repaired[:, :3].T, np.eye(3), atol=1e-12)
    assert checked_pose(pose, "x")[1] is False

# SPDX-License-Identifier: Apache-2.0
"""Counts of cameras that see parts of space, against cameras whose view is plain."""

from pathlib import Path

import torch

from diorama.cameras import Cameras, Similarity
from diorama.data.scene import Frame, Scene, SceneBounds
from diorama.nn.scene_frame import SceneFrame
from diorama.nn.seen_space import SeenSpace


def scene_of(poses: torch.Tensor, num_train: int) -> Scene:
    """Cameras with a field of view of 90 degrees; the last ones are held out."""
    count = len(poses)
    frames = tuple(Frame(f"{i}.png", Path(f"{i}.png")) for i in range(count))
    return Scene(
        name="views",
        format="test",
        root=Path("."),
        frames=frames,
        cameras=Cameras.pinhole(poses, 32.0, 32.0, 32.0, 32.0, 64, 64),
        splits={
            "train": tuple(range(num_train)),
            "val": (),
            "test": tuple(range(num_train, count)),
        },
        scene_from_user=Similarity.identity(),
        bounds=SceneBounds((0.0,) * 3, 1.0, (-1.0,) * 3, (1.0,) * 3, 0.1, 10.0),
    )


def test_counts_are_those_of_the_frusta():
    poses = torch.eye(3, 4).repeat(3, 1, 1)
    poses[:, :, 3] = torch.tensor([[0.0, 0.0, -2.0], [0.0, 0.0, 0.5], [0.0, 0.0, 0.9]])
    frame = SceneFrame((-1.0,) * 3, (1.0,) * 3, is_contracted=False)
    seen = SeenSpace(scene_of(poses, num_train=2), frame, resolution=16)
    points = torch.tensor([[0.0, 0.0, -0.5], [0.0, 0.0, 0.95], [0.9, 0.0, 0.7], [0.9, 0.9, -0.9]])
    unit = frame.to_unit(points)
    # In front of the first only; of both; outside the second's angle; of the first at its edge.
    assert seen.contains(unit, 1).tolist() == [True, True, True, True]
    assert seen.contains(unit, 2).tolist() == [False, True, False, False]
    assert not seen.contains(unit, 3).any()  # the third camera is held out


def test_contracted_space_is_counted_to_infinity():
    poses = torch.eye(3, 4)[None]
    frame = SceneFrame((-1.0,) * 3, (1.0,) * 3, is_contracted=True)
    seen = SeenSpace(scene_of(poses, num_train=1), frame, resolution=32)
    points = torch.tensor(
        [[0.0, 0.0, 50.0], [0.0, 0.0, -50.0], [40.0, 0.0, 50.0], [70.0, 0.0, 50.0]]
    )
    unit = frame.to_unit(points)
    assert seen.contains(unit, 1).tolist() == [True, False, True, False]

# SPDX-License-Identifier: Apache-2.0
"""COLMAP models with adjusted cameras: what becomes better, and what is left alone and why."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from diorama.cameras import CameraModel
from diorama.config.data import DataConfig
from diorama.data.bundle.model import Bundle, Observations
from diorama.data.draft import Lens
from diorama.data.load import load_scene
from diorama.data.parsers.colmap_adjust import adjusted
from diorama.data.parsers.colmap_model import ColmapImage, ColmapModel, ColmapPoints
from tests.data import tiny_sets as tiny
from tests.data.made_bundle import SIDE, as_mapped, observed, true_bundle

IDS = 1000
"""The first point's id: ids are no positions."""


def model_of(bundle: Bundle, seen: Observations, kind=CameraModel.PERSPECTIVE) -> ColmapModel:
    lenses, images = {}, []
    for i, (fx, fy, cx, cy) in enumerate(bundle.intrinsics.tolist()):
        distortion = tuple(bundle.distortion[i].tolist())
        lenses[i + 1] = Lens(kind, SIDE, 600.0, fx, fy, cx=cx, cy=cy, distortion=distortion)
        w, x, y, z = tiny.quaternion(bundle.rotation[i]).tolist()
        tx, ty, tz = bundle.translation[i].tolist()
        here = seen.where(seen.image == i)
        # Every image has a keypoint without a point and one whose point is gone.
        xy = np.concatenate(([[1.0, 2.0], [3.0, 4.0]], here.xy))
        ids = np.concatenate(([-1, 5], here.point + IDS))
        images.append(ColmapImage(i + 1, f"{i}.png", (w, x, y, z), (tx, ty, tz), i + 1, xy, ids))
    rgb = np.zeros((len(bundle.xyz), 3), dtype=np.uint8)
    return ColmapModel(lenses, images, ColmapPoints(np.arange(len(rgb)) + IDS, bundle.xyz, rgb))


@pytest.fixture(scope="module")
def mapped() -> ColmapModel:
    truth = true_bundle()
    seen = observed(truth)
    return model_of(as_mapped(truth, seen), seen)


def test_principal_points_of_cropped_photographs_are_found(mapped):
    out, note = adjusted(mapped, "images.bin")
    found = np.array([(lens.fx, lens.cx, lens.cy) for lens in out.lenses.values()])
    truth = true_bundle().intrinsics[:, [0, 2, 3]]
    assert np.abs(found - truth).max() < 4.5
    assert note.startswith("The cameras were adjusted: observations held back are missed by 0.")
    assert "principal points moved by up to 4" in note
    assert [image.name for image in out.images] == [image.name for image in mapped.images]
    np.testing.assert_array_equal(out.points.ids, mapped.points.ids)
    assert not np.array_equal(out.points.xyz, mapped.points.xyz)


def test_cameras_that_are_right_are_left_alone():
    truth = true_bundle()
    model = model_of(truth, observed(truth))
    out, note = adjusted(model, "images.bin")
    assert out is model
    assert "adjusting them gains nothing (held-back error 0.4" in note


def test_fisheye_cameras_are_left_alone(mapped):
    first = replace(mapped.lenses[1], model=CameraModel.FISHEYE)
    model = replace(mapped, lenses={**mapped.lenses, 1: first})
    out, note = adjusted(model, "images.bin")
    assert out is model
    assert note == "The cameras were left as they are: only perspective ones can be adjusted."


@pytest.mark.parametrize(
    "broken", [{"fx": float("nan")}, {"cx": 1e9}, {"distortion": (1e300,) * 9}]
)
def test_a_lens_that_none_can_be_is_left_to_be_refused_later(mapped, broken):
    model = replace(mapped, lenses={**mapped.lenses, 2: replace(mapped.lenses[2], **broken)})
    out, note = adjusted(model, "images.bin")
    assert out is model
    assert note.endswith("one is missing, or no camera is like it.")


def test_a_model_without_observations_is_left_alone(mapped):
    bare = [replace(i, xy=np.zeros((0, 2)), point_ids=np.zeros(0, int)) for i in mapped.images]
    out, note = adjusted(replace(mapped, images=bare), "images.bin")
    assert out.images == bare
    assert "too few observations" in note


def test_broken_observations_and_points_do_no_harm(mapped):
    images = list(mapped.images)
    xy = images[0].xy.copy()
    xy[2:12] = np.nan, np.inf
    images[0] = replace(images[0], xy=xy)
    xyz = mapped.points.xyz.copy()
    xyz[3:6] = np.nan
    points = replace(mapped.points, xyz=xyz)
    out, _ = adjusted(replace(mapped, images=images, points=points), "images.bin")
    cx = np.array([lens.cx for lens in out.lenses.values()])
    assert np.abs(cx - true_bundle().intrinsics[:, 2]).max() < 4
    assert np.isfinite(out.points.xyz).all(1).sum() == len(xyz) - 3


@pytest.mark.parametrize("write", [tiny.write_colmap_binary, tiny.write_colmap_text])
def test_exact_files_read_the_same(tmp_path: Path, write):
    write(tmp_path, tiny.rig())
    plain, adjusting = (
        load_scene(DataConfig(path=tmp_path, adjust_cameras=flag)) for flag in (False, True)
    )
    assert adjusting.cameras.to_plain() == plain.cameras.to_plain()
    assert any(note.startswith("The cameras were left as they are") for note in adjusting.notes)
    assert not any("left as they are" in note for note in plain.notes)

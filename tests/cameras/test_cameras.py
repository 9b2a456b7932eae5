# SPDX-License-Identifier: Apache-2.0
"""The batch of cameras as a container, its sizes, its rays' extras, and its plain form."""

import json
import math
from dataclasses import fields

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from diorama.cameras import Cameras, Rays, Similarity, from_colmap, look_at
from diorama.errors import UserError
from tests.cameras.strategies import mixed_cameras, random_pixels, random_poses, seeds


def same(a: Cameras, b: Cameras) -> bool:
    return a.to_plain() == b.to_plain()


def test_indexing_gives_cameras_again():
    cameras = mixed_cameras(0)
    assert len(cameras[3]) == 1
    assert same(cameras[-1], cameras[len(cameras) - 1 :])
    assert same(cameras[[2, 0]], Cameras.cat([cameras[2], cameras[0]]))
    assert same(cameras[torch.tensor([2, 0])], cameras[[2, 0]])
    assert same(Cameras.cat(list(cameras)), cameras)
    assert len(cameras[[]]) == 0
    with pytest.raises(IndexError, match="camera 99 of 10"):
        cameras[99]


def test_wrong_shapes_are_refused_by_name():
    good = mixed_cameras(0)
    parts = (good.world_from_camera, good.intrinsics[:, :3], good.size, good.model, good.distortion)
    # The shape guard sees it first in tests; without the guard it is a ValueError by name.
    with pytest.raises(TypeError, match="intrinsics"):
        Cameras(*parts)
    unguarded = object.__new__(Cameras)
    unguarded.__dict__.update(zip((f.name for f in fields(Cameras)), parts, strict=True))
    with pytest.raises(ValueError, match=r"intrinsics must have the shape \(10, 4\), got"):
        unguarded.__post_init__()


def test_shape_guard_is_awake():
    cameras = mixed_cameras(0)
    with pytest.raises(TypeError):
        cameras.rays(torch.zeros(3).long(), torch.zeros(4, 2).double())
    with pytest.raises(TypeError):
        cameras.unproject(torch.zeros(3).long(), torch.zeros(3, 3).double())


def test_scalars_broadcast():
    poses = random_poses(3, 0, torch.float32)
    cameras = Cameras.pinhole(poses, torch.tensor([1.0, 2, 3]), 5, 8, 6, 16, 12)
    assert cameras.intrinsics.tolist() == [[i, 5, 8, 6] for i in (1, 2, 3)]
    assert (cameras.width(2), cameras.height(2)) == (16, 12)


@settings(max_examples=15, deadline=None)
@given(seed=seeds, factor=st.floats(0.1, 3.0))
def test_rescaling_keeps_the_rays(seed, factor):
    cameras = mixed_cameras(seed)
    small = cameras.rescaled(factor)
    index, xy = random_pixels(cameras, 32, seed)
    ratio = small.size[index] / cameras.size[index].double()
    before, after = cameras.rays(index, xy), small.rays(index, xy * ratio)
    torch.testing.assert_close(before.directions, after.directions, rtol=0, atol=1e-9)
    torch.testing.assert_close(before.z_scale, after.z_scale, rtol=0, atol=1e-9)


def test_resizing_scales_each_axis_by_its_real_ratio():
    camera = Cameras.pinhole(torch.eye(3, 4), 100.0, 100.0, 50.0, 37.0, 101, 75).rescaled(0.5)
    assert camera.size.tolist() == [[50, 38]]
    expected = [100 * 50 / 101, 100 * 38 / 75, 50 * 50 / 101, 37 * 38 / 75]
    assert camera.intrinsics[0].tolist() == pytest.approx(expected)
    with pytest.raises(ValueError, match="at least 1 x 1"):
        camera.resized(0, 5)
    with pytest.raises(ValueError, match="positive and finite"):
        camera.rescaled(0)


def test_cone_radii_are_mip_nerfs():
    camera = Cameras.pinhole(look_at((4, 1, 2), (0, 0, 0)).double(), 300.0, 200.0, 32, 24, 64, 48)
    rays = camera.image_rays()
    # mip-NeRF: un-normalised directions (z = 1), differences of neighbours, times 2 / sqrt(12).
    flat = (rays.directions / rays.z_scale[:, None]).unflatten(0, (48, 64))
    along_x = (flat[:, 1:] - flat[:, :-1]).norm(dim=-1)
    along_y = (flat[1:] - flat[:-1]).norm(dim=-1)
    torch.testing.assert_close(along_x, torch.full_like(along_x, 1 / 300))
    per_depth = 0.5 * (along_x[0, 0] + along_y[0, 0]) * 2 / math.sqrt(12)
    torch.testing.assert_close(rays.radii, per_depth * rays.z_scale)


@pytest.mark.parametrize("seed", range(3))
def test_cone_radii_of_all_models_match_finite_differences(seed):
    cameras = mixed_cameras(seed)
    index, xy = random_pixels(cameras, 200, seed)
    rays = cameras.rays(index, xy)
    is_perspective = cameras.model[index] == 0

    def flat(points):
        directions = cameras.unproject(index, points)
        plane = directions / directions[:, 2:]
        return torch.where(is_perspective[:, None], plane, directions)

    step = 1e-4
    spacing = [(flat(xy + step * e) - flat(xy)).norm(dim=-1) / step for e in torch.eye(2).double()]
    expected = (spacing[0] + spacing[1]) / 2 * 2 / math.sqrt(12)
    expected = torch.where(is_perspective, expected * rays.z_scale, expected)
    torch.testing.assert_close(rays.radii, expected, rtol=1e-3, atol=0)


def test_rays_are_unit_and_carry_their_camera():
    cameras = mixed_cameras(1, torch.float32)
    index, xy = random_pixels(cameras, 500, 1)
    rays = cameras.rays(index, xy)
    torch.testing.assert_close(rays.directions.norm(dim=-1), torch.ones(500))
    assert torch.equal(rays.camera_index, index)
    assert torch.equal(rays.origins, cameras.world_from_camera[index, :, 3])
    again = Rays.cat([rays[:100], rays[torch.arange(500) >= 100]])
    assert torch.equal(again.directions, rays.directions)
    assert len(rays[-1]) == 1
    assert rays.to(torch.float64).radii.dtype == torch.float64
    assert int(cameras.image_rays(-1).camera_index[0]) == len(cameras) - 1


@settings(max_examples=15, deadline=None)
@given(seed=seeds, scale=st.floats(0.05, 20))
def test_a_similarity_moves_cameras_and_points_together(seed, scale):
    pose = random_poses(1, seed + 1)[0]
    similarity = Similarity(scale, pose[:, :3], pose[:, 3])
    cameras = mixed_cameras(seed)
    points = torch.randn(len(cameras), 5, 3, dtype=torch.float64)
    before = cameras.project(points)
    after = cameras.transformed(similarity).project(similarity.apply(points))
    inside = before.is_valid & (before.depth.abs() > 0.1)
    torch.testing.assert_close(after.xy[inside], before.xy[inside], rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(after.depth, scale * before.depth)


def test_plain_form_survives_json():
    cameras = mixed_cameras(2, torch.float32)
    text = json.dumps(cameras.to_plain(), allow_nan=False)
    assert same(Cameras.from_plain(json.loads(text)), cameras)
    assert len(Cameras.from_plain(cameras[[]].to_plain())) == 0


@pytest.mark.parametrize(
    "damage",
    [
        {"intrinsics": [[1.0, 2.0]]},
        {"intrinsics": [[1.0, float("nan"), 0, 0]]},
        {"model": [7]},
        {"size": "large"},
        {"distortion": None},
    ],
)
def test_damaged_plain_form_is_a_value_error(damage):
    plain = Cameras.pinhole(torch.eye(3, 4), 1, 1, 0.5, 0.5, 1, 1).to_plain()
    with pytest.raises(ValueError, match="not a batch of"):
        Cameras.from_plain(plain | damage)


def test_along_repeats_optics():
    camera = mixed_cameras(0)[4]
    path = camera.along(random_poses(7, 5))
    assert len(path) == 7
    assert torch.equal(path.distortion[6], camera.distortion[0])
    with pytest.raises(ValueError, match="repeats one camera"):
        path.along(random_poses(2, 0))


def test_colmap_ids_and_parameter_order():
    model, intrinsics, distortion = from_colmap(6, range(1, 13))
    assert (int(model), intrinsics) == (0, (1, 2, 3, 4))
    # COLMAP: k1 k2 p1 p2 k3 k4 k5 k6, whose last three are the denominator's.
    assert distortion == (5, 6, 9, 0, 7, 8, 10, 11, 12)
    assert from_colmap(0, (500, 1, 2))[1] == (500, 500, 1, 2)
    assert from_colmap("OPENCV_FISHEYE", range(1, 9))[2] == (5, 6, 7, 8, 0, 0, 0, 0, 0)
    assert from_colmap(9, (1, 2, 3, 4, 5)) == from_colmap("RADIAL_FISHEYE", (1, 2, 3, 4, 5))


@pytest.mark.parametrize(
    ("model", "params", "message"),
    [
        ("FOV", (1, 1, 1, 1, 1), "camera model FOV is not supported; undistort the images"),
        (10, (1,) * 12, "THIN_PRISM_FISHEYE is not supported"),
        (77, (1,), "camera model 77 is unknown"),
        ("PINHOLE", (1, 1, 1), r"has 4 parameters \(fx fy cx cy\), got 3"),
        ("PINHOLE", (1, 1, 1, math.nan), "finite parameters and a positive focal length"),
        (2, (-5, 1, 1, 0), "positive focal length, got -5 1 1 0"),
    ],
)
def test_colmap_cameras_we_cannot_use(model, params, message):
    with pytest.raises(UserError, match=message) as caught:
        from_colmap(model, params, source="sparse/0/cameras.bin")
    assert str(caught.value).startswith("sparse/0/cameras.bin: ")

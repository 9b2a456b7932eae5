# SPDX-License-Identifier: Apache-2.0
"""Undistorted photographs of a checkerboard equal what a pinhole would have photographed."""

from dataclasses import replace

import pytest
import torch

from diorama.cameras import Cameras, look_at, resample_image, undistort_image
from tests.cameras.strategies import colmap_cameras

POSE = look_at((0.0, 0.0, 0.0), (0.0, 1.0, 0.0)).double().unsqueeze(0)


def photograph(camera: Cameras) -> torch.Tensor:
    """A smooth checkerboard on all directions, exact at every pixel centre."""
    d = camera.image_rays().directions
    pattern = torch.sin(9 * d[:, 0]) * torch.sin(9 * d[:, 2])
    rgb = torch.stack([pattern, -pattern, torch.sin(5 * d[:, 1])], dim=-1)
    image = ((0.5 + 0.5 * rgb) * 255).round().to(torch.uint8)
    return image.unflatten(0, (camera.height(), camera.width()))


def worst(a: torch.Tensor, b: torch.Tensor) -> int:
    return int((a.int() - b.int()).abs().max())


@pytest.mark.parametrize("keep", ["valid", "focal"])
@pytest.mark.parametrize("name", ["SIMPLE_RADIAL", "OPENCV", "FULL_OPENCV", "OPENCV_FISHEYE"])
def test_undistorted_checkerboard_is_the_pinholes(name, keep):
    camera = colmap_cameras(name, POSE).rescaled(0.5)
    image, pinhole = undistort_image(photograph(camera), camera, keep)
    assert image.dtype == torch.uint8
    assert image.shape == (240, 320, 3)
    expected = photograph(pinhole)
    _, has_source = resample_image(photograph(camera), camera, pinhole)
    assert worst(image[has_source], expected[has_source]) <= 3
    if keep == "valid":
        assert bool(has_source.all())
    else:
        torch.testing.assert_close(pinhole.intrinsics, camera.intrinsics)
        assert int(image[~has_source].sum()) == 0


def test_a_pinhole_is_left_alone():
    camera = colmap_cameras("PINHOLE", POSE).rescaled(0.25)
    image, pinhole = undistort_image(photograph(camera), camera)
    torch.testing.assert_close(pinhole.intrinsics, camera.intrinsics)
    assert worst(image, photograph(camera)) == 0


def test_a_panorama_is_resampled_across_its_seam():
    panorama = Cameras.equirectangular(POSE, 720, 360)
    backwards = look_at((0.0, 0.0, 0.0), (0.0, -1.0, 0.2)).double()
    view = Cameras.from_fov(backwards, 60.0, 96, 72)
    image, has_source = resample_image(photograph(panorama), panorama, view)
    assert bool(has_source.all())
    assert worst(image, photograph(view)) <= 3
    with pytest.raises(ValueError, match="no single pinhole"):
        undistort_image(photograph(panorama), panorama)


def test_a_wide_fisheye_is_cut_at_sixty_degrees():
    camera = colmap_cameras("OPENCV_FISHEYE", POSE).rescaled(0.25)
    wide = replace(camera, intrinsics=camera.intrinsics * torch.tensor([0.5, 0.5, 1, 1]))
    _, pinhole = undistort_image(photograph(wide), wide)
    edge = pinhole.unproject(torch.zeros(1).long(), torch.tensor([[0.0, 60.0]]).double())
    assert abs(float(edge[0, 0] / edge[0, 2])) < 1.75


def test_images_of_the_wrong_size_are_refused():
    camera = colmap_cameras("OPENCV", POSE)
    with pytest.raises(ValueError, match="image is 10 x 20 but its camera 640 x 480"):
        resample_image(torch.zeros(20, 10, 3, dtype=torch.uint8), camera, camera)
    with pytest.raises(ValueError, match="takes one camera, got 2"):
        undistort_image(torch.zeros(480, 640, 3, dtype=torch.uint8), camera[[0, 0]])

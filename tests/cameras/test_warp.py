# SPDX-License-Identifier: Apache-2.0
"""Drawings of ideal lenses seen through distorted ones, and the ideal lenses themselves."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings

from diorama.cameras import CameraModel, Cameras, resample_image
from diorama.cameras.straight import is_straight, straight_camera
from diorama.cameras.warp import covering_camera, warped
from tests.cameras.strategies import COLMAP_PARAMETERS, colmap_cameras, random_poses, seeds

DISTORTED = [name for name in COLMAP_PARAMETERS if not name.endswith("PINHOLE")]
STRAIGHT = ["SIMPLE_PINHOLE", "PINHOLE"]


def camera_of(name: str, seed: int = 0, scale: float = 0.5) -> Cameras:
    return colmap_cameras(name, random_poses(1, seed)).rescaled(scale)


def painted(camera: Cameras) -> torch.Tensor:
    """Smooth colours of all directions of the world, exact at pixel centres."""
    d = camera.image_rays().directions
    colors = torch.stack([torch.sin(4 * d[:, 0]), torch.cos(3 * d[:, 1]), d[:, 2]], dim=-1)
    return colors.unflatten(0, (camera.height(), camera.width()))


def colors_at(image: torch.Tensor, xy: torch.Tensor) -> torch.Tensor:
    size = xy.new_tensor([image.shape[1], image.shape[0]])
    grid = (2 * xy / size - 1)[None, None]
    sampled = torch.nn.functional.grid_sample(
        image.permute(2, 0, 1)[None], grid, padding_mode="border", align_corners=False
    )
    return sampled[0, :, 0].T


def border(camera: Cameras) -> torch.Tensor:
    """World points one unit away, behind the corners and edges of the image."""
    x, y = (float(n) for n in camera.size[0])
    at = [[a * x, b * y] for a in (0, 0.3, 1) for b in (0, 0.7, 1) if a in (0, 1) or b in (0, 1)]
    rays = camera.rays(torch.zeros(len(at), dtype=torch.int64), torch.tensor(at).double())
    return rays.origins + rays.directions


@pytest.mark.parametrize("name", DISTORTED)
@settings(max_examples=5, deadline=None)
@given(seed=seeds)
def test_the_covering_image_holds_all_that_the_lens_sees(name: str, seed: int):
    camera = camera_of(name, seed)
    covering = covering_camera(camera)
    assert is_straight(covering) and int(covering.model[0]) == int(camera.model[0])
    assert torch.equal(covering.world_from_camera, camera.world_from_camera)
    torch.testing.assert_close(covering.intrinsics[:, :2], camera.intrinsics[:, :2])
    xy, _, is_valid = covering.project(border(camera))
    assert bool(is_valid.all())
    # Half a pixel of room: there is something to interpolate with.
    assert bool((xy > 0.5).all()) and bool((xy < covering.size[0] - 0.5).all())


@pytest.mark.parametrize("name", DISTORTED)
@settings(max_examples=5, deadline=None)
@given(seed=seeds)
def test_a_point_has_the_same_colour_in_the_drawing_and_through_the_lens(name: str, seed: int):
    camera = camera_of(name, seed)
    covering = covering_camera(camera)
    drawing = painted(covering)
    seen = warped(drawing, covering, camera)
    assert seen.shape == (camera.height(), camera.width(), 3)
    generator = torch.Generator().manual_seed(seed)
    xy = 1 + torch.rand(50, 2, generator=generator).double() * (camera.size[0] - 2)
    rays = camera.rays(torch.zeros(50, dtype=torch.int64), xy)
    points = rays.origins + 3.0 * rays.directions
    found, _, is_valid = covering.project(points)
    assert bool(is_valid.all())
    torch.testing.assert_close(colors_at(seen, xy), colors_at(drawing, found), atol=2e-3, rtol=0)
    # And it is what the lens would have photographed itself, corners included.
    torch.testing.assert_close(seen, painted(camera), atol=2e-3, rtol=0)


@pytest.mark.parametrize("name", STRAIGHT)
def test_a_straight_camera_is_left_as_it_is(name: str):
    camera = camera_of(name)
    assert is_straight(camera) and straight_camera(camera) is camera
    image = painted(camera)
    torch.testing.assert_close(warped(image, camera, camera), image, atol=1e-6, rtol=0)
    depth = image[..., 0]
    assert torch.equal(warped(depth, camera, camera), warped(image, camera, camera)[..., 0])
    covering = covering_camera(camera)
    # The same view with a margin of a pixel on each side.
    assert bool((covering.size - camera.size >= 2).all())
    assert bool((covering.size - camera.size <= 3).all())
    torch.testing.assert_close(covering.intrinsics[0, 2:], camera.intrinsics[0, 2:] + 1)


def test_beyond_the_drawing_its_edge_goes_on():
    """As when a lens sees farther than the widest pinhole that is drawn."""
    wide = Cameras.pinhole(random_poses(1, 3), 20.0, 20.0, 20.0, 15.0, 40, 30)
    narrow = replace(wide, intrinsics=wide.intrinsics * torch.tensor([2.0, 2.0, 1.0, 1.0]))
    drawing = painted(narrow)
    seen = warped(drawing, narrow, wide)
    torch.testing.assert_close(seen[0, 0], drawing[0, 0])
    torch.testing.assert_close(seen[-1, -1], drawing[-1, -1])
    torch.testing.assert_close(
        seen[14, 0], (drawing[13, 0] + drawing[14, 0]) / 2, atol=0.03, rtol=0
    )


def test_a_wide_lens_is_covered_up_to_75_degrees():
    camera = camera_of("OPENCV")
    wide = replace(camera, intrinsics=camera.intrinsics * torch.tensor([0.1, 0.1, 1.0, 1.0]))
    covering = covering_camera(wide)
    half = covering.size[0] / wide.intrinsics[0, :2]
    assert bool((half < 2 * 3.74 + 1).all())


def test_straight_cameras_of_distorted_ones():
    perspective = straight_camera(camera_of("OPENCV"))
    assert is_straight(perspective) and int(perspective.model[0]) == int(CameraModel.PERSPECTIVE)
    bent = camera_of("OPENCV_FISHEYE")
    fisheye = straight_camera(bent)
    assert is_straight(fisheye) and int(fisheye.model[0]) == int(CameraModel.FISHEYE)
    for straight, camera in ((perspective, camera_of("OPENCV")), (fisheye, bent)):
        assert not is_straight(camera)
        assert torch.equal(straight.size, camera.size)
        photo = (127 * (1 + painted(camera))).round().to(torch.uint8)
        image, has_source = resample_image(photo, camera, straight)
        expected = 127 * (1 + painted(straight))
        assert float(has_source.float().mean()) > 0.85
        assert float((image.double() - expected)[has_source].abs().max()) < 3
    torch.testing.assert_close(fisheye.intrinsics, bent.intrinsics)


def test_panoramas_have_neither():
    panorama = Cameras.equirectangular(random_poses(1, 0), 64, 32)
    assert not is_straight(panorama)
    with pytest.raises(ValueError, match="a panorama is not covered by one image"):
        covering_camera(panorama)
    with pytest.raises(ValueError, match="a panorama has no single pinhole"):
        straight_camera(panorama)

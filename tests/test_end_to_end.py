# SPDX-License-Identifier: Apache-2.0
"""A real training of each method on the tabletop, seen from all sides: quality, geometry, API."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

import diorama
from diorama.cameras import Cameras
from diorama.config import DataConfig
from diorama.data.image_store import ImageStore
from diorama.data.load import load_scene
from diorama.data.resize import resize_area
from diorama.data.scene import Scene
from diorama.engine.evaluate import over_background
from diorama.export.png import to_bytes
from tests.trained import SMALL, TrainedRun, train_small

MAX_SHIFT = 0.12  # pixels; a half-pixel error is four times as much


@pytest.fixture(scope="module", params=sorted(SMALL))
def trained(request, tmp_path_factory) -> TrainedRun:
    return train_small(request.param, tmp_path_factory.mktemp("trained"))


@pytest.fixture(scope="module")
def run(trained) -> diorama.LoadedRun:
    return diorama.load(trained.folder)


@pytest.fixture(scope="module")
def scene(trained) -> Scene:
    return load_scene(DataConfig(path=trained.data))


@pytest.fixture(scope="module")
def own_shift(run, scene) -> tuple[float, float]:
    """What a small model is off by itself."""
    return mean_shift(run, scene, scene.cameras)


def test_it_learns(trained):
    metrics = json.loads((trained.folder / "metrics.json").read_text())
    assert metrics["means"]["psnr"] > SMALL[trained.method].psnr
    assert metrics["means"]["ssim"] > SMALL[trained.method].ssim
    first = json.loads((trained.folder / "log.jsonl").read_text().splitlines()[0])
    assert first["kind"] == "train"


def test_the_api_renders_without_the_data(run):
    view = run.render(run.scene.cameras[0])
    assert view.rgb.shape == (64, 64, 3)
    assert view.alpha.min() >= 0 and view.alpha.max() <= 1 + 1e-5
    assert run.step == run.config.max_steps


def test_renders_lie_on_the_photographs(own_shift):
    """Sub-pixel shift between render and photograph, by least squares over all held-out views."""
    assert max(abs(s) for s in own_shift) < MAX_SHIFT


@pytest.mark.parametrize(("dx", "dy"), [(0.5, 0.0), (0.0, 0.5)])
def test_a_half_pixel_error_would_be_seen(run, scene, own_shift, dx, dy):
    moved = scene.cameras.intrinsics + torch.tensor([0.0, 0.0, dx, dy])
    shift = mean_shift(run, scene, replace(scene.cameras, intrinsics=moved))
    assert shift[0] - own_shift[0] == pytest.approx(dx, abs=MAX_SHIFT)
    assert shift[1] - own_shift[1] == pytest.approx(dy, abs=MAX_SHIFT)


def test_renders_at_twice_the_size_lie_on_the_photographs_too(run, scene):
    """Pixel centres at integers would cancel out at one size, and show as a shift at another."""
    assert max(abs(s) for s in mean_shift(run, scene, scene.cameras.rescaled(2.0))) < MAX_SHIFT


def mean_shift(run: diorama.LoadedRun, scene: Scene, cameras: Cameras) -> tuple[float, float]:
    """(dx, dy) that best moves photographs onto the renders of `cameras`, in pixels."""
    store = ImageStore(scene, 1.0)
    normal, right = torch.zeros(2, 2), torch.zeros(2)
    for index in scene.splits["test"]:
        photograph = over_background(store.rgba(index), torch.ones(3))
        size = scene.cameras.width(index), scene.cameras.height(index)
        render = resize_area(to_bytes(run.render(cameras[index]).rgb), *size).float() / 255
        matrix, vector = shift_equations(photograph, render)
        normal, right = normal + matrix, right + vector
    dx, dy = torch.linalg.solve(normal, right).tolist()
    return dx, dy


def shift_equations(photograph: Tensor, render: Tensor) -> tuple[Tensor, Tensor]:
    """Normal equations of render(x) = photograph(x - shift), to first order (Lucas-Kanade).

    Both are blurred first, so that gradients reach further than the shift and the render's
    softer detail does not matter.
    """
    a, b = blurred(photograph), blurred(render)
    gx = 0.5 * (a[1:-1, 2:] - a[1:-1, :-2]).reshape(-1)
    gy = 0.5 * (a[2:, 1:-1] - a[:-2, 1:-1]).reshape(-1)
    difference = (a - b)[1:-1, 1:-1].reshape(-1)
    gradient = torch.stack((gx, gy))
    return gradient @ gradient.T, gradient @ difference


def blurred(image: Tensor, sigma: float = 1.5) -> Tensor:
    x = torch.arange(-5.0, 6.0)
    kernel = torch.exp(-0.5 * (x / sigma) ** 2)
    kernel = (kernel / kernel.sum())[None, None]
    planes = image.permute(2, 0, 1)[:, None]
    planes = torch.nn.functional.conv2d(planes, kernel[..., None], padding=(5, 0))
    planes = torch.nn.functional.conv2d(planes, kernel[..., None, :], padding=(0, 5))
    return planes[:, 0, 5:-5, 5:-5].permute(1, 2, 0)


def test_a_config_trains_through_the_api(tmp_path: Path, trained):
    config = diorama.method_config(trained.method)
    model = diorama.load(trained.folder).config.model
    config = replace(config, max_steps=2, output_dir=tmp_path, quiet=True, model=model)
    run = diorama.train(config, data=trained.data)
    assert run.step == 2 and run.path.is_dir()

# SPDX-License-Identifier: Apache-2.0
"""Short trainings on balls of known depth: each option lowers the error that it is there for."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from diorama.cameras import CameraModel, Cameras
from diorama.config import ImageDataConfig
from diorama.data.image_manager import ImageDataManager
from diorama.data.scene import Scene
from diorama.engine.optimizers import optimizers_of
from diorama.errors import UserError
from diorama.methods.splat.config import SplatConfig, SplatOptimConfig
from diorama.methods.splat.density_config import AdaptiveConfig
from diorama.methods.splat.model import SplatModel
from diorama.scenes import load_procedural
from tests.data.made_scene import made_scene, with_depths

SIZE, VIEWS, STEPS = 32, 6, 60
BALLS = load_procedural("spheres")
CONFIG = SplatConfig(
    init="random", init_count=400, max_gaussians=400, sh_degree=0, ssim=0.0,
    background="black", image_every=0, histogram_every=0,
)  # fmt: skip


def bent(cameras: Cameras, distortion: float) -> Cameras:
    """Fisheyes in the place of pinholes, with one coefficient of distortion."""
    coefficients = torch.zeros(len(cameras), 9)
    coefficients[:, 0] = distortion
    model = torch.full_like(cameras.model, int(CameraModel.FISHEYE))
    return replace(cameras, model=model, distortion=coefficients)


@pytest.fixture(scope="module")
def scenes(tmp_path_factory) -> dict[str, Scene]:
    """The same photographs by three lenses."""
    lenses = {"pinhole": None, "fisheye": 0.0, "distorted fisheye": 0.05}
    return {name: photographed(tmp_path_factory.mktemp("lens"), k) for name, k in lenses.items()}


def photographed(folder: Path, distortion: float | None) -> Scene:
    """The procedural balls as pinholes see them, or fisheyes of this distortion, with depths."""
    scene = made_scene(folder, [(SIZE, SIZE)] * VIEWS)
    if distortion is not None:
        scene = replace(scene, cameras=bent(scene.cameras, distortion))
    depths = []
    for frame, camera in zip(scene.frames, scene.cameras, strict=True):
        truth = BALLS.render(camera, supersampling=1)
        rgba = torch.cat([truth.rgb, truth.alpha[..., None]], dim=-1)
        Image.fromarray((255 * rgba).round().byte().numpy()).save(frame.image_path)
        depths.append(torch.where(truth.alpha > 0.999, truth.depth, 0.0).numpy())
    return with_depths(scene, [np.asarray(depth) for depth in depths], unit=1.0)


class Names:
    """A log that keeps the names of images."""

    def __init__(self):
        self.images: list[str] = []

    def scalars(self, step: int, kind: str, values: Mapping[str, Any]) -> None:
        pass

    def image(self, step: int, name: str, rgb: Tensor) -> None:
        self.images.append(name)

    def histogram(self, step: int, name: str, values: Tensor) -> None:
        pass


def trained(scene: Scene, steps: int, log: Names | None = None, **options) -> SplatModel:
    """Without a log, the number of Gaussians stays the same."""
    torch.manual_seed(0)
    model = SplatModel(replace(CONFIG, **options), scene)
    optimizers = optimizers_of(model, SplatOptimConfig())
    data = ImageDataManager(ImageDataConfig(path=scene.root), scene)
    generator = torch.Generator().manual_seed(0)
    if log is not None:
        model.watch(log)
    calls = {callback.where: callback.call for callback in model.get_callbacks()}
    for step in range(steps):
        batch = data.next_train(step)
        optimizers.zero_grad()
        losses = model.get_loss_dict(model(batch, step, generator), batch)
        torch.stack(list(losses.values())).sum().backward()
        del losses  # a graph that lives on would remember how many Gaussians there were
        if log is not None:
            calls["before-update"](step)
        optimizers.step(step, 1000, 1.0)
        if log is not None:
            calls["after-step"](step)
    return model


def depth_error(model: SplatModel, scene: Scene) -> float:
    """Mean absolute error of the held-out view's depth where the truth and the model know it."""
    view = scene.splits["test"][0]
    truth = torch.from_numpy(np.load(scene.frames[view].image_path.with_suffix(".npy")))
    drawn = model.render(scene.cameras[view])
    is_known = (truth > 0) & (drawn.alpha > 0.5)
    assert int(is_known.sum()) > 40
    return float((drawn.depth - truth)[is_known].abs().mean())


def psnr(model: SplatModel, scene: Scene) -> float:
    """Of the held-out view, over black."""
    view = scene.splits["test"][0]
    rgba = np.asarray(Image.open(scene.frames[view].image_path)).astype(np.float32) / 255
    truth = torch.from_numpy(rgba[..., :3] * rgba[..., 3:])
    error = (model.render(scene.cameras[view]).rgb.clamp(0, 1) - truth).square().mean()
    return float(-10 * error.log10())


@pytest.mark.parametrize("lens", ["pinhole", "fisheye"])
def test_known_depths_are_learned(scenes: dict[str, Scene], lens: str):
    scene = scenes[lens]
    told = depth_error(trained(scene, STEPS, depth_loss=1.0), scene)
    untold = depth_error(trained(scene, STEPS), scene)
    assert told < 0.6 * untold


@pytest.mark.parametrize("lens", ["fisheye", "distorted fisheye"])
def test_fisheye_photographs_are_learned(scenes: dict[str, Scene], lens: str):
    scene = scenes[lens]
    before, after = psnr(trained(scene, 0), scene), psnr(trained(scene, STEPS), scene)
    assert after > before + 4


@pytest.mark.parametrize(("every", "count"), [(0, 0), (1, 4), (2, 2)])
def test_densification_is_plotted_as_often_as_wanted(
    scenes: dict[str, Scene], every: int, count: int
):
    log = Names()
    adaptive = AdaptiveConfig(warmup=0, every=1, plot_every=every, transparent=-9.0)
    trained(scenes["pinhole"], 4, log, density="adaptive", adaptive=adaptive)
    assert log.images.count("train/densify_points") == count


def test_depth_supervision_needs_depths(tmp_path: Path):
    scene = made_scene(tmp_path, [(8, 8)] * 3)
    with pytest.raises(UserError, match=r"--model\.depth-loss 0\.5: no training image of .* has a"):
        SplatModel(replace(CONFIG, depth_loss=0.5), scene)

# SPDX-License-Identifier: Apache-2.0
"""Evaluation: backgrounds, masks, plain numbers; and trained runs opened again."""

import json
import math
from dataclasses import replace

import pytest
import torch
from PIL import Image

from diorama.cameras import Cameras
from diorama.engine.evaluate import Evaluation, evaluate, image_metrics, over_background
from diorama.engine.load_run import evaluate_run, load_run
from diorama.engine.pipeline import Pipeline
from diorama.engine.trainer import Trainer
from diorama.errors import UserError
from diorama.metrics import psnr, ssim
from tests.engine.tiny import HEIGHT, WIDTH, TinyModel, default_for, tiny_config, tiny_scene


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return Trainer(tiny_config(tmp_path_factory.mktemp("run")), tiny_scene()).train()


def test_alpha_blends_the_photograph_over_the_background():
    rgba = torch.tensor([[[255, 0, 0, 255], [255, 0, 0, 0], [255, 0, 0, 51]]], dtype=torch.uint8)
    blended = over_background(rgba, torch.tensor([0.0, 1.0, 0.5]))
    expected = torch.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.5], [0.2, 0.8, 0.4]]])
    torch.testing.assert_close(blended, expected)


def test_masked_pixels_count_in_neither_metric():
    target = torch.rand((20, 20, 3), generator=torch.Generator().manual_seed(0))
    rgb = (target + 0.1).clamp(0, 1)
    weights = torch.ones(20, 20)
    weights[:, :10] = 0
    spoiled = torch.where(weights[..., None] > 0, rgb, torch.rand(20, 20, 3))
    first, second = (image_metrics(x, target, weights) for x in (rgb, spoiled))
    assert first["psnr"] == pytest.approx(second["psnr"])
    assert first["psnr"] == pytest.approx(float(psnr(rgb[:, 10:], target[:, 10:])), abs=1e-4)
    perfect = torch.where(weights[..., None] > 0, target, torch.rand(20, 20, 3))
    assert image_metrics(perfect, target, weights)["ssim"] == pytest.approx(1.0)
    assert image_metrics(rgb, target, torch.zeros(20, 20)) == {}


def test_metrics_are_those_of_the_clamped_render():
    target = torch.full((12, 12, 3), 1.0)
    assert image_metrics(torch.full((12, 12, 3), 3.0), target)["psnr"] == math.inf


def test_a_loss_mask_file_is_used(tmp_path):
    config = tiny_config(model={"noise": 0.0})
    scene = tiny_scene()
    mask = Image.new("L", (WIDTH, HEIGHT), 0)
    mask.paste(255, (0, 0, WIDTH // 2, HEIGHT))
    mask.save(tmp_path / "mask.png")
    frames = list(scene.frames)
    frames[4] = replace(frames[4], mask_path=tmp_path / "mask.png", raw_size=(WIDTH, HEIGHT))
    torch.manual_seed(0)
    pipeline = Pipeline(config.pipeline, scene, 0, torch.device("cpu"))
    masked = Pipeline(config.pipeline, replace(scene, frames=tuple(frames)), 0, pipeline.device)
    masked.model.load_state_dict(pipeline.model.state_dict())
    plain, with_mask = evaluate(pipeline), evaluate(masked)
    assert plain.images["005.png"] == with_mask.images["005.png"]
    assert plain.images["004.png"]["psnr"] != with_mask.images["004.png"]["psnr"]


def test_val_serves_when_there_is_no_test_split():
    scene = replace(tiny_scene(), splits={"train": (0, 1), "val": (2, 3), "test": ()})
    pipeline = Pipeline(tiny_config().pipeline, scene, 0, torch.device("cpu"))
    evaluation = evaluate(pipeline)
    assert (evaluation.split, list(evaluation.images)) == ("val", ["002.png", "003.png"])
    assert pipeline.model.training


def test_means_are_over_the_images_that_have_the_metric():
    evaluation = Evaluation("test", {"a": {"psnr": 20.0}, "b": {"psnr": 30.0, "x": 1.0}, "c": {}})
    assert evaluation.means == {"psnr": 25.0, "x": 1.0}


def test_a_run_renders_without_its_data(run):
    loaded = load_run(run, default_for=default_for)
    assert (loaded.step, loaded.config.method, loaded.scene.name) == (60, "tiny", "tiny picture")
    assert isinstance(loaded.model, TinyModel)
    assert not loaded.model.training
    output = loaded.model.render(loaded.scene.cameras[4])
    assert output.rgb.shape == (HEIGHT, WIDTH, 3)
    assert isinstance(loaded.scene.cameras, Cameras)
    assert loaded.model.max_steps == 60


def test_evaluating_a_run_again_gives_the_same_numbers(run):
    before = json.loads((run / "metrics.json").read_text())
    (run / "metrics.json").unlink()
    seen = []
    content = evaluate_run(run, scene=tiny_scene(), on_image=seen.append, default_for=default_for)
    assert content == {**before, "peak_memory_mb": content["peak_memory_mb"]}
    assert json.loads((run / "metrics.json").read_text()) == content
    assert [image.name for image in seen] == ["004.png", "005.png"]
    torch.testing.assert_close(
        content["images"][0]["ssim"],
        float(ssim(seen[0].output.rgb.double().clamp(0, 1), seen[0].target.double())),
    )
    with pytest.raises(UserError, match="the split 'val' has no images"):
        evaluate_run(run, scene=tiny_scene(), split="val", default_for=default_for)

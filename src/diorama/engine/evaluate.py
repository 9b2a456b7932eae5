# SPDX-License-Identifier: Apache-2.0
"""Held-out images rendered and measured; numbers come back as plain data.

Ground truth with alpha is blended over the model's background, as training does. Pixels that a
loss mask ignores do not count in PSNR (a soft mask weighs them). SSIM needs whole windows, so
there the ignored pixels of the photograph are filled from the render: they count as perfect.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from diorama.engine.pipeline import Pipeline
from diorama.engine.rng import preserved_rng
from diorama.metrics import psnr, ssim
from diorama.model import Model, RenderOutput


@dataclass(frozen=True)
class EvaluatedImage:
    """One held-out image: its name, its metrics, and for those who ask, its pixels."""

    name: str
    metrics: dict[str, float]
    output: RenderOutput
    target: Float[Tensor, "H W 3"]


@dataclass(frozen=True)
class Evaluation:
    """Metrics of the images of a split, by name, and their means."""

    split: str | None
    images: dict[str, dict[str, float]] = field(default_factory=dict)

    @property
    def means(self) -> dict[str, float]:
        """The mean of each metric over the images that have it."""
        names = sorted({name for metrics in self.images.values() for name in metrics})
        values = {n: [m[n] for m in self.images.values() if n in m] for n in names}
        return {name: sum(numbers) / len(numbers) for name, numbers in values.items()}

    def to_plain(self) -> dict[str, Any]:
        """Means and per-image values for a JSON file."""
        images = [{"name": name, **metrics} for name, metrics in self.images.items()]
        return {"split": self.split, "means": self.means, "images": images}


def evaluate(
    pipeline: Pipeline,
    split: str | None = None,
    positions: Sequence[int] | None = None,
    on_image: Callable[[EvaluatedImage], None] | None = None,
) -> Evaluation:
    """Render and measure the images at `positions` of `split` (unset: all of test, else of val).

    `on_image` sees each image as it is done; what it raises ends the evaluation. Nothing here
    changes the weights or any random state.
    """
    split = pipeline.held_out_split() if split is None else split
    names = pipeline.held_out_names(split)
    evaluation = Evaluation(split if names else None)
    was_training = pipeline.model.training
    pipeline.model.eval()
    try:
        with preserved_rng(), torch.no_grad():
            for k in range(len(names)) if positions is None else positions:
                assert split is not None, "positions are of a split"
                image = evaluate_image(pipeline, split, k)
                evaluation.images[image.name] = image.metrics
                if on_image is not None:
                    on_image(image)
    finally:
        pipeline.model.train(was_training)
    return evaluation


def evaluate_image(pipeline: Pipeline, split: str, k: int) -> EvaluatedImage:
    """Render and measure the k-th image of a split."""
    model, scene = pipeline.model, pipeline.scene
    index = pipeline.datamanager.eval_indices(split)[k]
    camera, rgba = pipeline.datamanager.eval_image(split, k)
    output = model.render(camera.to(pipeline.device))
    target = over_background(rgba.to(output.rgb.device), model.background.to(output.rgb.device))
    weights = pipeline.datamanager.eval_weights(split, k)
    weights = None if weights is None else weights.to(output.rgb.device).float() / 255
    metrics = image_metrics(output.rgb, target, weights) | _extra_metrics(model, output, target)
    return EvaluatedImage(scene.frames[index].name, metrics, output, target)


def image_metrics(
    rgb: Float[Tensor, "H W 3"],
    target: Float[Tensor, "H W 3"],
    weights: Float[Tensor, "H W"] | None = None,
) -> dict[str, float]:
    """PSNR and SSIM in double precision; an image that is ignored altogether has neither."""
    rgb, target = rgb.double().clamp(0, 1), target.double()
    if weights is None:
        return {"psnr": float(psnr(rgb, target)), "ssim": float(ssim(rgb, target))}
    weights = weights.double()
    if not bool(weights.any()):
        return {}
    filled = torch.lerp(rgb, target, weights[..., None])
    return {"psnr": float(psnr(rgb, target, weights)), "ssim": float(ssim(rgb, filled))}


def over_background(
    rgba: UInt8[Tensor, "H W 4"], background: Float[Tensor, "3"]
) -> Float[Tensor, "H W 3"]:
    """Straight colour blended over the background by alpha."""
    pixels = rgba.float() / 255
    return torch.lerp(background.expand_as(pixels[..., :3]), pixels[..., :3], pixels[..., 3:])


def _extra_metrics(
    model: Model, output: RenderOutput, target: Float[Tensor, "H W 3"]
) -> dict[str, float]:
    """What the method adds through an optional `get_image_metrics(output, target)`."""
    extra = getattr(model, "get_image_metrics", None)
    return {} if extra is None else {k: float(v) for k, v in extra(output, target).items()}

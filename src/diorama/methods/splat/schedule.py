# SPDX-License-Identifier: Apache-2.0
"""What changes with the step: bands of harmonics and the size of the images."""

from diorama.data.image_manager import ImageBatch
from diorama.data.resize import resize_area, resize_nearest
from diorama.methods.splat.config import SplatConfig


def active_degree(config: SplatConfig, step: int) -> int:
    """Bands that have joined by a step."""
    if config.sh_every <= 0:
        return config.sh_degree
    return min(config.sh_degree, step // config.sh_every)


def image_factor(config: SplatConfig, step: int) -> int:
    """How many times smaller the image of a step is."""
    if config.downscale <= 1:
        return 1
    return max(1, config.downscale >> (step // config.downscale_every))


def reduced(batch: ImageBatch, factor: int) -> ImageBatch:
    """The batch with everything `factor` times smaller, by area; depths by picking."""
    if factor <= 1:
        return batch
    height, width = batch.rgba.shape[:2]
    size = max(1, width // factor), max(1, height // factor)
    return ImageBatch(
        camera=batch.camera.resized(*size),
        image_index=batch.image_index,
        rgba=resize_area(batch.rgba, *size),
        weights=None if batch.weights is None else resize_area(batch.weights, *size),
        depth=None if batch.depth is None else resize_nearest(batch.depth, *size),
    )

# SPDX-License-Identifier: Apache-2.0
"""What changes with the step: bands of harmonics, the size of the images, the number of Gaussians.

Step numbers in the config are meant for the configured length of a run; where a time budget
shortens it, `squeeze` < 1 shortens them too.
"""

from diorama.data.image_manager import ImageBatch
from diorama.data.resize import resize_area, resize_nearest
from diorama.methods.splat.config import SplatConfig


def active_degree(config: SplatConfig, step: int, squeeze: float = 1.0) -> int:
    """Bands that have joined by a step."""
    if config.sh_every <= 0:
        return config.sh_degree
    return min(config.sh_degree, int(step / (config.sh_every * squeeze)))


def image_factor(config: SplatConfig, step: int, squeeze: float = 1.0) -> int:
    """How many times smaller the image of a step is."""
    if config.downscale <= 1:
        return 1
    return max(1, config.downscale >> int(step / (config.downscale_every * squeeze)))


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


def is_due(step: int, every: float) -> bool:
    """Whether a multiple of `every` (perhaps no whole number) is reached by `step` for the first
    time."""
    return every > 0 and int(step / every) > int((step - 1) / every)


def budget_at(share: float, first: int, last: int) -> int:
    """Gaussians that may exist after a share of the growing time: quick first, then ever slower,
    first + (last - first) (2 t - t^2) (Taming 3DGS, equation 2)."""
    t = min(max(share, 0.0), 1.0)
    return first + int((last - first) * (2 * t - t * t))

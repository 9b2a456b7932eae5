# SPDX-License-Identifier: Apache-2.0
"""Images decoded once to learn what is in them: brightness, coverage, duplicates, damage."""

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import torch
from jaxtyping import UInt8
from torch import Tensor

from diorama.data.image_store import has_loss_mask, load_depth, load_loss_mask, load_rgba
from diorama.data.resize import resize_area
from diorama.data.scene import Scene

MAX_DECODED_PIXELS = 1_000_000_000
"""Larger data sets are sampled evenly: about twenty seconds of decoding on two cores."""
NUM_THUMBNAILS = 24
_THUMBNAIL_SIDE = 400


@dataclass(frozen=True)
class ImageFacts:
    """What one decoded image holds."""

    index: int
    brightness: float
    """Mean over the opaque part, 0..1."""
    contrast: float
    """Standard deviation over the opaque part, 0..1."""
    coverage: float
    """Mean alpha, 0..1."""
    mask_coverage: float | None
    """Share of pixels that a loss mask keeps."""
    depth_coverage: float | None
    """Share of pixels with a known depth."""
    digest: bytes
    """Equal for equal pictures."""
    thumbnail: UInt8[Tensor, "h w 4"] | None


def choose_images(scene: Scene, is_full: bool = False) -> list[int]:
    """The frames to decode: all, or an even sample of a large data set."""
    count = len(scene.frames)
    raw = [max(1, frame.raw_size[0] * frame.raw_size[1]) for frame in scene.frames]
    if is_full or sum(raw) <= MAX_DECODED_PIXELS:
        return list(range(count))
    affordable = max(NUM_THUMBNAILS, count * MAX_DECODED_PIXELS // sum(raw))
    return evenly(count, min(affordable, count))


def evenly(count: int, wanted: int) -> list[int]:
    """At most `wanted` of the numbers below `count`, evenly spaced, both ends included."""
    if wanted >= count:
        return list(range(count))
    if wanted == 1:
        return [0]
    return [round(k * (count - 1) / (wanted - 1)) for k in range(wanted)]


def survey(scene: Scene, indices: list[int]) -> Iterator[ImageFacts]:
    """Decode the frames in order, two at a time; a damaged file is a `UserError`."""
    shown = {indices[k] for k in evenly(len(indices), NUM_THUMBNAILS)}
    with ThreadPoolExecutor(2, thread_name_prefix="diorama-survey") as pool:
        try:
            yield from pool.map(lambda index: _facts(scene, index, index in shown), indices)
        finally:
            pool.shutdown(cancel_futures=True)


def _facts(scene: Scene, index: int, is_shown: bool) -> ImageFacts:
    rgba = load_rgba(scene, index)
    mask = load_loss_mask(scene, index) if has_loss_mask(scene, index) else None
    depth = None if scene.frames[index].depth_path is None else load_depth(scene, index)
    alpha = rgba[..., 3].float() / 255
    grey = rgba[..., :3].float().mean(-1) / 255
    total = float(alpha.sum())
    brightness = float((grey * alpha).sum()) / total if total > 0 else 0.0
    variance = float(((grey - brightness).square() * alpha).sum()) / total if total > 0 else 0.0
    return ImageFacts(
        index=index,
        brightness=brightness,
        contrast=variance**0.5,
        coverage=float(alpha.mean()),
        mask_coverage=None if mask is None else float((mask > 0).float().mean()),
        depth_coverage=None if depth is None else float((depth > 0).float().mean()),
        digest=hashlib.blake2b(rgba.numpy().tobytes(), digest_size=16).digest(),
        thumbnail=_thumbnail(rgba) if is_shown else None,
    )


def _thumbnail(rgba: UInt8[Tensor, "H W 4"]) -> UInt8[Tensor, "h w 4"]:
    height, width = rgba.shape[:2]
    scale = min(1.0, _THUMBNAIL_SIDE / max(height, width))
    small = resize_area(rgba, max(1, round(width * scale)), max(1, round(height * scale)))
    return small if small is not rgba else torch.clone(rgba)

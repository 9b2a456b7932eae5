# SPDX-License-Identifier: Apache-2.0
"""Training rays with the pixels they must match, drawn anew from the step number each time."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from diorama.cameras import Cameras, Rays
from diorama.config import RayDataConfig
from diorama.data.drawn_pixels import PATCH_SIZE, TRIES, DrawnPixels, for_detail, with_patches
from diorama.data.image_store import GIGABYTE, ImageStore
from diorama.data.manager import SceneManager, mixed_seed
from diorama.data.resident_window import ResidentWindow
from diorama.data.scene import Scene
from diorama.errors import UserError

_WINDOW_SHARE = 0.9
"""Of the cache, when the training images do not fit it; the rest keeps held-out images."""


CAPTURE_PATCHES = 0.125
"""The share of a capture's batch that are patches, if the config leaves it open. Rays of one patch
tell less than as many single ones, and an object's surfaces are learned without them."""


@dataclass(frozen=True)
class RayBatch:
    """R training rays and what was photographed along them."""

    rays: Rays
    pixels: Float[Tensor, "R 4"]
    """Straight red, green, blue and alpha in 0..1."""
    weights: Float[Tensor, " R"]
    """The loss mask: 1 where a pixel counts (everywhere, without masks), 0 where it does not."""
    image_index: Int[Tensor, " R"]
    """Index of the frame in the scene."""
    xy: Float[Tensor, "R 2"]
    """Pixel coordinates; centres are at +0.5."""
    depth: Float[Tensor, " R"] | None
    """z-depth in the normalised frame, 0 where unknown; None if no image has depth."""
    num_patches: int = 0
    """So many patches of PATCH_SIZE neighbouring pixels come first (`data/drawn_pixels.py`)."""

    def to(self, device: torch.device | str) -> "RayBatch":
        """The same batch on another device."""
        return RayBatch(
            rays=self.rays.to(device),
            pixels=self.pixels.to(device),
            weights=self.weights.to(device),
            image_index=self.image_index.to(device),
            xy=self.xy.to(device),
            depth=None if self.depth is None else self.depth.to(device),
            num_patches=self.num_patches,
        )


class RayDataManager(SceneManager):
    """Batches of random pixels; a batch is a function of (seed, step, num_rays) and nothing else.

    Each training image is equally likely, and so is each pixel within it, but for the share of a
    batch that looks for `detail`. Pixels that a mask excludes are drawn too and get weight 0: the
    number of rays stays what was asked for, and a method may still use them. Training images that
    exceed `cache_gb` pass through a `ResidentWindow`, which is a function of the step as well.
    """

    def __init__(
        self,
        config: RayDataConfig,
        scene: Scene,
        seed: int = 0,
        device: torch.device | str = "cpu",
    ):
        super().__init__(config, scene, seed, device)
        _check(config)
        self.config = config
        self.num_rays = config.rays
        unset = 0.0 if scene.kind == "object" else CAPTURE_PATCHES
        self.patches = unset if config.patches is None else config.patches
        cache = int(config.cache_gb * GIGABYTE)
        train = scene.splits["train"]
        self._window = ResidentWindow(scene, train, cache, mixed_seed("rays", seed, "order"))
        if not self._window.holds_all:
            share = int(cache * _WINDOW_SHARE)
            self._window = ResidentWindow(scene, train, share, mixed_seed("rays", seed, "order"))
        self.store = ImageStore(scene, max(0, cache - self._window.reserved_bytes) / GIGABYTE)

    def next_train(self, step: int) -> RayBatch:
        """The batch of a step, `num_rays` long."""
        self._window.advance(step)
        generator = torch.Generator().manual_seed(mixed_seed("rays", self.seed, step))
        num_detailed = round(self.config.detail * self.num_rays)
        num_drawn = self.num_rays + (TRIES - 1) * num_detailed
        drawn = self._draw(num_drawn, step, generator)
        drawn = for_detail(drawn, num_detailed, self._window)
        in_patches = min(round(self.patches * self.num_rays), self.num_rays - num_detailed)
        num_patches = in_patches // PATCH_SIZE
        drawn = with_patches(drawn, num_patches)
        rgba, mask, depth = self._window.gather(drawn.slot, drawn.offset)
        xy = drawn.xy + 0.5
        weights = torch.ones(self.num_rays) if mask is None else mask / 255
        rays = self.scene.cameras.rays(drawn.image, xy.to(self.scene.cameras.intrinsics))
        batch = RayBatch(rays, rgba / 255, weights, drawn.image, xy, depth, num_patches)
        return batch if self.device.type == "cpu" else batch.to(self.device)

    def restart(self) -> None:
        """Begin anew, as after a dead start: batches have their first length again."""
        self.num_rays = self.config.rays

    def _draw(self, num: int, step: int, generator: torch.Generator) -> DrawnPixels:
        slot = self._draw_slots(num, generator)
        image = self._window.image_of_slot[slot]
        size = self.scene.cameras.size[image]
        corner, extent = self._crop(size, step)
        fraction = torch.rand((num, 2), generator=generator)
        # The product may round up to the extent itself, which is one pixel too far.
        xy = corner + torch.minimum((fraction * extent).long(), extent - 1)
        return DrawnPixels(slot, image, size, xy)

    def _draw_slots(self, num: int, generator: torch.Generator) -> Int[Tensor, " N"]:
        num_slots = self._window.capacity
        if self.config.sampling == "per-image":
            return torch.randint(num_slots, (1,), generator=generator).expand(num)
        return torch.randint(num_slots, (num,), generator=generator)

    def _crop(
        self, size: Int[Tensor, "R 2"], step: int
    ) -> tuple[Int[Tensor, "R 2"] | int, Int[Tensor, "R 2"]]:
        """Corner and extent of the pixels in use: in the first steps, the centre of the image."""
        if step >= self.config.precrop_steps:
            return 0, size
        half = (size // 2 * self.config.precrop_fraction).long()
        return size // 2 - half, (2 * half).clamp(min=1)

    def eval_image(self, split: str, k: int) -> tuple[Cameras, UInt8[Tensor, "H W 4"]]:
        """Camera and picture of the k-th image of a split."""
        index = self.eval_indices(split)[k]
        return self.scene.cameras[index].to(self.device), self.store.rgba(index).to(self.device)

    def eval_weights(self, split: str, k: int) -> UInt8[Tensor, "H W"] | None:
        """Loss mask of the k-th image of a split; None: all pixels count."""
        return self.store.loss_mask(self.eval_indices(split)[k])

    def state_dict(self) -> dict[str, Any]:
        """What a batch depends on beside the step."""
        return super().state_dict() | {"num_rays": self.num_rays}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on as the manager that wrote this state; the data set must be the same."""
        super().load_state_dict(state)
        self.num_rays = int(state["num_rays"])


def _check(config: RayDataConfig) -> None:
    if config.rays < 1:
        raise UserError(f"--data.rays must be at least 1, got {config.rays}.")
    if not 0 <= config.detail <= 1:
        raise UserError(f"--data.detail must be between 0 and 1, got {config.detail}.")
    if config.patches is not None and not 0 <= config.patches <= 1:
        raise UserError(f"--data.patches must be between 0 and 1, got {config.patches}.")
    if not 0 < config.precrop_fraction <= 1:
        raise UserError(
            f"--data.precrop-fraction must be above 0 and at most 1, got {config.precrop_fraction}."
        )

# SPDX-License-Identifier: Apache-2.0
"""Whole training images in rounds: each once per round, in an order that the round's number fixes.

Images are seen again without distortion (`straight_camera`): methods that draw whole images
cannot follow a bent ray.
"""

import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from diorama.cameras import CameraModel, Cameras, resample_image, resample_nearest
from diorama.cameras.straight import is_straight, straight_camera
from diorama.config import ImageDataConfig
from diorama.data.image_store import GIGABYTE, has_loss_mask, load_depth, load_loss_mask, load_rgba
from diorama.data.manager import SceneManager, mixed_seed
from diorama.data.scene import Scene
from diorama.errors import UserError


@dataclass(frozen=True)
class ImageBatch:
    """One image and the camera that took it."""

    camera: Cameras
    """A `Cameras` of length 1, without distortion."""
    image_index: int
    """Index of the frame in the scene."""
    rgba: UInt8[Tensor, "H W 4"]
    """Straight red, green, blue and alpha."""
    weights: UInt8[Tensor, "H W"] | None
    """The loss mask: 255 where a pixel counts, 0 where it does not; None: all count."""
    depth: Float[Tensor, "H W"] | None
    """z-depth in the normalised frame, 0 where unknown; None without a depth file."""

    @property
    def nbytes(self) -> int:
        """Memory of the pixels."""
        maps = (self.rgba, self.weights, self.depth)
        return sum(pixels.nbytes for pixels in maps if pixels is not None)

    def to(self, device: torch.device | str) -> "ImageBatch":
        """The same batch on another device."""
        return replace(
            self,
            camera=self.camera.to(device),
            rgba=self.rgba.to(device),
            weights=None if self.weights is None else self.weights.to(device),
            depth=None if self.depth is None else self.depth.to(device),
        )


class ImageDataManager(SceneManager):
    """One image per step; which one is a function of (seed, step) and nothing else.

    Decoded images stay in a cache of `cache_gb`; while one is in use, a thread decodes the next.
    """

    def __init__(
        self,
        config: ImageDataConfig,
        scene: Scene,
        seed: int = 0,
        device: torch.device | str = "cpu",
    ):
        super().__init__(config, scene, seed, device)
        _refuse_panoramas(scene)
        self._train = scene.splits["train"]
        self._cache = _ImageCache(scene, int(config.cache_gb * GIGABYTE))

    def next_train(self, step: int) -> ImageBatch:
        """The image of a step."""
        batch = self._cache.get(self.image_at(step))
        self._cache.expect(self.image_at(step + 1))
        self.num_rays = batch.rgba.shape[0] * batch.rgba.shape[1]
        return batch if self.device.type == "cpu" else batch.to(self.device)

    @property
    def num_cached_bytes(self) -> int:
        """Memory of the decoded images that are kept."""
        return self._cache.num_bytes

    def image_at(self, step: int) -> int:
        """Index of the frame that a step trains on."""
        turn, place = divmod(step, len(self._train))
        generator = torch.Generator().manual_seed(mixed_seed("images", self.seed, turn))
        order = torch.randperm(len(self._train), generator=generator)
        return self._train[int(order[place])]

    def restart(self) -> None:
        """Nothing to forget: images depend on the step alone."""

    def eval_image(self, split: str, k: int) -> tuple[Cameras, UInt8[Tensor, "H W 4"]]:
        """Camera and picture of the k-th image of a split, both without distortion."""
        batch = self._cache.get(self.eval_indices(split)[k])
        return batch.camera.to(self.device), batch.rgba.to(self.device)

    def eval_weights(self, split: str, k: int) -> UInt8[Tensor, "H W"] | None:
        """Loss mask of the k-th image of a split; None: all pixels count."""
        return self._cache.get(self.eval_indices(split)[k]).weights


class _ImageCache:
    """Decoded images by frame index, the least recently used ones dropped beyond `max_bytes`."""

    def __init__(self, scene: Scene, max_bytes: int):
        self._scene, self._max_bytes, self.num_bytes = scene, max_bytes, 0
        self._kept: OrderedDict[int, ImageBatch] = OrderedDict()
        self._one_at_a_time = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None

    def get(self, index: int) -> ImageBatch:
        """The image, decoded now unless it is kept or on its way."""
        with self._one_at_a_time:
            if index in self._kept:
                self._kept.move_to_end(index)
                return self._kept[index]
            batch = load_image(self._scene, index)
            self._kept[index] = batch
            self.num_bytes += batch.nbytes
            while self.num_bytes > self._max_bytes and len(self._kept) > 1:
                _, oldest = self._kept.popitem(last=False)
                self.num_bytes -= oldest.nbytes
            return batch

    def expect(self, index: int) -> None:
        """Decode the image in the background if it is not kept; errors appear in `get`."""
        if index in self._kept:
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="diorama-decode")
        self._pool.submit(self.get, index)


def load_image(scene: Scene, index: int) -> ImageBatch:
    """One frame decoded from disk and seen through its straight camera."""
    camera = scene.cameras[index]
    rgba = load_rgba(scene, index)
    weights = load_loss_mask(scene, index) if has_loss_mask(scene, index) else None
    has_depth = scene.frames[index].depth_path is not None
    depth = load_depth(scene, index) if has_depth else None
    if is_straight(camera):
        return ImageBatch(camera, index, rgba, weights, depth)
    straight = straight_camera(camera)
    rgba, has_source = resample_image(rgba, camera, straight)
    if weights is not None:
        weights = resample_image(weights[..., None], camera, straight)[0][..., 0]
    if not bool(has_source.all()):
        weights = torch.full_like(rgba[..., 0], 255) if weights is None else weights
        weights = torch.where(has_source, weights, 0)
    if depth is not None:
        depth = torch.where(has_source, resample_nearest(depth, camera, straight), 0.0)
    return ImageBatch(straight, index, rgba, weights, depth)


def _refuse_panoramas(scene: Scene) -> None:
    if bool((scene.cameras.model == int(CameraModel.EQUIRECTANGULAR)).any()):
        raise UserError(
            f"{scene.root}: it has panoramas, which this method cannot draw; cut them into"
            " perspective views, or train nerfacto or ngp."
        )

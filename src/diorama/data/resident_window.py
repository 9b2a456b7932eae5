# SPDX-License-Identifier: Apache-2.0
"""The part of a training set that is in memory at a step, as one flat buffer of pixels.

Images are laid on a circle in an order that the seed fixes. At step `t` the window holds the
`capacity` images that follow position `t // STEPS_PER_IMAGE`: every so many steps one image leaves
and the next one enters, so each image stays equally long, and the window is a function of the
step alone. While it is in use a thread decodes the one that enters next.
"""

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from diorama.data.image_store import (
    bytes_per_pixel,
    has_loss_mask,
    load_depth,
    load_loss_mask,
    load_rgba,
)
from diorama.data.scene import Scene

STEPS_PER_IMAGE = 16
"""Steps between two changes of the window: decoding then costs little beside training."""

_NUM_THREADS = 4
"""A constant, because the window's size, and so every batch, follows from it."""


@dataclass(frozen=True)
class _Decoded:
    """The pixels of one image, flattened."""

    rgba: UInt8[Tensor, "P 4"]
    mask: UInt8[Tensor, " P"] | None
    depth: Float[Tensor, " P"] | None


class ResidentWindow:
    """Pixels of as many training images as fit `max_bytes` (at least one), in `slots`.

    `image_of_slot` names the image in each slot after `advance(step)`.
    """

    def __init__(self, scene: Scene, indices: tuple[int, ...], max_bytes: int, seed: int):
        self.scene = scene
        order = torch.randperm(len(indices), generator=torch.Generator().manual_seed(seed))
        num_pixels = scene.cameras.size[list(indices)].prod(-1)
        pixel_bytes = bytes_per_pixel(scene, indices)
        largest, self._num_ahead = int(num_pixels.max()), _NUM_THREADS
        self.holds_all = int(num_pixels.sum()) * pixel_bytes <= max_bytes
        if self.holds_all:
            order = torch.arange(len(indices))
            self.capacity = len(indices)
            stop = num_pixels.cumsum(0)
            self.offsets, total = stop - num_pixels, int(stop[-1])
        else:
            # Images being decoded are in memory beside the window, and count.
            fitting = max_bytes // (largest * pixel_bytes)
            self._num_ahead = _NUM_THREADS if fitting >= 4 * _NUM_THREADS else 1
            self.capacity = max(1, min(fitting - self._num_ahead, len(indices) - 1))
            self.offsets, total = torch.arange(self.capacity) * largest, self.capacity * largest
        self.order: list[int] = [indices[i] for i in order.tolist()]
        self.image_of_slot: Int[Tensor, " K"] = torch.full((self.capacity,), -1)
        self.nbytes = total * pixel_bytes
        self.reserved_bytes = self.nbytes
        if not self.holds_all:
            self.reserved_bytes += self._num_ahead * largest * pixel_bytes
        self._total = total
        self._position = -1
        self._rgba: Tensor | None = None
        self._mask: Tensor | None = None
        self._depth: Tensor | None = None
        self._next: tuple[int, Future[_Decoded]] | None = None
        self._pool: ThreadPoolExecutor | None = None

    def images_at(self, step: int) -> list[int]:
        """The image of each slot at a step; the image at circle position p sits in slot p mod K."""
        if self.holds_all:
            return self.order
        first = step // STEPS_PER_IMAGE
        slots = [0] * self.capacity
        for position in range(first, first + self.capacity):
            slots[position % self.capacity] = self.order[position % len(self.order)]
        return slots

    def advance(self, step: int) -> None:
        """Bring the window to `step`; cheap when nothing changes, any step may follow any."""
        position = 0 if self.holds_all else step // STEPS_PER_IMAGE
        if position == self._position:
            return
        self._allocate()
        wanted, held = self.images_at(step), self.image_of_slot.tolist()
        changed = [slot for slot in range(self.capacity) if wanted[slot] != held[slot]]
        futures: dict[int, Future[_Decoded]] = {}
        for place, slot in enumerate(changed):
            for near in changed[place : place + self._num_ahead]:
                if near not in futures:
                    futures[near] = self._decoding(wanted[near])
            self._fill(slot, futures.pop(slot).result())
            self.image_of_slot[slot] = wanted[slot]
        self._position = position
        if self.holds_all:
            self._close()
        else:
            coming = self.order[(position + self.capacity) % len(self.order)]
            if coming not in wanted:
                self._next = coming, self._decoding(coming)

    def gather(
        self, slots: Int[Tensor, " R"], pixels: Int[Tensor, " R"]
    ) -> tuple[UInt8[Tensor, "R 4"], UInt8[Tensor, " R"] | None, Float[Tensor, " R"] | None]:
        """Colour and alpha, loss mask and depth of the given pixels (row-major in their image)."""
        if self._rgba is None:
            raise ValueError("advance the window to a step before gathering from it")
        index = self.offsets[slots] + pixels
        # Four bytes move as one word.
        rgba = self._rgba.view(torch.int32).view(-1)[index].view(torch.uint8).view(-1, 4)
        mask = None if self._mask is None else self._mask[index]
        depth = None if self._depth is None else self._depth[index]
        return rgba, mask, depth

    def _allocate(self) -> None:
        if self._rgba is not None:
            return
        frames = [self.scene.frames[i] for i in self.order]
        self._rgba = torch.zeros((self._total, 4), dtype=torch.uint8)
        if any(has_loss_mask(self.scene, i) for i in self.order):
            self._mask = torch.full((self._total,), 255, dtype=torch.uint8)
        if any(frame.depth_path is not None for frame in frames):
            self._depth = torch.zeros(self._total)

    def _decoding(self, index: int) -> Future[_Decoded]:
        """The image on its way: already begun if it was expected."""
        if self._next is not None:
            (expected, future), self._next = self._next, None
            if expected == index:
                return future
            # Memory is bounded by waiting for what nobody needs any more.
            if not future.cancel():
                future.exception()
        if self._pool is None:
            self._pool = ThreadPoolExecutor(_NUM_THREADS, thread_name_prefix="diorama-decode")
        return self._pool.submit(self._decode, index)

    def _decode(self, index: int) -> _Decoded:
        mask = depth = None
        if self._mask is not None and has_loss_mask(self.scene, index):
            mask = load_loss_mask(self.scene, index).flatten()
        if self._depth is not None and self.scene.frames[index].depth_path is not None:
            depth = load_depth(self.scene, index).flatten()
        return _Decoded(load_rgba(self.scene, index).flatten(0, 1), mask, depth)

    def _fill(self, slot: int, decoded: _Decoded) -> None:
        start = int(self.offsets[slot])
        span = slice(start, start + len(decoded.rgba))
        assert self._rgba is not None, "the buffer is allocated before it is filled"
        self._rgba[span] = decoded.rgba
        if self._mask is not None:
            self._mask[span] = 255 if decoded.mask is None else decoded.mask
        if self._depth is not None:
            self._depth[span] = 0 if decoded.depth is None else decoded.depth

    def _close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

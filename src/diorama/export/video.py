# SPDX-License-Identifier: Apache-2.0
"""Frames to an mp4 that browsers and phones play."""

import contextlib
import os
from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import torch
from jaxtyping import UInt8
from torch import Tensor

from diorama.errors import UserError

# The first one that this build of FFmpeg has; the second is H.264 too, the last is everywhere.
_CODECS = ("libx264", "libopenh264", "mpeg4")


def write_video(
    path: Path,
    frames: Iterable[UInt8[Tensor, "H W 3"]],
    fps: float | int = 30,
    quality: int = 18,
) -> str:
    """Encode frames as they come and return the codec's name; all of the file or none.

    `quality` is x264's constant rate factor: 18 is visually lossless, +6 halves the size. Odd
    sizes get one more row or column, a copy of the last, because 4:2:0 video has even sizes.
    """
    if not fps > 0:
        raise ValueError(f"fps must be positive, got {fps}")
    import av
    from av.error import FFmpegError

    codec = _first_codec()
    first, frames = _peek(frames)
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with av.open(str(partial), "w", format="mp4", options={"movflags": "+faststart"}) as out:
            stream: Any = out.add_stream(codec, rate=Fraction(fps).limit_denominator(1001))
            stream.height, stream.width = (side + side % 2 for side in first.shape[:2])
            stream.pix_fmt = "yuv420p"
            stream.options = {"crf": str(quality)} if codec == "libx264" else {"qscale": "3"}
            if codec != "libx264":
                stream.bit_rate = max(1_000_000, int(0.2 * stream.width * stream.height * fps))
            for frame in frames:
                picture = av.VideoFrame.from_ndarray(_even(frame, first).numpy(), format="rgb24")
                out.mux(stream.encode(picture))
            out.mux(stream.encode())
        partial.replace(path)
    except (FFmpegError, OSError) as error:
        raise UserError(f"{path}: the video cannot be written ({error.strerror}).") from error
    finally:
        with contextlib.suppress(OSError):
            partial.unlink()
    return codec


def _first_codec() -> str:
    from av.codec import Codec
    from av.error import FFmpegError

    for name in _CODECS:
        try:
            Codec(name, "w")
        except (FFmpegError, ValueError):
            continue
        return name
    raise UserError("no video encoder was found; reinstall the package av (PyAV).")


def _peek(frames: Iterable[Tensor]) -> tuple[Tensor, Iterator[Tensor]]:
    """The first frame, and all of them."""
    iterator = iter(frames)
    first = next(iterator, None)
    if first is None:
        raise ValueError("a video needs at least one frame")

    def everything() -> Iterator[Tensor]:
        yield first
        yield from iterator

    return first, everything()


def _even(frame: UInt8[Tensor, "H W 3"], first: Tensor) -> UInt8[Tensor, "h w 3"]:
    if frame.shape != first.shape:
        raise ValueError(f"all frames must be {tuple(first.shape)}, got {tuple(frame.shape)}")
    frame = frame.cpu()
    height, width = frame.shape[:2]
    if height % 2:
        frame = torch.cat([frame, frame[-1:]])
    if width % 2:
        frame = torch.cat([frame, frame[:, -1:]], dim=1)
    return frame.contiguous()

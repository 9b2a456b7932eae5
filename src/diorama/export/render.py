# SPDX-License-Identifier: Apache-2.0
"""A model rendered along cameras into PNGs and videos, one frame in memory at a time."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from diorama.cameras import Cameras
from diorama.data.images import read_image
from diorama.errors import UserError
from diorama.export.png import depth_image, to_bytes, write_png
from diorama.export.video import write_video
from diorama.model import Model, RenderOutput


def render_images(
    model: Model,
    cameras: Cameras,
    outputs: Sequence[str],
    folder: Path,
    on_frame: Callable[[int], None] | None = None,
) -> list[Path]:
    """Write FOLDER/OUTPUT/00000.png ... for each output; returns the outputs' folders."""
    for name in outputs:
        _remove_frames(folder / name)
    limits: tuple[float, float] | None = None
    for index in range(len(cameras)):
        view = model.render(cameras[index])
        # One range of depths for the whole path, or the colours would flicker.
        limits = limits or depth_range(view)
        for name in outputs:
            write_png(folder / name / f"{index:05d}.png", picture(view, name, limits).cpu())
        if on_frame is not None:
            on_frame(index + 1)
    return [folder / name for name in outputs]


def render_videos(
    model: Model,
    cameras: Cameras,
    outputs: Sequence[str],
    folder: Path,
    fps: float = 30.0,
    keep_images: bool = True,
    on_frame: Callable[[int], None] | None = None,
) -> list[Path]:
    """Write FOLDER/OUTPUT.mp4 for each output, and the frames as PNGs if they are kept."""
    if len(cameras.size.unique(dim=0)) > 1:
        raise UserError("the path's cameras have several sizes and make no video; add --no-video.")
    with tempfile.TemporaryDirectory() as spare:
        stills = folder if keep_images else Path(spare)
        folders = render_images(model, cameras, outputs, stills, on_frame)
        videos = [folder / f"{name}.mp4" for name in outputs]
        for video, images in zip(videos, folders, strict=True):
            write_video(video, _read_back(images, len(cameras)), fps)
    return videos


def _remove_frames(folder: Path) -> None:
    """Take away the frames of an earlier, longer path; nothing else in the folder."""
    for old in folder.glob("[0-9][0-9][0-9][0-9][0-9].png"):
        old.unlink()


def _read_back(folder: Path, count: int) -> Iterator[UInt8[Tensor, "H W 3"]]:
    for index in range(count):
        yield read_image(folder / f"{index:05d}.png")[..., :3]


def picture(
    view: RenderOutput, name: str, limits: tuple[float, float] | None = None
) -> UInt8[Tensor, "H W 3"]:
    """One output as something to look at."""
    if name == "rgb":
        return to_bytes(view.rgb)
    if name == "depth":
        return depth_image(view.depth, view.alpha, limits)
    if name == "alpha":
        return _grey(view.alpha)
    if name == "normal" and view.normal is not None:
        return to_bytes(0.5 + 0.5 * view.normal)
    if name in view.extras:
        return _extra_picture(view, name, limits)
    raise UserError(f"--outputs {name}: this method does not render it.")


def _extra_picture(
    view: RenderOutput, name: str, limits: tuple[float, float] | None
) -> UInt8[Tensor, "H W 3"]:
    values = view.extras[name]
    if name == "median_depth":
        return depth_image(values, view.alpha, limits)
    if name == "photographed":  # a share: 0 and 1 mean the same in every frame
        return _grey(values)
    if values.dim() == 2:
        return _grey(values / values.max().clamp(min=1e-9))
    return to_bytes(values)


def depth_range(view: RenderOutput) -> tuple[float, float] | None:
    """The middle 98 % of the depths that are seen; None where nothing is."""
    seen = view.depth[(view.alpha > 0.5) & view.depth.isfinite()].flatten()
    if len(seen) == 0:
        return None
    low, high = torch.quantile(seen[:: max(1, len(seen) // 100_000)], seen.new_tensor([0.01, 0.99]))
    return low.item(), high.item()


def _grey(values: Float[Tensor, "H W"]) -> UInt8[Tensor, "H W 3"]:
    return to_bytes(values)[..., None].expand(*values.shape, 3).contiguous()

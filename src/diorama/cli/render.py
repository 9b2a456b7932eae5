# SPDX-License-Identifier: Apache-2.0
"""`diorama render RUN`: a run or a splat file seen along a camera path, as images and a video."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, get_args

import tyro

from diorama.cli.arguments import parse
from diorama.errors import UserError

DESCRIPTION = "Render a run or a splat file along a camera path; the data set need not be there."
REPORT_SECONDS = 5.0
Output = Literal[
    "rgb", "depth", "alpha", "normal", "median_depth", "disparity", "photographed"
]  # fmt: skip


@dataclass(frozen=True)
class RenderConfig:
    """What to render, and to where."""

    run: tyro.conf.Positional[Path]
    """The run folder, one of its checkpoints, a folder above runs (the last is taken), or a splat
    file (.ply, .splat, .spz, .glb, .gltf, .parquet)."""
    path: str = "auto"
    """auto, orbit, spiral, tour, train, val, test, or a camera path's JSON file."""
    frames: int = 60
    """Frames of an orbit, spiral or tour."""
    outputs: tuple[Output, ...] = ("rgb",)
    """What to render. All methods: rgb, depth, alpha. All but nerf: normal, in the scene's axes.
    Splats and nerfacto: median_depth. nerf: disparity. nerfacto: photographed, white where training
    pixels show what is seen."""
    scale: float = 1.0
    """Size of the pictures relative to the photographs'; intrinsics follow."""
    fps: float | None = None
    """Frames per second of the video; unset: the path's own, or 30."""
    images: bool = True
    """Write each frame as a PNG."""
    video: bool = True
    """Write an mp4 per output."""
    output: Path | None = None
    """Folder to write to; unset: RUN/renders/PATH, or NAME_renders/PATH beside a splat file."""
    up: Literal["x", "y", "z", "-x", "-y", "-z"] = "-y"
    """The axis of a splat file that points up (write --up=-z for a negative one)."""
    device: str = "auto"
    """cpu, cuda, ...; auto takes CUDA when there is one."""
    threads: int | None = None
    """CPU threads; unset takes all cores."""
    quiet: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Print nothing but errors and the folder."""


def main(arguments: list[str]) -> None:
    """Render and print the folder."""
    options = parse(RenderConfig, arguments, "diorama render", DESCRIPTION)
    _check(options)
    from diorama.api import load
    from diorama.cli.running import shown, tell
    from diorama.engine.device import use_threads
    from diorama.export.camera_path import camera_path
    from diorama.export.render import render_images, render_videos

    use_threads(options.threads)
    run = load(options.run, options.device, options.up)
    tell(run.notes, options.quiet)
    path = camera_path(run.scene, options.path, options.frames)
    if run.path.is_file():
        said = f"{options.up} is taken for up, for splat files do not tell; --up names another."
        tell([said], options.quiet)
    cameras = path.cameras if options.scale == 1.0 else path.cameras.rescaled(options.scale)
    folder = options.output or _renders(run.path) / Path(options.path).stem
    on_frame = None if options.quiet else _progress(len(cameras))
    if options.video:
        fps = options.fps or path.fps
        written = render_videos(
            run.model, cameras, options.outputs, folder, fps, options.images, on_frame
        )
    else:
        written = render_images(run.model, cameras, options.outputs, folder, on_frame)
    if not options.quiet:
        for file in written:
            print(shown(file))
    print(shown(folder))


def _check(options: RenderConfig) -> None:
    if options.frames < 1:
        raise UserError(f"--frames must be at least 1, got {options.frames}.")
    if not 0 < options.scale <= 16:
        raise UserError(f"--scale must be above 0 and at most 16, got {options.scale}.")
    if options.fps is not None and not 0 < options.fps <= 1000:
        raise UserError(f"--fps must be above 0 and at most 1000, got {options.fps}.")
    if not (options.images or options.video):
        raise UserError("nothing to write: drop --no-images or --no-video.")
    if not options.outputs:
        raise UserError(f"--outputs: name at least one of {', '.join(get_args(Output))}.")


def _renders(run: Path) -> Path:
    return run.with_name(f"{run.stem}_renders") if run.is_file() else run / "renders"


def _progress(total: int) -> Callable[[int], None]:
    """Say now and then how many frames are done."""
    last = time.monotonic()

    def on_frame(done: int) -> None:
        nonlocal last
        if done == total or time.monotonic() - last > REPORT_SECONDS:
            last = time.monotonic()
            print(f"rendered {done}/{total} frames", flush=True)

    return on_frame

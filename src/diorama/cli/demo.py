# SPDX-License-Identifier: Apache-2.0
"""`diorama demo`: trains the scene that comes along, measures it, and shows the pictures."""

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from diorama.cli.arguments import parse
from diorama.config import DataConfig, TrainerConfig
from diorama.methods.ngp.config import NgpConfig
from diorama.methods.registry import method_config

if TYPE_CHECKING:
    from torch import Tensor

    from diorama.model import Model

DESCRIPTION = "Train on the embedded scene and write a turntable video and a contact sheet."
METHOD = "ngp-fast"
SHEET_VIEWS = 4


@dataclass(frozen=True)
class DemoConfig:
    """How long, and to where."""

    output_dir: Path = Path("demo")
    """Folder for the run, the video and the contact sheet."""
    max_steps: int = 2000
    """Steps to train."""
    max_minutes: float | None = None
    """Time budget of the training, within those steps."""
    frames: int = 48
    """Frames of the turntable."""
    seed: int = 0
    """Seeds everything."""
    threads: int | None = None
    """CPU threads; unset takes all cores."""
    quiet: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Print nothing but errors and the run folder."""


def main(arguments: list[str]) -> None:
    """Train, evaluate, render, and say what to try next."""
    options = parse(DemoConfig, arguments, "diorama demo", DESCRIPTION)
    from diorama.api import load
    from diorama.cli.running import run_to_end, shown
    from diorama.engine.disk import read_json
    from diorama.engine.run_folder import RunFolder
    from diorama.engine.trainer import Trainer
    from diorama.export.camera_path import camera_path
    from diorama.export.png import write_png
    from diorama.export.render import render_videos
    from diorama.scenes import make_scene

    say = (lambda _: None) if options.quiet else print
    say("Making the scene (once; it is cached).")
    config = _for_small_pictures(method_config(METHOD))
    config = replace(
        config,
        output_dir=options.output_dir / "runs",
        max_minutes=options.max_minutes,
        max_steps=options.max_steps,
        seed=options.seed,
        threads=options.threads,
        quiet=options.quiet,
        data=replace(config.data, path=make_scene("tabletop")),
    )
    run_folder = run_to_end(Trainer(config).train)
    means = read_json(RunFolder(run_folder).metrics_file)["means"]
    say(f"Held-out views: PSNR {means['psnr']:.2f} dB, SSIM {means['ssim']:.3f}.")
    say("Rendering the turntable.")
    run = load(run_folder)
    cameras = camera_path(run.scene, "orbit", options.frames).cameras
    turntable = render_videos(run.model, cameras, ["rgb"], options.output_dir, keep_images=False)
    video = turntable[0].replace(options.output_dir / "turntable.mp4")
    sheet = options.output_dir / "contact_sheet.png"
    write_png(sheet, _contact_sheet(run.model, config.data))
    say(f"\nThe turntable:      {shown(video.absolute())}")
    say(f"The contact sheet:  {shown(sheet.absolute())}   (photograph | render | depth)")
    say("\nTry next, on pictures of your own:")
    say(f"  {_program()} inspect PHOTOS")
    say(f"  {_program()} train {METHOD} --data PHOTOS --max-minutes 10\n")
    print(shown(run_folder))


def _program() -> str:
    """How this program was called, so that the next command can be copied."""
    called = Path(sys.argv[0])
    return str(called) if called.name == "diorama" else "diorama"


def _for_small_pictures(config: TrainerConfig) -> TrainerConfig:
    """Pictures of 160 pixels need coarser grids, and a short training smaller steps."""
    assert isinstance(config.model, NgpConfig)
    model = replace(config.model, max_resolution=512, grid_resolution=64, sample_budget=1 << 14)
    return replace(config, model=model)


def _contact_sheet(model: "Model", data: DataConfig) -> "Tensor":
    """Held-out photographs, each beside its render and its depth."""
    from diorama.data.image_store import ImageStore
    from diorama.data.load import load_scene
    from diorama.export.contact_sheet import contact_sheet
    from diorama.export.render import picture

    scene = load_scene(data)
    store = ImageStore(scene, data.cache_gb)
    images, labels = [], []
    for index in scene.splits["test"][:SHEET_VIEWS]:
        view = model.render(scene.cameras[index])
        images += [store.rgba(index), picture(view, "rgb"), picture(view, "depth")]
        labels += [f"{scene.frames[index].name}: photograph", "render", "depth"]
    return contact_sheet(images, labels, columns=6)

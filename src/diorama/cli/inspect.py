# SPDX-License-Identifier: Apache-2.0
"""`diorama inspect DATA`: what a user needs to know to trust a data set, in text and a picture."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import tyro

from diorama.cli.arguments import parse
from diorama.config import DataConfig
from diorama.errors import UserError
from diorama.scenes.locate import data_folder

DESCRIPTION = "Look at a data set before training on it: a report here, a picture in a PNG."


@dataclass(frozen=True)
class InspectConfig:
    """What to look at."""

    path: tyro.conf.Positional[Annotated[Path | None, tyro.conf.arg(metavar="DATA")]] = None
    """The data set's folder (or its JSON file); scene:tabletop is the one we bring along."""
    output: Path | None = None
    """The picture to write; unset writes inspect-NAME.png here."""
    full: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Decode every image, also of a large data set, which is otherwise sampled."""
    data: DataConfig = field(default_factory=DataConfig)
    """How to read it."""


def main(arguments: list[str]) -> None:
    """Print the report and write the picture; damaged images are `UserError`s."""
    config = parse(InspectConfig, arguments, "diorama inspect", DESCRIPTION)
    path = config.path or config.data.path
    if path is None:
        raise UserError("inspect what? diorama inspect DATA, where DATA is the data set's folder.")
    inspect(replace(config, data=replace(config.data, path=data_folder(path))))


def inspect(config: InspectConfig) -> None:
    """Report on `config.data`."""
    from rich.console import Console
    from rich.progress import track

    from diorama.cli.inspect_picture import inspection_picture
    from diorama.cli.inspect_report import report_lines
    from diorama.data.load import load_scene
    from diorama.data.survey import choose_images, survey
    from diorama.data.suspicions import suspicions
    from diorama.export.png import write_png

    console = Console(highlight=False, soft_wrap=True)
    scene = load_scene(config.data)
    chosen = choose_images(scene, config.full)
    looking = track(
        survey(scene, chosen),
        description="looking at the images",
        total=len(chosen),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    facts = list(looking)
    found = suspicions(scene, facts)
    console.print(f"\n{scene.name}", style="bold", markup=False)
    for label, text in report_lines(scene, facts, config.data):
        console.print(f"  {label:<11}{text}", markup=False)
    output = config.output or Path(f"inspect-{scene.name}.png")
    write_png(output, inspection_picture(scene, facts))
    console.print(f"  {'picture':<11}{output}\n", markup=False)
    if not found:
        console.print("Nothing looks suspicious.", style="green")
    else:
        console.print("Worth a look", style="bold yellow")
        for sentence in found:
            console.print(f"  - {sentence}", markup=False)

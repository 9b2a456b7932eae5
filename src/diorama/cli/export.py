# SPDX-License-Identifier: Apache-2.0
"""`diorama export RUN KIND -o FILE`: what a run has learned as a file for other programs."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from diorama.cli.arguments import parse, take_word
from diorama.errors import UserError


@dataclass(frozen=True)
class SplatsConfig:
    """Which splats, and to which file."""

    run: tyro.conf.Positional[Path]
    """The run folder, one of its checkpoints, a folder above runs, or a splat file to convert."""
    output: Annotated[Path | None, tyro.conf.arg(aliases=["-o"], metavar="FILE")] = None
    """The file: .ply, .compressed.ply, .splat, .spz, .glb, .gltf or .parquet;
    unset: RUN/exports/splats.ply."""
    compressed: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Write a .ply as NAME.compressed.ply: 16 bytes a splat, and one per harmonic."""
    spz_version: Literal[2, 3, 4] = 4
    """Version of an .spz file; older programs want an older one."""
    min_opacity: float = 0.0
    """Leave out splats that are more transparent than this."""
    max_splats: int | None = None
    """Keep this many, those with the largest opacity times volume."""
    crop: tuple[float, float, float, float, float, float] | None = None
    """Keep centres within xmin ymin zmin xmax ymax zmax, in your own coordinates."""
    quiet: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Print nothing but errors and the file."""


def export_splats(options: SplatsConfig) -> None:
    """Write the splats in the user's coordinates and print what the file cannot hold."""
    from diorama.api import load
    from diorama.cli.running import shown, tell
    from diorama.export.splats import SplatChoice, chosen_splats, user_splats
    from diorama.splats import write_splats

    choice = SplatChoice(options.min_opacity, options.crop, options.max_splats)
    run = load(options.run, "cpu")
    tell(run.notes, options.quiet)
    output = options.output or _in_run(run.path, "splats.ply")
    if options.compressed:
        output = _compressed(output)
    every = user_splats(run.model, run.scene, shown(run.path))
    splats = chosen_splats(every, choice)
    _make_folder(output.parent)
    notes = write_splats(splats, output, spz_version=options.spz_version)
    if not options.quiet:
        print(f"{len(splats)} of {len(every)} splats in your coordinates")
        for note in notes:
            print(note)
    print(shown(output))


@dataclass(frozen=True)
class Kind:
    """Something that can be exported: its flags, and what does it."""

    summary: str
    config: type
    export: Callable[[Any], None]


KINDS = {"splats": Kind("Gaussian splats", SplatsConfig, export_splats)}


def main(arguments: list[str]) -> None:
    """Export one kind of thing and print the file."""
    word, flags = take_word(arguments, list(KINDS))
    if word not in KINDS:
        if {"-h", "--help"} & set(arguments):
            print(_help())
            sys.exit()
        raise UserError(f"export what? diorama export RUN KIND; KIND is one of {', '.join(KINDS)}.")
    kind = KINDS[word]
    description = f"Export a run's {kind.summary[0].lower() + kind.summary[1:]}."
    kind.export(parse(kind.config, flags, f"diorama export RUN {word}", description))


def _in_run(run: Path, name: str) -> Path:
    if run.is_file():
        raise UserError(f"{run}: name the file to write; add -o FILE.")
    return run / "exports" / name


def _compressed(output: Path) -> Path:
    if output.suffix.lower() != ".ply":
        raise UserError(f"--compressed is for .ply files; {output.name} is none.")
    is_named_so = output.name.lower().endswith(".compressed.ply")
    return output if is_named_so else output.with_suffix(".compressed.ply")


def _make_folder(folder: Path) -> None:
    from diorama.data.paths import disk_error

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise disk_error(folder, error) from error


def _help() -> str:
    kinds = "\n".join(f"  {name:<10}{kind.summary}" for name, kind in KINDS.items())
    return (
        "usage: diorama export RUN KIND [-o FILE] [flags in any order]\n\n"
        f"{kinds}\n\ndiorama export {next(iter(KINDS))} --help lists the flags of a kind."
    )

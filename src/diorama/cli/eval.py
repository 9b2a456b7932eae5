# SPDX-License-Identifier: Apache-2.0
"""`diorama eval RUN`: metrics of the held-out images, per image and mean, into metrics.json."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from diorama.cli.arguments import parse

DESCRIPTION = "Measure a run on its held-out images; the result is its metrics.json."


@dataclass(frozen=True)
class EvalConfig:
    """Which run, on which images."""

    run: tyro.conf.Positional[Path]
    """The run folder, one of its checkpoints, or a folder above runs (the last is taken)."""
    data: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None
    """Where the data set lies now, if it was moved."""
    split: Literal["train", "val", "test"] | None = None
    """Which images; unset: test, or val where there is no test."""
    save_images: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Also write truth and render side by side to RUN/renders/eval."""
    device: str = "auto"
    """cpu, cuda, ...; auto takes CUDA when there is one."""
    threads: int | None = None
    """CPU threads; unset takes all cores."""
    quiet: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Print nothing but errors and the path of metrics.json."""


def main(arguments: list[str]) -> None:
    """Evaluate, print a table, write metrics.json."""
    options = parse(EvalConfig, arguments, "diorama eval", DESCRIPTION)
    import torch

    from diorama.cli.running import shown
    from diorama.engine.device import use_threads
    from diorama.engine.evaluate import EvaluatedImage
    from diorama.engine.load_run import evaluate_run
    from diorama.engine.run_folder import find_run
    from diorama.export.png import write_png

    use_threads(options.threads)
    folder = find_run(options.run).folder
    pictures = folder.renders / (f"eval-{options.split}" if options.split else "eval")

    def on_image(image: EvaluatedImage) -> None:
        if not options.quiet:
            numbers = "  ".join(f"{name} {value:.4f}" for name, value in image.metrics.items())
            print(f"{image.name:<28} {numbers}", flush=True)
        if options.save_images:
            pair = torch.cat((image.target, image.output.rgb), dim=1)
            name = image.name.replace("/", "_").removesuffix(".png")
            write_png(pictures / f"{name}.png", pair.cpu())

    def on_note(note: str) -> None:
        if not options.quiet:
            print(note)

    metrics = evaluate_run(
        options.run, options.data, options.device, options.split, on_image, on_note
    )
    if not options.quiet:
        means = "  ".join(f"{name} {value:.4f}" for name, value in metrics["means"].items())
        print(f"{'mean of ' + str(len(metrics['images'])):<28} {means}")
        if options.save_images:
            print(f"truth | render: {shown(pictures)}")
    print(shown(folder.metrics_file))

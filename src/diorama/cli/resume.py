# SPDX-License-Identifier: Apache-2.0
"""`diorama resume RUN`: goes on exactly where the run's newest whole checkpoint was taken."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import tyro

from diorama.cli.arguments import parse
from diorama.config import TrainerConfig

DESCRIPTION = "Go on with an interrupted run, or train a finished one further."


@dataclass(frozen=True)
class ResumeConfig:
    """Which run, and what may change."""

    run: tyro.conf.Positional[Path]
    """The run folder, one of its checkpoints, or a folder above runs (the last is taken)."""
    data: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None
    """Where the data set lies now, if it was moved."""
    max_steps: int | None = None
    """Train up to this step instead of the run's own end (and without its time budget)."""
    max_minutes: float | None = None
    """Another time budget for the whole run, what is trained already included."""
    device: str | None = None
    """Another device than the run's."""
    threads: int | None = None
    """Another number of CPU threads than the run's (the last bits may then differ)."""
    quiet: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Print nothing but errors and the run folder."""


def main(arguments: list[str]) -> None:
    """Resume and print the run folder."""
    options = parse(ResumeConfig, arguments, "diorama resume", DESCRIPTION)
    from diorama.cli.running import run_to_end, shown
    from diorama.engine.progress import make_reporter
    from diorama.engine.trainer import Trainer

    reporter = make_reporter(options.quiet)
    run = run_to_end(
        lambda: Trainer.resume(options.run, lambda c: _changed(c, options), reporter=reporter)
    )
    print(shown(run))


def _changed(config: TrainerConfig, options: ResumeConfig) -> TrainerConfig:
    """The run's config with the options that were given."""
    if options.data is not None:
        config = replace(config, data=replace(config.data, path=options.data))
    if options.max_steps is not None:
        config = replace(config, max_minutes=None)
    given = {
        name: getattr(options, name)
        for name in ("max_steps", "max_minutes", "device", "threads")
        if getattr(options, name) is not None
    }
    return replace(config, **given)

# SPDX-License-Identifier: Apache-2.0
"""`diorama train METHOD --data DATA`: a run folder is the result, its path the last line."""

from dataclasses import replace

from diorama.cli.arguments import parse, take_word
from diorama.config import TrainerConfig
from diorama.errors import UserError
from diorama.methods.registry import list_methods, method_config

DESCRIPTION = "Train a method on a data set. Flags may stand in any order."


def main(arguments: list[str]) -> None:
    """Train and print the run folder."""
    names = [entry.name for entry in list_methods()]
    method, flags = take_word(arguments, names)
    if method is None:
        if {"-h", "--help"} & set(arguments):
            print(_help(names))
            return
        raise UserError(f"which method? diorama train METHOD --data DATA; {_choices(names)}.")
    default = method_config(method)
    config = parse(type(default), flags, f"diorama train {method}", DESCRIPTION, default)
    train_and_report(config)


def train_and_report(config: TrainerConfig) -> None:
    """Run a config to its end; the last line printed is the run folder."""
    from diorama.cli.running import run_to_end, shown
    from diorama.engine.trainer import Trainer
    from diorama.scenes.locate import data_folder

    if config.data.path is None:
        raise UserError(
            "train on what? Give --data DATA, the data set's folder, or --data scene:tabletop."
        )
    config = replace(config, data=replace(config.data, path=data_folder(config.data.path)))
    print(shown(run_to_end(Trainer(config).train)))


def _choices(names: list[str]) -> str:
    return f"METHOD is one of {', '.join(names)}"


def _help(names: list[str]) -> str:
    return (
        "usage: diorama train METHOD --data DATA [flags in any order]\n\n"
        f"{_choices(names)}.\n"
        f"diorama train {names[0]} --help lists the method's flags."
    )

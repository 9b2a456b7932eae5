# SPDX-License-Identifier: Apache-2.0
"""`diorama methods`: what can be trained, built in or plugged in, and which plug-in is broken."""

from dataclasses import dataclass

from diorama.cli.arguments import parse
from diorama.errors import UserError
from diorama.methods.registry import MethodEntry, list_methods, method_config

DESCRIPTION = "List the methods that `diorama train` knows."


@dataclass(frozen=True)
class MethodsConfig:
    """There is nothing to choose."""


def main(arguments: list[str]) -> None:
    """Print a table; a broken plug-in gets a line of its own and harms nothing else."""
    parse(MethodsConfig, arguments, "diorama methods", DESCRIPTION)
    entries = list_methods()
    width = max(len(entry.name) for entry in entries) + 2
    for entry in entries:
        print(f"{entry.name:<{width}}{_describe(entry)}")


def _describe(entry: MethodEntry) -> str:
    if entry.source == "built in":
        return entry.summary
    try:
        method_config(entry.name)
    except UserError as error:
        return f"broken: {error}"
    return f"plug-in of {entry.source}"

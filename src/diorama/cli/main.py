# SPDX-License-Identifier: Apache-2.0
"""`diorama VERB ...`: finds the verb, imports it alone, and turns user errors into one line."""

import difflib
import importlib
import os
import sys

from diorama import __version__
from diorama.cli.memory import keep_freed_memory
from diorama.errors import UserError

VERBS = {
    "train": "train a method on a data set",
    "resume": "go on with an interrupted run",
    "eval": "measure a run on its held-out images",
    "render": "render a run or a splat file along a camera path to images and video",
    "export": "write what a run has learned to a file for other programs",
    "inspect": "look at a data set before training on it",
    "methods": "list the methods, built in and plugged in",
    "bench": "measure the kernels against torch and against this machine",
    "demo": "train the scene that comes along and show the result",
}
USAGE_ERROR = 2


def main(argv: list[str] | None = None) -> None:
    """Run one verb; exit code 2 means the user can fix it."""
    arguments = sys.argv[1:] if argv is None else argv
    try:
        _run(arguments)
        sys.stdout.flush()
    except UserError as error:
        print(f"diorama: {error}", file=sys.stderr)
        sys.exit(USAGE_ERROR)
    except BrokenPipeError:
        # The reader of our output (head, less) has gone; that is no error of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _run(arguments: list[str]) -> None:
    verb = arguments[0] if arguments else "--help"
    if verb in ("-h", "--help", "help"):
        print(_help())
    elif verb == "--version":
        print(f"diorama {__version__}")
    else:
        _run_verb(verb, arguments[1:])


def _run_verb(verb: str, arguments: list[str]) -> None:
    if verb not in VERBS:
        close = difflib.get_close_matches(verb, VERBS, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(VERBS)}."
        raise UserError(f"there is no verb {verb!r}; {hint}")
    keep_freed_memory()
    importlib.import_module(f"diorama.cli.{verb}").main(arguments)


def _help() -> str:
    width = max(map(len, VERBS)) + 2
    verbs = "\n".join(f"  {verb:<{width}}{summary}" for verb, summary in VERBS.items())
    return (
        "usage: diorama VERB ... (diorama VERB --help tells more)\n\n"
        "Photographs in, 3-D scene out.\n\n"
        f"{verbs}\n\n"
        "First steps:\n"
        "  diorama demo\n"
        "  diorama inspect DATA\n"
        "  diorama train ngp-fast --data DATA --max-minutes 10"
    )

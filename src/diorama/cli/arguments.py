# SPDX-License-Identifier: Apache-2.0
"""Typed command-line parsing for all verbs: flags in any order, errors that teach, exit code 2."""

import contextlib
import io
import re
from typing import Any, TypeVar

import tyro

from diorama.errors import UserError

T = TypeVar("T")


def parse(
    kind: type[T], arguments: list[str], prog: str, description: str, default: Any = None
) -> T:
    """The arguments as a `kind`, laid over `default` where one is given.

    `--help` prints and exits 0. A wrong flag is a `UserError` that names the nearest right one.
    """
    options = {} if default is None else {"default": default}
    told = io.StringIO()
    try:
        with contextlib.redirect_stderr(told):
            return tyro.cli(
                kind,
                args=arguments,
                prog=prog,
                description=description,
                config=(tyro.conf.OmitSubcommandPrefixes,),
                **options,
            )
    except SystemExit as exit_request:
        if not exit_request.code:
            raise
        raise UserError(_one_sentence(told.getvalue(), prog)) from None


def _one_sentence(told: str, prog: str) -> str:
    """tyro's box of advice as one line without its frame."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", told)
    lines = [line.strip(" │╭╮╰╯─\t") for line in text.splitlines()]
    # Rules are dashes where the terminal knows no better.
    lines = [line for line in lines if line.strip("-")]
    kept = [line for line in lines if not line.startswith("For full helptext")]
    sentence = re.sub(r"\s+", " ", " ".join(kept)).strip()
    more = f"{prog} --help lists every flag."
    unknown = re.search(r"Unrecognized options: (\S+?),?(?= |$)", sentence)
    if unknown:
        nearest = re.search(r"Perhaps you meant:? (--[\w.-]+)", sentence)
        hint = f"did you mean {nearest[1]}? " if nearest else ""
        return f"there is no flag {unknown[1]}; {hint}{more}"
    missing = re.search(r"Missing from .*?: (\S+) (.*?) ?\(required\)", sentence)
    if missing:
        name, meaning = missing.groups()
        return f"{name} is missing: {meaning[:1].lower()}{meaning[1:]} {more}"
    sentence = re.sub(
        r"^(Parsing error|Value error|Invalid choice|Missing argument) ?", "", sentence
    )
    sentence = sentence.split(" Argument helptext:")[0]
    return f"{sentence.rstrip('.')}; {more}"


def take_word(arguments: list[str], known: list[str]) -> tuple[str | None, list[str]]:
    """Take the positional word (a method's name) out of arguments in any order.

    A known name that does not follow a flag is preferred, because after a flag it may be the
    flag's value; then any known name; then a first argument that is no flag (to be refused by
    name later).
    """
    candidates = [i for i, word in enumerate(arguments) if word in known]
    free = [i for i in candidates if i == 0 or not _takes_a_value(arguments[i - 1])]
    if not candidates and arguments and not arguments[0].startswith("-"):
        candidates = [0]
    if not (free or candidates):
        return None, arguments
    index = (free or candidates)[0]
    return arguments[index], arguments[:index] + arguments[index + 1 :]


def _takes_a_value(word: str) -> bool:
    return word.startswith("-") and "=" not in word

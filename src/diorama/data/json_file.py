# SPDX-License-Identifier: Apache-2.0
"""JSON from strangers: bounded, strict about numbers, and every mistake names file and field."""

import json
import math
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from diorama.data.paths import read_bytes
from diorama.errors import UserError

MAX_JSON_BYTES = 256 * 2**20
MAX_RECORDS = 1_000_000


class Fields:
    """A JSON object with typed, checked access; `where` begins every message."""

    def __init__(self, data: Any, where: str):
        if not isinstance(data, dict):
            raise UserError(f"{where}: expected an object with named fields, got {kind_of(data)}.")
        self.data = data
        self.where = where

    def __contains__(self, key: str) -> bool:
        return self.data.get(key) is not None

    def number(self, key: str) -> float | None:
        """A finite number, or None when the field is absent."""
        return None if key not in self else finite(self.data[key], f"{self.where}: {key}")

    def positive(self, key: str) -> float | None:
        """A finite number above zero, or None when the field is absent."""
        value = self.number(key)
        if value is not None and value <= 0:
            raise UserError(f"{self.where}: {key} must be above zero, got {value:g}.")
        return value

    def scale(self, key: str) -> float | None:
        """A factor or length between 1e-6 and 1e6, or None when the field is absent."""
        value = self.number(key)
        if value is not None and not 1e-6 <= value <= 1e6:
            raise UserError(f"{self.where}: {key} must lie between 1e-6 and 1e6, got {value:g}.")
        return value

    def text(self, key: str) -> str | None:
        """A text, or None when the field is absent."""
        value = self.data.get(key)
        if value is not None and not isinstance(value, str):
            raise UserError(f"{self.where}: {key} must be a text, got {kind_of(value)}.")
        return value

    def items(self, key: str) -> list[Any] | None:
        """A list, or None when the field is absent."""
        value = self.data.get(key)
        if value is not None and not isinstance(value, list):
            raise UserError(f"{self.where}: {key} must be a list, got {kind_of(value)}.")
        return value

    def array(self, key: str, *shapes: tuple[int, ...]) -> np.ndarray | None:
        """Nested lists of finite numbers in one of `shapes`, or None when the field is absent."""
        if key not in self:
            return None
        value, where = self.data[key], f"{self.where}: {key}"
        found = _shape(value)
        if found not in shapes:
            expected = " or ".join("x".join(map(str, shape)) for shape in shapes)
            got = "x".join(map(str, found)) if found else "a ragged or empty list"
            raise UserError(f"{where} must be {expected} numbers, got {got}.")
        flat = [finite(item, where) for item in _leaves(value)]
        return np.array(flat, dtype=np.float64).reshape(found)

    def refuse(self, key: str, expected: str) -> NoReturn:
        """Raise for a required field that is missing or wrong."""
        raise UserError(f"{self.where}: {key} is missing; expected {expected}.")


def read_json(path: Path) -> Fields:
    """The JSON object in `path`."""
    return Fields(_load(path), str(path))


def read_records(path: Path) -> list[Fields]:
    """The objects of a JSON file that is a list of them; there is at least one."""
    data = _load(path)
    if not isinstance(data, list) or not data:
        raise UserError(f"{path}: expected a list of records, got {kind_of(data)}.")
    if len(data) > MAX_RECORDS:
        raise UserError(f"{path}: {len(data)} records are more than we read.")
    return [Fields(entry, f"{path}: record {index}") for index, entry in enumerate(data)]


def _load(path: Path) -> Any:
    raw = read_bytes(path, MAX_JSON_BYTES)
    try:
        return json.loads(raw.decode("utf-8-sig"), parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}: not UTF-8 text (byte {error.start}); save it as UTF-8."
        ) from error
    except json.JSONDecodeError as error:
        raise UserError(
            f"{path}: not valid JSON at line {error.lineno}, column {error.colno} ({error.msg})."
        ) from error
    except RecursionError as error:
        raise UserError(f"{path}: nested too deeply to be a scene description.") from error
    except ValueError as error:
        raise UserError(f"{path}: {error}; numbers must be finite and of sane length.") from error


def finite(value: Any, where: str) -> float:
    """`value` as a float, refused unless it is a finite JSON number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UserError(f"{where} must be a number, got {kind_of(value)}.")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise UserError(f"{where} must be a finite number, got {value!r:.40}.")
    return number


def kind_of(value: Any) -> str:
    """A short description of a JSON value for messages."""
    return f"{type(value).__name__} {value!r:.40}" if value is not None else "nothing"


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"the number {text} is not allowed")


def _shape(value: Any) -> tuple[int, ...]:
    """The shape of nested lists; empty when they are ragged, and for anything deeper than two."""
    if not isinstance(value, list) or not value:
        return ()
    if all(isinstance(row, list) for row in value):
        widths = {len(row) for row in value}
        return (len(value), widths.pop()) if len(widths) == 1 else ()
    return () if any(isinstance(item, list) for item in value) else (len(value),)


def _leaves(value: list[Any]) -> list[Any]:
    return [item for row in value for item in (row if isinstance(row, list) else [row])]

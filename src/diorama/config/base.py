# SPDX-License-Identifier: Apache-2.0
"""The base of every config, and its round trip through plain JSON data."""

import dataclasses
import importlib
import math
import types
import typing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from diorama.errors import UserError

C = TypeVar("C")


@dataclass(frozen=True)
class Config:
    """A frozen description of one part; `setup()` builds the part it describes.

    The class to build is named by a string, `module:Class`, so that importing a config never
    imports torch.
    """

    target: ClassVar[str] = ""

    def setup(self, *args: Any, **kwargs: Any) -> Any:
        """Build the object this config describes, passing the config first."""
        module_name, _, class_name = self.target.partition(":")
        if not (module_name and class_name):
            raise UserError(
                f"{type(self).__name__}.target must be 'module:Class', {self.target!r}."
            )
        try:
            kind = getattr(importlib.import_module(module_name), class_name)
        except (ModuleNotFoundError, AttributeError) as error:
            raise UserError(
                f"{type(self).__name__} names {self.target!r}, which cannot be imported ({error}); "
                "reinstall the package that this method comes from."
            ) from error
        return kind(self, *args, **kwargs)


def to_plain(value: Any) -> Any:
    """The value as nested dicts, lists and scalars: all that JSON knows and nothing that runs."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    if isinstance(value, Path):
        return value.as_posix()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise ValueError(f"a config may hold plain data only, got {type(value).__name__}")


def from_plain(default: C, data: Any, where: str = "config") -> tuple[C, list[str]]:
    """`default` with the values of `data` laid over it, and the keys that no field claims.

    Missing keys keep the default; a value of the wrong type is a `UserError` naming its key.
    """
    if not isinstance(data, dict):
        raise UserError(f"{where}: expected an object with named fields, got {_name_of(data)}.")
    hints = typing.get_type_hints(type(default))
    fields = {f.name: f for f in dataclasses.fields(default)}  # type: ignore[arg-type]
    unknown = [f"{where}.{key}" for key in data if key not in fields]
    values: dict[str, Any] = {}
    for key in fields.keys() & data.keys():
        current, name = getattr(default, key), f"{where}.{key}"
        if dataclasses.is_dataclass(current):
            values[key], deeper = from_plain(current, data[key], name)
            unknown += deeper
        else:
            values[key] = _typed(hints[key], data[key], name)
    return dataclasses.replace(default, **values), sorted(unknown)  # type: ignore[type-var]


def _typed(hint: Any, value: Any, where: str) -> Any:
    """`value` read as the type `hint`, for the few types that configs use."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return _typed(args[0], value, where)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in args:
            return None
        (inner,) = [arg for arg in args if arg is not type(None)]
        return _typed(inner, value, where)
    if origin is typing.Literal:
        if value in args:
            return value
        raise UserError(f"{where}: must be one of {', '.join(map(str, args))}, got {value!r}.")
    if origin is tuple and isinstance(value, list):
        inner = args[:1] * len(value) if args[-1] is Ellipsis else args
        if len(inner) == len(value):
            return tuple(
                _typed(t, v, f"{where}[{i}]")
                for i, (t, v) in enumerate(zip(inner, value, strict=True))
            )
    if hint is Path and isinstance(value, str):
        return Path(value)
    if hint in (bool, str) and isinstance(value, hint):
        return value
    # JSON's true is a Python int, and a config's number is not.
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if hint is float and not math.isnan(value):
            return float(value)
        if hint is int and isinstance(value, int):
            return value
    raise UserError(f"{where}: expected {getattr(hint, '__name__', hint)}, got {_name_of(value)}.")


def _name_of(value: Any) -> str:
    return f"{type(value).__name__} {value!r}"[:80]

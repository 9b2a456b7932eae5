# SPDX-License-Identifier: Apache-2.0
"""Typed access to the fields of a camera path file; every complaint names file, place and fix."""

import math
from collections.abc import Mapping
from typing import Any, TypeVar

import torch
from torch import Tensor

from diorama.cameras.number import Number
from diorama.errors import UserError

T = TypeVar("T")


class PathFields:
    """One JSON object of a path file, together with where it stands."""

    def __init__(self, place: str, fields: Mapping[str, Any]) -> None:
        self._place = place
        self._fields = fields

    def __contains__(self, key: str) -> bool:
        return key in self._fields

    def error(self, complaint: str) -> UserError:
        """The error to raise: the place, what is wrong there, and where the schema is written."""
        return UserError(f"{self._place}: {complaint}; see docs/formats.md for the path format.")

    def _get(self, key: str) -> Any:
        if key not in self._fields:
            raise self.error(f"'{key}' is missing")
        return self._fields[key]

    def number(self, key: str, low: Number, high: Number, default: float | None = None) -> float:
        """A number within [low, high]."""
        if key not in self and default is not None:
            return default
        value = self._get(key)
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not low <= value <= high
        ):
            raise self.error(f"'{key}' must be a number from {low:g} to {high:g}")
        return float(value)

    def integer(self, key: str, low: int, high: int) -> int:
        """A whole number within [low, high]; 800.0 counts as whole."""
        value = self.number(key, low, high)
        if value != int(value):
            raise self.error(f"'{key}' must be a whole number")
        return int(value)

    def boolean(self, key: str, default: bool) -> bool:
        """true or false."""
        value = self._fields.get(key, default)
        if not isinstance(value, bool):
            raise self.error(f"'{key}' must be true or false")
        return value

    def choice(self, key: str, options: Mapping[str, T], default: T) -> T:
        """One of a few names."""
        if key not in self:
            return default
        value = self._get(key)
        if not isinstance(value, str) or value not in options:
            raise self.error(f"'{key}' must be one of {', '.join(options)}")
        return options[value]

    def objects(self, key: str) -> list["PathFields"]:
        """A list of JSON objects."""
        value = self._get(key)
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.error(f"'{key}' must be a list of objects")
        return [PathFields(f"{self._place}: {key}[{i}]", item) for i, item in enumerate(value)]

    def tensor(self, key: str, shape: tuple[int, ...]) -> Tensor:
        """Finite float64 numbers of exactly this shape."""
        value = self._get(key)
        if not _is_numbers(value, shape):
            size = " x ".join(map(str, shape))
            raise self.error(f"'{key}' must be {size} finite numbers")
        return torch.tensor(value, dtype=torch.float64)

    def pose(self, key: str) -> Tensor:
        """A 3 x 4 pose from 3 x 4, 4 x 4 or 16 row-major numbers, its rotation made exact."""
        value = self._get(key)
        for shape in ((3, 4), (4, 4), (16,)):
            if _is_numbers(value, shape):
                matrix = torch.tensor(value, dtype=torch.float64).reshape(-1, 4)[:3]
                break
        else:
            raise self.error(f"'{key}' must be 3 x 4 or 4 x 4 finite numbers")
        rotation = matrix[:, :3]
        is_close = bool(((rotation @ rotation.T - torch.eye(3)).abs() < 1e-2).all())
        if not (is_close and float(torch.linalg.det(rotation)) > 0):
            raise self.error(f"the first three columns of '{key}' must be a rotation")
        u, _, vh = torch.linalg.svd(rotation)
        return torch.cat([u @ vh, matrix[:, 3:]], dim=-1)


def _is_numbers(value: Any, shape: tuple[int, ...]) -> bool:
    if not shape:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        # Beyond 1e30 the arithmetic of float32 cameras overflows.
        return is_number and abs(value) < 1e30 and math.isfinite(value)
    if not isinstance(value, list) or len(value) != shape[0]:
        return False
    return all(_is_numbers(item, shape[1:]) for item in value)

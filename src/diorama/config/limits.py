# SPDX-License-Identifier: Apache-2.0
"""Numbers out of range, refused by the name of their flag."""

from collections.abc import Mapping

from diorama.config.base import Config
from diorama.errors import UserError


def check_limits(
    config: Config, limits: Mapping[str, tuple[int | float, int | float]], section: str = "model"
) -> None:
    """Raise a `UserError` for the first field outside its inclusive limits; None passes."""
    for name, (low, high) in limits.items():
        value = getattr(config, name)
        if value is not None and not low <= value <= high:
            flag = name.replace("_", "-")
            raise UserError(f"--{section}.{flag} must be from {low} to {high:g}, got {value}.")

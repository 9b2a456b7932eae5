# SPDX-License-Identifier: Apache-2.0
"""Options that make no sense, refused before anything is read or written."""

from typing import Any

from diorama.config import TrainerConfig, to_plain
from diorama.engine.disk import finite
from diorama.errors import UserError


def check_config(config: TrainerConfig) -> None:
    """Raise a `UserError` naming the first flag whose value cannot be meant."""
    if wrong := _not_finite(to_plain(config)):
        raise UserError(f"{_flag(wrong)}: must be a finite number.")
    at_least = {
        "--max-steps": (config.max_steps, 1),
        "--optim.accumulate": (config.optim.accumulate, 1),
        "--log.every": (config.log.every, 1),
        "--log.save-every": (config.log.save_every, 1),
        "--log.keep": (config.log.keep, 1),
        "--log.eval-every": (config.log.eval_every, 0),
        "--log.eval-images": (config.log.eval_images, 0),
        "--seed": (config.seed, 0),
    }
    for flag, (value, least) in at_least.items():
        if value < least:
            raise UserError(f"{flag} {value}: must be at least {least}.")
    for name, value in to_plain(config.optim).items():
        flag = _flag(f"optim.{name}")
        if isinstance(value, int | float) and value < 0:
            raise UserError(f"{flag} {value}: must be at least 0.")
        if name in {"beta1", "beta2"} and value >= 1:
            raise UserError(f"{flag} {value}: must be below 1.")
    above_zero = {
        "--max-minutes": config.max_minutes,
        "--log.save-minutes": config.log.save_minutes,
        "--optim.clip-norm": config.optim.clip_norm,
    }
    for flag, value in above_zero.items():
        if value is not None and not value > 0:
            raise UserError(f"{flag} {value}: must be above 0.")


def _not_finite(data: Any, name: str = "") -> str | None:
    """The first option, by its dotted name, that holds a number which JSON does not have."""
    if isinstance(data, dict):
        found = (_not_finite(value, f"{name}.{key}".strip(".")) for key, value in data.items())
        return next(filter(None, found), None)
    return name if finite(data) != data else None


def _flag(name: str) -> str:
    """The flag of an option; however deep the option is, flags are two words deep."""
    return "--" + ".".join(name.split(".")[-2:]).replace("_", "-")

# SPDX-License-Identifier: Apache-2.0
"""config.json: the method and every option of a run, as plain data with a schema version."""

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from diorama.config import TrainerConfig, from_plain, to_plain
from diorama.config.trainer import SCHEMA_VERSION
from diorama.engine.disk import read_json, write_json
from diorama.engine.run_folder import RunFolder
from diorama.engine.versions import diorama_version
from diorama.errors import UserError

DefaultFor = Callable[[str], TrainerConfig]
_T = TypeVar("_T", bound=TrainerConfig)


def registered_default(method: str) -> TrainerConfig:
    """The registry's config of `method`; imported late, so that engine knows no method."""
    from diorama.methods.registry import method_config

    return method_config(method)


def with_absolute_data(config: _T) -> _T:
    """The config with its data path made absolute, as it was when the user typed it."""
    if config.data.path is None:
        return config
    data = dataclasses.replace(
        config.data, path=Path(os.path.abspath(config.data.path.expanduser()))
    )
    return dataclasses.replace(config, data=data)


def write_config(config: TrainerConfig, run: RunFolder) -> None:
    """Write config.json; the data path is kept absolute and relative to the run folder."""
    config = with_absolute_data(config)
    content = {
        "schema_version": SCHEMA_VERSION,
        "diorama_version": diorama_version(),
        "method": config.method,
        "data_relative_to_run": _relative(config.data.path, run.path),
        "config": to_plain(config),
    }
    write_json(run.config_file, content)


def read_config(
    run: RunFolder, default_for: DefaultFor = registered_default
) -> tuple[TrainerConfig, list[str]]:
    """The run's config laid over its method's defaults, and sentences about unknown keys."""
    content = read_json(run.config_file)
    version = content.get("schema_version")
    if not isinstance(version, int) or version < 1:
        raise UserError(f"{run.config_file}: schema_version is missing; is it a run's config?")
    if version > SCHEMA_VERSION:
        raise UserError(
            f"{run.config_file}: written by a newer Diorama (schema {version}, this one reads "
            f"{SCHEMA_VERSION}); update Diorama to open this run."
        )
    method = content.get("method")
    if not isinstance(method, str):
        raise UserError(f"{run.config_file}: 'method' must name the method of the run.")
    try:
        config, unknown = from_plain(default_for(method), content.get("config"))
    except UserError as error:
        raise UserError(f"{run.config_file}: {error}") from error
    config = _resolved_data(config, content.get("data_relative_to_run"), run)
    config = dataclasses.replace(config, method=method)
    return config, [f"{run.config_file}: unknown key {key} is ignored." for key in unknown]


def _relative(path: Path | None, start: Path) -> str | None:
    try:
        return None if path is None else Path(os.path.relpath(path, start)).as_posix()
    except ValueError:  # on another drive
        return None


def _resolved_data(config: TrainerConfig, relative: object, run: RunFolder) -> TrainerConfig:
    """The data where it was, or else where it lies if it was moved together with the run."""
    path = config.data.path
    if path is None or path.exists() or not isinstance(relative, str):
        return config
    moved = Path(os.path.abspath(run.path / relative))
    if not moved.exists():
        return config
    return dataclasses.replace(config, data=dataclasses.replace(config.data, path=moved))

# SPDX-License-Identifier: Apache-2.0
"""The methods by name: built-in ones and plug-ins, none imported before it is asked for."""

import difflib
import importlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, entry_points
from types import TracebackType
from typing import Any

from diorama.config import TrainerConfig
from diorama.errors import UserError

ENTRY_POINT_GROUP = "diorama.methods"


@dataclass(frozen=True)
class MethodEntry:
    """A method's name, one line about it, and where its config comes from."""

    name: str
    summary: str
    target: str
    """`module:function`, the function returning a TrainerConfig."""
    source: str = "built in"


BUILT_IN = (
    MethodEntry(
        "ngp-fast",
        "hash-grid field sized for a CPU: an object in minutes",
        "diorama.methods.ngp.presets:ngp_fast",
    ),
    MethodEntry(
        "ngp",
        "Instant-NGP's full-size hash-grid field (20,000 steps)",
        "diorama.methods.ngp.presets:ngp",
    ),
    MethodEntry(
        "splat-fast",
        "Gaussian splatting sized for a CPU: a budget, small images first",
        "diorama.methods.splat.presets:splat_fast",
    ),
    MethodEntry(
        "splat",
        "Gaussian splatting, the original's schedule (30,000 steps)",
        "diorama.methods.splat.presets:splat",
    ),
    MethodEntry(
        "splat-taichi",
        "Gaussian splatting as the taichi system does it",
        "diorama.methods.splat.presets:splat_taichi",
    ),
    MethodEntry(
        "nerf-small",
        "NeRF sized for a CPU: narrow network, occupancy grid",
        "diorama.methods.nerf.presets:nerf_small",
    ),
    MethodEntry(
        "nerf",
        "the NeRF paper's settings for objects (200,000 steps)",
        "diorama.methods.nerf.presets:nerf",
    ),
    MethodEntry(
        "nerf-llff",
        "the NeRF paper's settings for forward-facing captures",
        "diorama.methods.nerf.presets:nerf_llff",
    ),
    MethodEntry(
        "nerfacto",
        "hash-grid NeRF with proposal sampling, for real captures",
        "diorama.methods.nerfacto.presets:nerfacto",
    ),
)


def list_methods() -> list[MethodEntry]:
    """All methods: the built-in ones first, then plug-ins by name. Imports none of them."""
    built_in = {entry.name for entry in BUILT_IN}
    plug_ins = [
        MethodEntry(point.name, "", point.value, source=_distribution(point))
        for point in entry_points(group=ENTRY_POINT_GROUP)
        if point.name not in built_in
    ]
    return [*BUILT_IN, *sorted(plug_ins, key=lambda entry: entry.name)]


def method_config(name: str) -> TrainerConfig:
    """The default config of the method `name`; imports that method's config and nothing else."""
    for entry in list_methods():
        if entry.name == name:
            return _load(entry)
    known = [entry.name for entry in list_methods()]
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}."
    raise UserError(f"there is no method {name!r}; {hint}")


def _load(entry: MethodEntry) -> TrainerConfig:
    """Import the entry's config factory; whatever a plug-in throws is reported by its name."""
    if entry.source == "built in":
        config = _resolve(entry.target)()
    else:
        config = _load_plug_in(entry)
    return replace(config, method=entry.name)


def _load_plug_in(entry: MethodEntry) -> TrainerConfig:
    blame = f"the plug-in method {entry.name!r} of {entry.source}"
    with _Blame(blame):
        made = _resolve(entry.target)
        config = made() if callable(made) else made
    if not isinstance(config, TrainerConfig):
        raise UserError(
            f"{blame} gives a {type(config).__name__} where a TrainerConfig is expected; "
            "upgrade or uninstall it."
        )
    return config


@dataclass(frozen=True)
class _Blame:
    """Names the plug-in for whatever its code throws, an exit included: it is foreign code, and
    must not take the command line down with it."""

    who: str

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if kind is None or issubclass(kind, KeyboardInterrupt):
            return
        told = " ".join(f"{kind.__name__}: {error}".split())
        raise UserError(
            f"{self.who} cannot be loaded ({told}); upgrade or uninstall it."
        ) from error


def _resolve(target: str) -> Callable[[], Any]:
    module_name, _, attribute = target.partition(":")
    value: Any = importlib.import_module(module_name)
    for part in attribute.split("."):
        value = getattr(value, part)
    return value


def _distribution(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else "an unknown package"

# SPDX-License-Identifier: Apache-2.0
"""Loads the native kernels built for the best instruction set that this CPU can run.

`DIORAMA_NATIVE=v2|v3|v4|portable|off` overrides the choice; `off` leaves everything to the torch
references. torch is imported first on purpose: the kernels then share the OpenMP runtime that it
has loaded instead of bringing a second one.
"""

import functools
import importlib
import importlib.util
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils.dlpack import to_dlpack  # pyright: ignore[reportPrivateImportUsage]

from diorama.errors import UserError

BUILDS = ("v4", "v3", "v2", "portable")
"""Every build there can be, best first. `v2` to `v4` are the levels of the x86-64 psABI."""


def _module_name(build: str) -> str:
    return f"diorama._native.{build if build == 'portable' else f'x86_64_{build}'}"


def _is_installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def runnable_builds() -> tuple[str, ...]:
    """The builds that are installed and that this CPU can run, best first."""
    if not _is_installed("diorama._native.probe"):
        return ()
    level = importlib.import_module("diorama._native.probe").x86_64_level()
    runnable = [b for b in BUILDS if b == "portable" or int(b[1:]) <= level]
    return tuple(build for build in runnable if _is_installed(_module_name(build)))


@functools.cache
def load(build: str) -> ModuleType:
    """The kernels of one of `runnable_builds()`."""
    built = importlib.import_module(_module_name(build))
    kernels = ModuleType(built.__name__, built.__doc__)
    for name, member in vars(built).items():
        if not name.startswith("_"):
            setattr(kernels, name, _called_with_capsules(member) if callable(member) else member)
    return kernels


def _called_with_capsules(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel, spared from asking torch for each tensor's memory by way of Python.

    That takes 2 microseconds per tensor; making the capsules here takes a tenth of it.
    """

    @functools.wraps(kernel)
    def call(*arguments: Any, **named: Any) -> Any:
        try:
            return kernel(*[to_dlpack(a) if type(a) is Tensor else a for a in arguments], **named)
        except TypeError:
            # A capsule serves once: one that the overload for float took is spent when that for
            # double comes to it. Where no overload fits, the message now speaks of tensors.
            return kernel(*arguments, **named)

    return call


def _choose(wish: str) -> tuple[ModuleType | None, str]:
    """The module for what `DIORAMA_NATIVE` says, and one clause on what it is or why it is none."""
    if wish not in ("", "off", *BUILDS):
        options = ", ".join((*BUILDS, "off"))
        raise UserError(f"DIORAMA_NATIVE={wish} is not one of {options}; unset it to choose.")
    if wish == "off":
        return None, "off (DIORAMA_NATIVE=off)"
    try:
        builds = runnable_builds()
        if wish and wish not in builds:
            there = ", ".join(builds) or "none"
            raise UserError(
                f"DIORAMA_NATIVE={wish} cannot run here (runnable: {there}); unset it to choose."
            )
        if builds:
            build = wish or builds[0]
            return load(build), build
        reason = "they were not built for this Python and CPU"
    except ImportError as error:
        reason = f"they could not be loaded: {error}"
    warnings.warn(
        f"Diorama runs without its native kernels ({reason}); results are the same but training "
        "is many times slower. Install a C++20 compiler (g++ or clang++) and Python's headers, "
        "then install diorama again; DIORAMA_NATIVE=off silences this.",
        RuntimeWarning,
        stacklevel=2,
    )
    return None, f"none ({reason})"


_chosen, _description = _choose(os.environ.get("DIORAMA_NATIVE", ""))

if TYPE_CHECKING:
    from diorama._native import kernels as module  # pyright: ignore[reportMissingModuleSource]
else:
    module = _chosen
    """The chosen kernels, or None. Ask `serves` before using it."""


def describe() -> str:
    """Which build serves, such as `v3`, or why none does."""
    return _description


def serves(*tensors: Tensor) -> bool:
    """Whether the kernels can take these floating-point tensors: on the CPU, of one dtype.

    They need not be contiguous; an op makes them so.
    """
    dtype = tensors[0].dtype
    return (
        module is not None
        and dtype in (torch.float32, torch.float64)
        and all(t.is_cpu and t.dtype == dtype for t in tensors)
    )


def serves_index(index: Tensor) -> bool:
    """Whether the kernels can take this tensor of integers: on the CPU, int64."""
    return module is not None and index.is_cpu and index.dtype == torch.int64


@contextmanager
def switched_off() -> Iterator[None]:
    """Inside, ops use their torch references: for comparisons, in one thread of Python only."""
    # By name, because type checkers take `module` for the kernels themselves.
    names = globals()
    kept, names["module"] = names["module"], None
    try:
        yield
    finally:
        names["module"] = kept


def num_threads() -> int:
    """The number of threads that kernels are told to use: torch's own."""
    return torch.get_num_threads()

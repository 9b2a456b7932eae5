# SPDX-License-Identifier: Apache-2.0
"""How the kernels are found, chosen and done without."""

import os
import subprocess
import sys

import pytest
import torch

from diorama import native
from diorama.errors import UserError

needs_build = pytest.mark.skipif(
    not native.runnable_builds(), reason="the native kernels are not built"
)

REPORT = """
import torch
from diorama import native
from diorama.ops.composite import composite_dense
composite_dense(torch.ones(1, 2), torch.ones(1, 2), torch.ones(1, 2, 3))
print(native.describe())
print(*{line.split()[-1] for line in open("/proc/self/maps") if "omp" in line}, sep="\\n")
"""


def report(wish: str) -> tuple[str, list[str], str]:
    """Which build a fresh process chose, its OpenMP libraries, and what it wrote as warnings."""
    result = subprocess.run(
        [sys.executable, "-W", "always", "-c", REPORT],
        env=os.environ | {"DIORAMA_NATIVE": wish},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    build, *libraries = result.stdout.splitlines()
    return build, [path for path in libraries if "gomp" in path or "iomp" in path], result.stderr


@needs_build
@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_best_build_shares_the_openmp_runtime_of_torch():
    build, runtimes, warnings = report("")
    assert build == native.runnable_builds()[0]
    assert "native" not in warnings
    assert len(runtimes) == 1
    assert runtimes[0].startswith(os.path.dirname(torch.__file__))


@needs_build
@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_environment_chooses_a_build():
    oldest = native.runnable_builds()[-1]
    assert report(oldest)[0] == oldest


@pytest.mark.parametrize("build", native.runnable_builds())
def test_every_runnable_build_can_be_wished_for(build: str):
    assert native._choose(build) == (native.load(build), build)


def test_kernels_get_capsules_and_tensors_where_those_are_refused():
    seen: list[str] = []

    def kernel(argument: object) -> object:
        seen.append(type(argument).__name__)
        if not isinstance(argument, torch.Tensor):
            raise TypeError("a spent capsule")
        return argument

    tensor = torch.ones(2)
    assert native._called_with_capsules(kernel)(tensor) is tensor
    assert seen == ["PyCapsule", "Tensor"]


@needs_build
def test_a_call_that_fits_no_kernel_speaks_of_tensors():
    kernel = native.load(native.runnable_builds()[0]).composite_forward
    with pytest.raises(TypeError, match=r"torch\.Tensor"):
        kernel(torch.ones(2), torch.ones(2))


def test_off_leaves_it_to_torch_without_a_warning(recwarn: pytest.WarningsRecorder):
    assert native._choose("off") == (None, "off (DIORAMA_NATIVE=off)")
    assert not recwarn.list


def test_unknown_build_is_named():
    with pytest.raises(UserError, match="DIORAMA_NATIVE=v5 is not one of v4, v3, v2, portable,"):
        native._choose("v5")


def test_build_that_cannot_run_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(native, "runnable_builds", lambda: ("v3", "v2"))
    with pytest.raises(UserError, match=r"DIORAMA_NATIVE=v4 cannot run here \(runnable: v3, v2\)"):
        native._choose("v4")


def test_without_kernels_there_is_one_warning(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "diorama._native.probe", None)
    with pytest.warns(RuntimeWarning, match="Install a C\\+\\+20 compiler") as warnings:
        assert native._choose("") == (None, "none (they were not built for this Python and CPU)")
    assert len(warnings) == 1


def test_kernels_that_do_not_load_say_why(monkeypatch: pytest.MonkeyPatch):
    def refuse(build: str):
        raise ImportError(f"{build}: undefined symbol")

    monkeypatch.setattr(native, "runnable_builds", lambda: ("v2",))
    monkeypatch.setattr(native, "load", refuse)
    with pytest.warns(RuntimeWarning, match="could not be loaded: v2: undefined symbol"):
        assert native._choose("")[0] is None


def test_serves_wants_one_floating_dtype():
    single, double = torch.ones(2), torch.ones(2, dtype=torch.float64)
    has_module = native.module is not None
    assert native.serves(single, single) == has_module
    assert native.serves(double.expand(3, 2)) == has_module
    assert not native.serves(single, double)
    assert not native.serves(single.half())
    assert not native.serves(torch.ones(2, device="meta"))

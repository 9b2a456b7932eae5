# SPDX-License-Identifier: Apache-2.0
"""Without a C++ compiler the package still installs, works, and says once what is lost."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NO_COMPILER = {"CXX": "/nowhere/c++", "CC": "/nowhere/cc"}


def copy_sources(folder: Path) -> None:
    """What a source distribution has: no compiled modules, no build folder."""
    ignored = shutil.ignore_patterns("*.so", "__pycache__")
    for name in ("src", "csrc"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for name in ("pyproject.toml", "CMakeLists.txt", "LICENSE", "README.md"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, folder)


def install(sources: Path, target: Path, environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--target", str(target), str(sources)]
    subprocess.run(command, env=os.environ | environment, check=True, timeout=600)


def use(target: Path) -> subprocess.CompletedProcess[str]:
    code = (
        "import torch, diorama.native\n"
        "from diorama.ops.composite import composite_dense\n"
        "one = torch.ones(1, 1)\n"
        "print(diorama.native.__file__, diorama.native.describe(), sep='|')\n"
        "print(composite_dense(one, one, one[None]).opacity.item())\n"
    )
    environment = {k: v for k, v in os.environ.items() if k != "DIORAMA_NATIVE"}
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=target,
        env=environment | {"PYTHONPATH": str(target)},
        capture_output=True,
        text=True,
        check=True,
    )


@pytest.mark.slow
@pytest.mark.parametrize("has_compiler", [False, True])
def test_wheel_installs_and_works(tmp_path: Path, has_compiler: bool):
    sources, target = tmp_path / "sources", tmp_path / "target"
    copy_sources(sources)
    install(sources, target, {} if has_compiler else NO_COMPILER)
    result = use(target)
    where, opacity = result.stdout.splitlines()
    assert where.startswith(str(target))
    assert float(opacity) == pytest.approx(0.6321206)
    assert result.stderr.count("RuntimeWarning") == (0 if has_compiler else 1)
    assert ("training is many times slower" in result.stderr) == (not has_compiler)


def test_configuring_without_a_compiler_warns_and_succeeds(tmp_path: Path):
    cmake = shutil.which("cmake", path=os.path.dirname(sys.executable)) or shutil.which("cmake")
    if cmake is None:
        pytest.skip("cmake is not installed")
    (tmp_path / "bin").mkdir()
    ninja = shutil.which("ninja", path=os.path.dirname(sys.executable)) or shutil.which("ninja")
    result = subprocess.run(
        [cmake, "-S", ROOT, "-B", tmp_path, "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}"],
        env=NO_COMPILER | {"PATH": str(tmp_path / "bin")},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "no C++ compiler was found" in result.stderr
    assert "training is many times slower" in " ".join(result.stderr.split())

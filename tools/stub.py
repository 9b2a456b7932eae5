# SPDX-License-Identifier: Apache-2.0
"""Writes the stub of the native kernels; with --check, fails if the stored one is out of date."""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from diorama import native

STUB = Path(__file__).parents[1] / "src/diorama/_native/kernels.pyi"


def generate() -> str:
    """The stub that nanobind derives from the signatures in `csrc/bindings/`."""
    builds = native.runnable_builds()
    if not builds:
        sys.exit("The native kernels are not built, so their stub cannot be checked: make setup.")
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "kernels.pyi"
        command = [sys.executable, "-m", "nanobind.stubgen", "--quiet"]
        module = native.load(builds[0]).__name__
        subprocess.run([*command, "-m", module, "-o", str(output)], check=True)
        return output.read_text()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    stub = generate()
    if not parser.parse_args().check:
        STUB.write_text(stub)
    elif not STUB.is_file() or STUB.read_text() != stub:
        sys.exit(f"{STUB.name} is out of date with csrc/bindings/: run make format.")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""What produced a result: versions of Diorama, torch and Python, the kernels, and the memory."""

import importlib
import importlib.metadata
import platform
import sys


def diorama_version() -> str:
    """The installed version, or 'source' when run from an uninstalled tree."""
    try:
        return importlib.metadata.version("diorama")
    except importlib.metadata.PackageNotFoundError:
        return "source"


def versions() -> dict[str, str]:
    """Versions that may change a result."""
    import torch

    return {
        "diorama": diorama_version(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "native": _native(),
    }


def _native() -> str:
    native = importlib.import_module("diorama.native")
    return str(native.describe())


def peak_memory_mb() -> float:
    """The largest resident size of this process so far, in MB (0 where it is not known)."""
    try:
        import resource
    except ImportError:  # not on Windows
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)

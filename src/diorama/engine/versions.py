# SPDX-License-Identifier: Apache-2.0
"""What produced a result: versions of Diorama, torch and Python, the kernels, and the memory."""

import importlib
import importlib.metadata
import platform
import sys
from pathlib import Path


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
    status = Path("/proc/self/status")
    if status.exists():
        # Linux's ru_maxrss is inherited from the process that started this one; this is not.
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        if "VmHWM" in lines:
            return int(lines["VmHWM"].split()[0]) / 1024
    try:
        import resource
    except ImportError:  # not on Windows
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)

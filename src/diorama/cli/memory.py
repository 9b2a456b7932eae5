# SPDX-License-Identifier: Apache-2.0
"""Keeps freed memory for the next step instead of giving it back to the system each time."""

import ctypes
import os
import sys

# From glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LARGEST_MMAP_THRESHOLD = 32 << 20  # More is refused.
_KEPT = 512 << 20


def keep_freed_memory() -> bool:
    """Let the C library keep up to half a gigabyte of freed memory; whether it is asked to.

    Every step of a training allocates the same arrays of some megabytes anew. Given back to the
    system, their pages must be cleared and mapped again, which can take longer than a kernel.
    A choice that the user has made (`MALLOC_..._THRESHOLD_`) stands. Elsewhere than with glibc
    nothing is done.
    """
    has_chosen = any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in os.environ)
    if has_chosen or sys.platform != "linux":
        return False
    library = ctypes.CDLL(None)
    if not hasattr(library, "mallopt"):
        return False
    return bool(
        library.mallopt(_M_MMAP_THRESHOLD, _LARGEST_MMAP_THRESHOLD)
        and library.mallopt(_M_TRIM_THRESHOLD, _KEPT)
    )

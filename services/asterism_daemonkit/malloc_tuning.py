"""Tuning of glibc's malloc for a process that receives large replies."""

from __future__ import annotations

import ctypes
import os

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_MAX_THRESHOLD_BYTES = 32 << 20
"""Largest threshold in bytes that glibc accepts.

It is DEFAULT_MMAP_THRESHOLD_MAX on 64-bit systems."""
_ENVIRONMENT = (
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_TRIM_THRESHOLD_",
    "MALLOC_TOP_PAD_",
    "GLIBC_TUNABLES",
)


def keep_freed_memory() -> None:
    """Let new replies of some MiB reuse the memory of earlier ones.

    glibc maps fresh pages for an array above a threshold, and returns unused memory at the end
    of its heap above another one (mallopt(3)). A trainer drops a batch and requests the next
    one. Each would lie in fresh pages, and mapping and clearing these takes longer than filling
    them. Does nothing with another C library, or if the environment sets glibc's thresholds."""
    if any(name in os.environ for name in _ENVIRONMENT):  # noqa: TID251 - the C library's, not ours
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library
        return
    mallopt(_M_MMAP_THRESHOLD, _MAX_THRESHOLD_BYTES)
    mallopt(_M_TRIM_THRESHOLD, 2 * _MAX_THRESHOLD_BYTES)

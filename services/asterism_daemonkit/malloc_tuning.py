"""Memory of answers in the process that asks."""

from __future__ import annotations

import ctypes
import os

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_MAX_THRESHOLD_BYTES = 32 << 20
"""Bytes: the largest threshold that glibc takes (DEFAULT_MMAP_THRESHOLD_MAX on 64-bit systems)."""
_ENVIRONMENT = (
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_TRIM_THRESHOLD_",
    "MALLOC_TOP_PAD_",
    "GLIBC_TUNABLES",
)


def keep_freed_memory() -> None:
    """Have answers of some MiB be in memory that earlier ones were in.

    glibc maps fresh pages for an array above a threshold, and gives back what is unused at the end
    of its heap beyond another one (mallopt(3)). A trainer drops a batch and asks for the next one:
    each would be in fresh pages, and to have these mapped and cleared takes longer than to fill
    them. Does nothing under another C library, and where the environment sets glibc's thresholds.
    """
    if any(name in os.environ for name in _ENVIRONMENT):  # noqa: TID251 - the C library's, not ours
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library
        return
    mallopt(_M_MMAP_THRESHOLD, _MAX_THRESHOLD_BYTES)
    mallopt(_M_TRIM_THRESHOLD, 2 * _MAX_THRESHOLD_BYTES)

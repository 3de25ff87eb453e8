"""Memory of answers in the process that asks."""

from __future__ import annotations

import numpy as np

_LARGEST = 31 << 20
"""Bytes, with which the C library's bookkeeping is below the most that it learns from: 32 MiB."""


def keep_freed() -> None:
    """Have answers of some MiB be in memory that earlier ones were in.

    glibc gives back to the system what is larger than anything that was freed so far, and what is unused at the end of its heap beyond twice
    that (mallopt(3), M_MMAP_THRESHOLD). A trainer drops a batch and asks for the next one: each would be in fresh pages, and to have these mapped
    and cleared takes longer than to fill them. So something large is freed once; nothing is ever in it.
    """
    np.empty(_LARGEST, np.uint8)

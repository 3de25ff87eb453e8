"""The time, told in milliseconds since 1970 and never running backwards while a process lives.

Leases and retries need a clock that nobody sets; what is written down must make sense after a
restart. So: the wall's time at the start, plus what a monotonic clock counted since."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], int]
"""Milliseconds since 1970."""


def steady_clock() -> Clock:
    """A clock that starts at the wall's time now."""
    offset = time.time() - time.monotonic()
    return lambda: int((offset + time.monotonic()) * 1000)

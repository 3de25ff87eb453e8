"""Clock of metad: milliseconds since 1970 that never run backwards within a process.

Leases and retries need a clock that adjustments of the system time do not affect, while stored
times must stay meaningful after a restart. The clock is therefore the system time at the start plus
the time that a monotonic clock has counted since."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], int]
"""Function that returns milliseconds since 1970."""


def steady_clock() -> Clock:
    """Return a clock that starts at the current system time."""
    offset = time.time() - time.monotonic()
    return lambda: int((offset + time.monotonic()) * 1000)

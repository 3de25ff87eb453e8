"""The polling helper of the tests, and the one limit of how long a test waits for anything."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

HANG_S = 600.0
"""Seconds of any wait, as a guard against hanging. A second on an idle machine may become minutes
on a busy one.
"""
POLL_INTERVAL_S = 0.01
"""Seconds between two looks at a condition."""

QUICK_S = HANG_S / 10
"""Seconds for an event that has to come before a call with the time limit `HANG_S` ends."""

T = TypeVar("T")


def wait_until(
    condition: Callable[[], T], description: str, *, poll_interval_s: float = POLL_INTERVAL_S
) -> T:
    """Return the first true value of a condition; TimeoutError, saying what it was, where it
    hangs.
    """
    end = time.monotonic() + HANG_S
    while not (value := condition()):
        if time.monotonic() > end:
            raise TimeoutError(f"after {HANG_S:g} s it does not hold that {description}")
        time.sleep(poll_interval_s)
    return value


def let_pass(seconds: float) -> None:
    """Let time pass in which something must not happen, or which a clock must count (a term, a
    timestamp of whole seconds).

    Never a way to wait for something: on a busy machine it has not happened yet. A machine that is
    busy makes such a test see less, not fail."""
    time.sleep(seconds)

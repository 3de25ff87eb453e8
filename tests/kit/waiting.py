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
    condition: Callable[[], T],
    description: str | Callable[[], str],
    *,
    poll_interval_s: float = POLL_INTERVAL_S,
    ignored: type[Exception] | tuple[type[Exception], ...] = (),
) -> T:
    """Return the first true value of a condition.

    Parameters
    ----------
    condition : callable
    description : str or callable
        The condition in words, for the error; a callable is called where the condition never held.
    poll_interval_s : float
    ignored : exception class or tuple of them
        Raised by the condition while it does not hold yet.

    Raises
    ------
    TimeoutError
        Where the condition does not hold within `HANG_S`, from the last ignored exception.
    """
    end = time.monotonic() + HANG_S
    while True:
        cause = None
        try:
            if value := condition():
                return value
        except ignored as error:
            cause = error
        if time.monotonic() > end:
            text = description if isinstance(description, str) else description()
            raise TimeoutError(f"after {HANG_S:g} s it does not hold that {text}") from cause
        time.sleep(poll_interval_s)


def let_pass(seconds: float) -> None:
    """Let time pass in which something must not happen, or which a clock must count (a term, a
    timestamp of whole seconds).

    Never a way to wait for something: on a busy machine it has not happened yet. A machine that is
    busy makes such a test see less, not fail."""
    time.sleep(seconds)

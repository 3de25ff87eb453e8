"""Polling helper of the tests, and the single limit of how long a test waits."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

HANG_S = 600.0
"""Longest wait in seconds, as a guard against hanging.

An event that takes a second on an idle machine may take minutes on a busy one.
"""
POLL_INTERVAL_S = 0.01
"""Seconds between two checks of a condition, at first."""
_MAX_POLL_INTERVAL_S, _POLL_SHARE = 0.05, 0.1
"""Seconds between two checks later on: a share of the time waited, because a check may be a request
that keeps a daemon busy."""

QUICK_S = HANG_S / 10
"""Seconds for an event that must occur before a call with the time limit `HANG_S` ends."""

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
        The condition as text for the error; a callable is called only on timeout.
    poll_interval_s : float
        Seconds between two checks; a default one grows to 0.05 s during the first half second.
    ignored : exception class or tuple of them
        Exceptions that the condition may raise while it does not hold yet.

    Raises
    ------
    TimeoutError
        If the condition does not hold within `HANG_S`; its cause is the last ignored exception.
    """
    start = time.monotonic()
    while True:
        cause = None
        try:
            if value := condition():
                return value
        except ignored as error:
            cause = error
        waited_s = time.monotonic() - start
        if waited_s > HANG_S:
            text = description if isinstance(description, str) else description()
            raise TimeoutError(f"after {HANG_S:g} s it does not hold that {text}") from cause
        later_interval_s = min(_POLL_SHARE * waited_s, _MAX_POLL_INTERVAL_S)
        time.sleep(max(poll_interval_s, later_interval_s))


def let_pass(seconds: float) -> None:
    """Sleep while something must not happen, or while a clock must advance.

    Examples of clocks are a term and a timestamp of whole seconds. Never use this to wait for an
    event: on a busy machine it may not have happened yet. A busy machine may make such a test
    observe less, but not fail.
    """
    time.sleep(seconds)

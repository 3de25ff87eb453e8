"""Trying again where a service does not answer for a while: what an epoch of hours needs, and a
single call does not.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from asterism_proto.errors import Busy, InvalidRequest, NotReady, Stale, Unavailable

Value = TypeVar("Value")

DEFAULT_PATIENCE_S = 300.0
_FIRST_PAUSE_S, _MAX_PAUSE_S = 0.2, 5.0


def check_patience(seconds: float) -> float:
    """``seconds``, where it is a time to wait."""
    if not seconds >= 0:
        raise InvalidRequest(f"patience_s {seconds!r}: expected a number of seconds, 0 or more")
    return float(seconds)


def retry_read(operation: Callable[[], Value], seconds: float) -> Value:
    """What ``operation`` gives, called again while a daemon is away, starting or too busy; its
    error, where ``seconds`` have passed.

    For calls that only read: the same one gives the same again.
    """
    deadline, pause = time.monotonic() + seconds, _FIRST_PAUSE_S
    while True:
        try:
            return operation()
        except (Unavailable, Busy, NotReady, Stale):
            wait = pause * random.uniform(0.5, 1.0)
            if time.monotonic() + wait >= deadline:
                raise
            time.sleep(wait)
            pause = min(2 * pause, _MAX_PAUSE_S)

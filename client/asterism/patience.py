"""Trying again where a service does not answer for a while: what an epoch of hours needs, and a single call does not."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from asterism_proto.errors import Busy, InvalidRequest, NotReady, Stale, Unavailable

Made = TypeVar("Made")

PATIENCE_S = 300.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 5.0


def patience(seconds: float) -> float:
    """``seconds``, where it is a time to wait."""
    if not seconds >= 0:
        raise InvalidRequest(f"patience_s {seconds!r}: expected a number of seconds, 0 or more")
    return float(seconds)


def patiently(make: Callable[[], Made], seconds: float) -> Made:
    """What ``make`` gives, called again while a daemon is away, starting or too busy; its error, where ``seconds`` have passed.

    For calls that only read: the same one gives the same again.
    """
    until, pause = time.monotonic() + seconds, _FIRST_PAUSE_S
    while True:
        try:
            return make()
        except (Unavailable, Busy, NotReady, Stale):
            wait = pause * random.uniform(0.5, 1.0)
            if time.monotonic() + wait >= until:
                raise
            time.sleep(wait)
            pause = min(2 * pause, _LONGEST_PAUSE_S)

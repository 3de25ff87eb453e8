"""Whether a daemon is there at all, asked while calls wait for it: one that is stopped takes what
it is sent, and says nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from asterism_proto.errors import Unavailable

PROBE_AFTER_S = 1.0
"""A call that has waited for so long has the daemon asked whether it is there, and again each
time.
"""
PING_TIMEOUT_S = 4.0
"""How long it may take to say so: its thread has to be given a turn among all that work."""
SILENT_PING_S = 1.0
"""How long it may take once it has fallen silent, and how long nobody asks again."""


class LivenessProbe:
    """What is known of one daemon's being there.

    Parameters
    ----------
    address : str
        For messages.
    ping : callable
        Given seconds, whether the daemon said anything within them.

    Notes
    -----
    Any reply is a sign of life. While there is none, one call pings for all that wait; what falls
    silent fails them all, and every further call at once, until a ping is answered: one is sent a
    second, by a call."""

    def __init__(self, address: str, ping: Callable[[float], bool]) -> None:
        self._address = address
        self._ping = ping
        self._ping_lock = threading.Lock()
        self._last_reply = 0.0
        self._silent_since = self._last_ping = 0.0

    @property
    def is_silent(self) -> bool:
        """Whether the last word on it is that it does not answer."""
        return self._silent_since > 0

    def record_reply(self) -> None:
        """It said something."""
        self._last_reply = time.monotonic()
        self._silent_since = 0.0

    def record_silence(self, started_at: float) -> Unavailable:
        """It was asked at that time, and said nothing for as long as it may take; what to tell
        whoever waits.
        """
        self._last_ping = time.monotonic()
        self._silent_since = self._silent_since or started_at
        return self._silence_error()

    def check_waiting_call(self, deadline: float) -> None:
        """Come back where it is there, or where the time until ``deadline`` does not do to tell;
        for a call that has waited for a while.

        Raises
        ------
        Unavailable
        """
        if self._ping_lock.acquire(timeout=max(deadline - time.monotonic(), 0.0)):
            try:
                if time.monotonic() - self._last_reply >= PROBE_AFTER_S:
                    self._send_ping(PING_TIMEOUT_S, deadline)
            finally:
                self._ping_lock.release()

    def check_new_call(self, deadline: float) -> None:
        """Come back where it is not known to be silent; for a call that begins.

        Raises
        ------
        Unavailable
        """
        if not self._silent_since:
            return
        if not self._ping_lock.acquire(blocking=False):
            raise self._silence_error()
        try:
            self._send_ping(SILENT_PING_S, deadline)
        finally:
            self._ping_lock.release()

    def _send_ping(self, timeout_s: float, deadline: float) -> None:
        started_at = time.monotonic()
        if self._silent_since and started_at - self._last_ping < SILENT_PING_S:
            raise self._silence_error()
        if self._ping(min(timeout_s, max(deadline - started_at, 1e-3))):
            self.record_reply()
        elif self._silent_since or time.monotonic() - started_at >= timeout_s:
            raise self.record_silence(started_at)

    def _silence_error(self) -> Unavailable:
        silence_s = time.monotonic() - self._silent_since
        return Unavailable(
            f"{self._address} has not answered for {silence_s:.0f} s: is it stopped, or its "
            "host gone?"
        )

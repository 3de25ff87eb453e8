"""Liveness probe for pending calls.

A stopped peer (SIGSTOP) accepts data but never replies, so TCP alone does not reveal it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from asterism_proto.errors import Unavailable

PROBE_AFTER_S = 1.0
"""Seconds that a call waits before it probes the daemon, and between further probes."""
PING_TIMEOUT_S = 4.0
"""Seconds that a ping may take: the busy daemon has to schedule the thread that replies."""
SILENT_PING_S = 1.0
"""Seconds that a ping to a silent daemon may take, and minimum interval of such pings."""


class PeerProbe:
    """Liveness of one daemon.

    Parameters
    ----------
    address : str
        Name of the daemon in messages.
    ping : callable
        Takes a timeout in seconds; returns whether the daemon replied within it.

    Notes
    -----
    Any reply is a sign of life. Without replies, one call pings for all waiting calls. If the
    ping fails, all waiting calls fail, and every further call fails at once until a ping
    succeeds. Calls send such pings, at most one a second."""

    def __init__(self, address: str, ping: Callable[[float], bool]) -> None:
        self._address = address
        self._ping = ping
        self._ping_lock = threading.Lock()
        self._last_reply = 0.0
        self._silent_since = self._last_ping = 0.0

    @property
    def is_silent(self) -> bool:
        """True if the daemon failed to reply to the last ping."""
        return self._silent_since > 0

    def record_reply(self) -> None:
        """Record a reply of the daemon."""
        self._last_reply = time.monotonic()
        self._silent_since = 0.0

    def record_silence(self, started_at: float) -> Unavailable:
        """Record that a ping sent at ``started_at`` had no reply; return the error to raise."""
        self._last_ping = time.monotonic()
        self._silent_since = self._silent_since or started_at
        return self._silence_error()

    def check_waiting_call(self, deadline: float) -> None:
        """Check the daemon for a call that has waited for a while.

        Returns if the daemon is alive, or if the time until ``deadline`` is too short to decide.

        Raises
        ------
        Unavailable
            If the daemon is silent.
        """
        if self._ping_lock.acquire(timeout=max(deadline - time.monotonic(), 0.0)):
            try:
                if time.monotonic() - self._last_reply >= PROBE_AFTER_S:
                    self._send_ping(PING_TIMEOUT_S, deadline)
            finally:
                self._ping_lock.release()

    def check_new_call(self, deadline: float) -> None:
        """Check the daemon for a new call. Returns unless the daemon is known to be silent.

        Raises
        ------
        Unavailable
            If the daemon is silent.
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
            f"no answer from {self._address} for {silence_s:.0f} s; check that it is not "
            "suspended and that its host is reachable"
        )

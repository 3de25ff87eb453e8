"""Whether a daemon is there at all, asked while calls wait for it: one that is stopped takes what it is sent, and says nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from asterism_proto.errors import Unavailable

PATIENCE_S = 1.0
"""A call that has waited for so long has the daemon asked whether it is there, and again each time."""
PING_S = 4.0
"""How long it may take to say so: its thread has to be given a turn among all that work."""
AGAIN_S = 1.0
"""How long it may take once it has fallen silent, and how long nobody asks again."""


class Pulse:
    """What is known of one daemon's being there.

    Parameters
    ----------
    address : str
        For messages.
    ping : callable
        Given seconds, whether the daemon said anything within them.

    Notes
    -----
    Any reply is a sign of life. While there is none, one call pings for all that wait; what falls silent fails them all, and every
    further call at once, until a ping is answered: one is sent a second, by a call.
    """

    def __init__(self, address: str, ping: Callable[[float], bool]) -> None:
        self._address = address
        self._ping = ping
        self._asking = threading.Lock()
        self._heard = 0.0
        self._silent_since = self._asked = 0.0

    @property
    def silent(self) -> bool:
        """Whether the last word on it is that it does not answer."""
        return self._silent_since > 0

    def heard(self) -> None:
        """It said something."""
        self._heard = time.monotonic()
        self._silent_since = 0.0

    def missed(self, begun: float) -> Unavailable:
        """It was asked at that time, and said nothing for as long as it may take; what to tell whoever waits."""
        self._asked = time.monotonic()
        self._silent_since = self._silent_since or begun
        return self._silence()

    def check(self, deadline: float) -> None:
        """Come back where it is there, or where the time until ``deadline`` does not do to tell; for a call that has waited for a while.

        Raises
        ------
        Unavailable
        """
        if self._asking.acquire(timeout=max(deadline - time.monotonic(), 0.0)):
            try:
                if time.monotonic() - self._heard >= PATIENCE_S:
                    self._ask(PING_S, deadline)
            finally:
                self._asking.release()

    def expect(self, deadline: float) -> None:
        """Come back where it is not known to be silent; for a call that begins.

        Raises
        ------
        Unavailable
        """
        if not self._silent_since:
            return
        if not self._asking.acquire(blocking=False):
            raise self._silence()
        try:
            self._ask(AGAIN_S, deadline)
        finally:
            self._asking.release()

    def _ask(self, seconds: float, deadline: float) -> None:
        begun = time.monotonic()
        if self._silent_since and begun - self._asked < AGAIN_S:
            raise self._silence()
        if self._ping(min(seconds, max(deadline - begun, 1e-3))):
            self.heard()
        elif self._silent_since or time.monotonic() - begun >= seconds:
            raise self.missed(begun)

    def _silence(self) -> Unavailable:
        silence_s = time.monotonic() - self._silent_since
        return Unavailable(f"{self._address} has not answered for {silence_s:.0f} s: is it stopped, or its host gone?")

"""Requests that may be sent to two addresses, and when; the first reply counts.

Hedged requests: Dean & Barroso 2013, *The tail at scale*, CACM.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from typing import Any

import grpc

from asterism.transport.waiters import Event
from asterism_proto.errors import InvalidRequest

_TRY_OTHER_CODES = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.UNKNOWN,
    }
)
"""Status codes of failures that may be specific to one graphd."""


@dataclass(slots=True)
class HedgeAttempt:
    """A request that was sent to one address."""

    address_index: int
    future: Any
    sent_at: float


class HedgedRequest:
    """One request that is sent once or twice; the first reply counts."""

    def __init__(self, event: Event, data: bytes, metadata: Any, deadline: float) -> None:
        self.event = event
        self._data, self._metadata, self._deadline = data, metadata, deadline
        self.attempts: list[HedgeAttempt] = []

    def send(self, address_index: int, stub: Any) -> None:
        """Send the request to an address."""
        now = time.monotonic()
        future = stub.future(
            self._data, timeout=max(self._deadline - now, 0.0), metadata=self._metadata
        )
        self.attempts.append(HedgeAttempt(address_index, future, now))
        future.add_done_callback(lambda _: self.event.set())

    def first_response(self) -> HedgeAttempt:
        """Wait for the first reply and return its attempt.

        If all attempts failed, the first failed one is returned. The wait ends, because every
        attempt has a deadline.
        """
        while True:
            completed = [attempt for attempt in self.attempts if attempt.future.done()]
            answered = [
                attempt for attempt in completed if attempt.future.code() not in _TRY_OTHER_CODES
            ]
            if answered or len(completed) == len(self.attempts):
                return (answered or completed)[0]
            self.event.wait()

    def cancel(self) -> None:
        """Cancel the attempts that are still pending."""
        for attempt in self.attempts:
            attempt.future.cancel()


class HedgeDelays:
    """Delays before hedging, from recent latencies per method.

    Parameters
    ----------
    hedge : float or "p95"
        Fixed delay in seconds; or the 95th percentile of recent latencies.

    Raises
    ------
    InvalidRequest
        If ``hedge`` is neither "p95" nor above 0.
    """

    MIN_LATENCIES = 20
    """Replies of a method before its percentile is used."""
    _WINDOW = 200

    def __init__(self, hedge: float | str) -> None:
        if isinstance(hedge, str) or not hedge > 0:
            if hedge != "p95":
                raise InvalidRequest(f"hedge={hedge!r}: expected seconds above 0, or 'p95'")
            self._fixed = None
        else:
            self._fixed = float(hedge)
        self._latencies: dict[str, deque[float]] = {}

    def delay_for(self, path: str) -> float | None:
        """Return the seconds after which to hedge a request of the method; None: never."""
        if self._fixed is not None:
            return self._fixed
        latencies = self._latencies.get(path, ())
        return (
            sorted(latencies)[int(0.95 * len(latencies))]
            if len(latencies) >= self.MIN_LATENCIES
            else None
        )

    def record(self, path: str, seconds: float) -> None:
        """Record the latency of a reply in seconds."""
        if self._fixed is None:
            self._latencies.setdefault(path, deque(maxlen=self._WINDOW)).append(seconds)

"""A request that may be sent to two addresses: the first answer counts."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import grpc

from asterism.transport.waiting import Event

_TRY_OTHER_CODES = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.UNKNOWN,
    }
)
"""What one graphd answers and another one need not."""


@dataclass(slots=True)
class HedgeAttempt:
    """A request under way."""

    address_index: int
    future: Any
    sent_at: float


class HedgedRequest:
    """One request, sent once or twice: the first answer counts, what is late is cancelled."""

    def __init__(self, event: Event, data: bytes, caller: Any, deadline: float) -> None:
        self.event = event
        self._data, self._caller, self._deadline = data, caller, deadline
        self.attempts: list[HedgeAttempt] = []

    def send(self, address_index: int, stub: Any) -> None:
        """Send it to an address."""
        now = time.monotonic()
        future = stub.future(
            self._data, timeout=max(self._deadline - now, 0.0), metadata=self._caller
        )
        self.attempts.append(HedgeAttempt(address_index, future, now))
        future.add_done_callback(lambda _: self.event.set())

    def first_response(self) -> HedgeAttempt:
        """Whoever answered first; where none has what was asked for, the first one that failed.
        Every request has a deadline.
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
        """Cancel what is still under way."""
        for attempt in self.attempts:
            attempt.future.cancel()

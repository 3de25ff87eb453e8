"""A request that may be sent to two addresses: the first answer counts."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import grpc

from asterism.waiting import Bell

_PASSING = frozenset(
    {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.ABORTED, grpc.StatusCode.UNKNOWN}
)
"""What one graphd answers and another one need not."""


@dataclass(slots=True)
class Runner:
    """A request under way."""

    at: int
    pending: Any
    begun: float


class Race:
    """One request, sent once or twice: the first answer counts, what is late is cancelled."""

    def __init__(self, bell: Bell, data: bytes, caller: Any, deadline: float) -> None:
        self.bell = bell
        self._data, self._caller, self._deadline = data, caller, deadline
        self.runners: list[Runner] = []

    def begin(self, at: int, stub: Any) -> None:
        """Send it to an address."""
        now = time.monotonic()
        pending = stub.future(self._data, timeout=max(self._deadline - now, 0.0), metadata=self._caller)
        self.runners.append(Runner(at, pending, now))
        pending.add_done_callback(lambda _: self.bell.ring())

    def won(self) -> Runner:
        """Whoever answered first; where none has what was asked for, the first one that failed. Every request has a deadline."""
        while True:
            done = [runner for runner in self.runners if runner.pending.done()]
            answered = [runner for runner in done if runner.pending.code() not in _PASSING]
            if answered or len(done) == len(self.runners):
                return (answered or done)[0]
            self.bell.wait()

    def end(self) -> None:
        """Cancel what is still under way."""
        for runner in self.runners:
            runner.pending.cancel()

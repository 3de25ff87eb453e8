"""Tests of the state that calls of one gRPC transport share."""

from __future__ import annotations

import math
from typing import Any

from asterism.transport.grpc import GrpcTransport
from asterism_proto.errors import Unavailable


class _Code:
    name = "UNAVAILABLE"


class _Unreachable(Exception):
    """Error of a call to an address that refuses connections, as of grpcio."""

    def code(self) -> _Code:
        return _Code()

    def details(self) -> str:
        return "failed to connect to all addresses; last error: UNKNOWN: Connection refused"

    def trailing_metadata(self) -> tuple[()]:
        return ()


def test_failed_call_changes_shared_state_under_the_lock() -> None:
    transport = GrpcTransport("a:1,b:2")
    transport._checked_at = [0.0, 0.0]
    locked: list[bool] = []

    class _Ends(dict[int, float]):
        def __setitem__(self, key: int, value: float) -> None:
            locked.append(transport._lock.locked())
            super().__setitem__(key, value)

    transport._cooldown_ends = _Ends()
    failure: Any = _Unreachable()
    assert isinstance(transport._translate_error(failure, 1), Unavailable)
    assert locked == [True]
    assert list(transport._cooldown_ends) == [1]
    assert transport._checked_at == [0.0, -math.inf]
    transport.close()

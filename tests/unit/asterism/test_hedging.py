"""Tests of the reply that counts if a request was sent twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc
import pytest

from asterism.transport.hedging import HedgedRequest
from asterism.transport.waiters import THREAD_WAITER


class DoneFuture:
    """A future of a request that has ended with a status."""

    def __init__(self, code: grpc.StatusCode) -> None:
        self._code = code

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        callback(self)

    def done(self) -> bool:
        return True

    def code(self) -> grpc.StatusCode:
        return self._code


class Stub:
    """A graphd that answers every request with one status."""

    def __init__(self, code: grpc.StatusCode) -> None:
        self._code = code

    def future(self, data: bytes, timeout: float, metadata: Any) -> DoneFuture:
        return DoneFuture(self._code)


OK, AWAY, REFUSED = (
    grpc.StatusCode.OK,
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.INVALID_ARGUMENT,
)


@pytest.mark.parametrize(
    ("codes", "expected"),
    [((AWAY, OK), 1), ((AWAY, REFUSED), 1), ((OK, AWAY), 0), ((AWAY, AWAY), 0)],
)
def test_final_reply_counts_before_a_transient_failure(
    codes: tuple[grpc.StatusCode, ...], expected: int
) -> None:
    request = HedgedRequest(THREAD_WAITER.event(), b"", (), 0.0)
    for address, code in enumerate(codes):
        request.send(address, Stub(code))
    assert request.first_response().address_index == expected

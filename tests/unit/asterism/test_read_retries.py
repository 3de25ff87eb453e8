"""Tests of retries and of their time limit."""

from __future__ import annotations

import time

import pytest

from asterism.transport.read_retries import check_patience, retry_read
from asterism_proto.errors import (
    AsterismError,
    Busy,
    InvalidRequest,
    NotFound,
    NotReady,
    QuotaExceeded,
    Stale,
    Unavailable,
)


@pytest.mark.parametrize("error", [Unavailable, NotReady, Stale, Busy])
def test_transient_errors_are_retried(error: type[AsterismError]) -> None:
    failures = [error("away"), error("away")]

    def call() -> str:
        if failures:
            raise failures.pop()
        return "there"

    assert retry_read(call, 30) == "there"
    assert failures == []


def test_a_retry_waits_as_long_as_the_service_asks() -> None:
    failures: list[AsterismError] = [QuotaExceeded("calls_per_s=1: used up", retry_after_s=0.4)]

    def call() -> float:
        if failures:
            raise failures.pop()
        return time.monotonic()

    started_at = time.monotonic()
    assert retry_read(call, 30) - started_at >= 0.4, "the first pause is 0.2 s at most"
    failures.append(QuotaExceeded("calls_per_s=1: used up", retry_after_s=31.0))
    with pytest.raises(QuotaExceeded):
        retry_read(call, 30)


def test_permanent_errors_raise_at_once_others_at_timeout() -> None:
    calls: list[float] = []

    def call(error: AsterismError) -> None:
        calls.append(time.monotonic())
        raise error

    with pytest.raises(NotFound):
        retry_read(lambda: call(NotFound("no such space")), 30)
    assert len(calls) == 1
    with pytest.raises(Unavailable, match="gone"):
        retry_read(lambda: call(Unavailable("gone")), 0.5)
    assert len(calls) > 2
    assert calls[-1] - calls[1] < 0.5
    with pytest.raises(Unavailable):
        retry_read(lambda: call(Unavailable("gone")), 0)
    with pytest.raises(InvalidRequest, match="patience_s=-1"):
        check_patience(-1)

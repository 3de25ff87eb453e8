"""Trying again for a while, and no longer."""

from __future__ import annotations

import time

import pytest

from asterism.patience import patience, patiently
from asterism_proto.errors import AsterismError, Busy, InvalidRequest, NotFound, NotReady, Stale, Unavailable


@pytest.mark.parametrize("error", [Unavailable, NotReady, Stale, Busy])
def test_what_may_pass_is_tried_again(error: type[AsterismError]) -> None:
    left = [error("away"), error("away")]

    def call() -> str:
        if left:
            raise left.pop()
        return "there"

    assert patiently(call, 30) == "there"
    assert left == []


def test_what_can_not_succeed_is_raised_at_once_and_what_stays_away_when_the_time_is_up() -> None:
    calls: list[float] = []

    def call(error: AsterismError) -> None:
        calls.append(time.monotonic())
        raise error

    with pytest.raises(NotFound):
        patiently(lambda: call(NotFound("no such space")), 30)
    assert len(calls) == 1
    with pytest.raises(Unavailable, match="gone"):
        patiently(lambda: call(Unavailable("gone")), 0.5)
    assert len(calls) > 2
    assert calls[-1] - calls[1] < 0.5
    with pytest.raises(Unavailable):
        patiently(lambda: call(Unavailable("gone")), 0)
    with pytest.raises(InvalidRequest, match="patience_s -1"):
        patience(-1)

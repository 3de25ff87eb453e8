"""Tests of the context of a call."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from asterism_daemonkit.rpc import call_context
from asterism_daemonkit.rpc.call_context import CallContext, exclude_from_deadlines
from asterism_proto.errors import Deadline


@pytest.fixture
def excluded() -> Iterator[list[float]]:
    """Excluded seconds of this process, which a test may change."""
    seconds = [100.0]
    original = call_context._excluded_s
    exclude_from_deadlines(lambda: seconds[0])
    yield seconds
    exclude_from_deadlines(original)


def test_excluded_time_does_not_count_towards_a_deadline(excluded: list[float]) -> None:
    call = CallContext.with_timeout(0)
    with pytest.raises(Deadline):
        call.remaining()
    excluded[0] += 1000
    assert 900 < call.remaining() <= 1000


def test_time_excluded_before_a_call_does_not_extend_it(excluded: list[float]) -> None:
    excluded[0] += 1000
    with pytest.raises(Deadline):
        CallContext.with_timeout(0).remaining()

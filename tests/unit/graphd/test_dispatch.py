"""Tests of the messages of requests that fail at a storaged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from asterism_daemonkit.rpc.call_context import CallContext
from asterism_model.schema import NodeType, Schema
from asterism_proto.errors import (
    AsterismError,
    Busy,
    Conflict,
    Corrupt,
    Deadline,
    Internal,
    InvalidRequest,
    NotFound,
    NotReady,
    SourceLocation,
    Stale,
    Unavailable,
)
from asterism_proto.framing import Frame
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from graphd.routing.dispatch import Dispatcher, StoragedPool
from graphd.routing.routes import SpaceRoute

UUIDS = ("2d71d3fe", "72fb857b")
ADDRESSES = ("storaged-0:9779", "storaged-1:9779")


class _FailingTransport:
    """Transport on which every call fails."""

    def __init__(self, error: AsterismError) -> None:
        self._error = error

    def call(self, *_: Any) -> Any:
        raise self._error

    def start(self, *_: Any) -> Any:
        return self

    def result(self) -> Any:
        raise self._error

    def abandon(self) -> None: ...

    def close(self) -> None: ...


def space_of(parts: int) -> SpaceRoute:
    """Return a space with all partitions on the second of two storageds."""
    return SpaceRoute(
        space_id=1,
        name="shop",
        schema=Schema(node_types=(NodeType(name="item"),), parts=parts),
        hosts=UUIDS,
        host_of_part=np.ones(parts, np.int32),
    )


def failure_of(error: AsterismError, parts: int = 2, addresses: Any = ADDRESSES) -> AsterismError:
    """Return the error of a request to a storaged that fails with ``error``."""
    transport: Any = _FailingTransport(error)
    pool = StoragedPool(lambda _: transport)
    pool.update_addresses(dict(zip(UUIDS, addresses, strict=False)))
    request = Frame(storaged_pb.DrawNodesRequest())
    with pytest.raises(AsterismError) as raised:
        Dispatcher(pool).dispatch(
            "draw_nodes", space_of(parts), [(1, request)], CallContext.with_timeout(60)
        )
    return raised.value


@pytest.mark.parametrize("kind", [InvalidRequest, NotFound, NotReady, Conflict, Stale])
def test_mistake_of_the_caller_names_no_storaged(kind: type[AsterismError]) -> None:
    place = SourceLocation(line=1, column=7)
    error = failure_of(kind("count=-1: expected 0 or more", place))
    assert (type(error), error.message, error.place) == (
        kind,
        "count=-1: expected 0 or more",
        place,
    )


@pytest.mark.parametrize("kind", [Busy, Corrupt, Internal])
def test_fault_of_a_storaged_names_its_address(kind: type[AsterismError]) -> None:
    error = failure_of(kind("out of order"))
    assert (type(error), error.message) == (kind, "storaged at storaged-1:9779: out of order")


@pytest.mark.parametrize("kind", [Unavailable, Deadline])
def test_silent_storaged_is_named_once_with_partitions(kind: type[AsterismError]) -> None:
    error = failure_of(kind("no answer from storaged at storaged-1:9779; is it running there?"))
    assert (type(error), error.message) == (
        kind,
        "space 'shop', partitions 0, 1: no answer from storaged at storaged-1:9779; is it "
        "running there?",
    )


def test_storaged_of_many_partitions_lists_a_few() -> None:
    error = failure_of(Unavailable("connection closed"), parts=20)
    assert error.message == (
        "space 'shop', partitions 0, 1, 2, 3, 4, 5, 6, 7 and 12 more: storaged at "
        "storaged-1:9779: connection closed"
    )


def test_storaged_without_address_is_described_by_partition() -> None:
    error = failure_of(Busy("is not called"), parts=1, addresses=ADDRESSES[:1])
    assert isinstance(error, Unavailable)
    assert error.message == (
        "space 'shop', partition 0: their storaged has not reported to metad yet; start it, or "
        "try again in a moment"
    )


def failure_of_two(errors: Sequence[AsterismError]) -> AsterismError:
    """Return the error of requests to two storageds that fail with these errors."""
    transports: Any = dict(zip(ADDRESSES, map(_FailingTransport, errors), strict=True))
    pool = StoragedPool(transports.__getitem__)
    pool.update_addresses(dict(zip(UUIDS, ADDRESSES, strict=True)))
    requests = [(host, Frame(storaged_pb.DrawNodesRequest())) for host in range(2)]
    with pytest.raises(AsterismError) as raised:
        Dispatcher(pool).dispatch("draw_nodes", space_of(2), requests, CallContext.with_timeout(60))
    return raised.value


def test_first_of_several_errors_is_raised() -> None:
    error = failure_of_two([Busy("full"), Corrupt("damaged")])
    assert (type(error), error.message) == (Busy, "storaged at storaged-0:9779: full")


def test_stale_reply_takes_precedence() -> None:
    assert isinstance(failure_of_two([Busy("full"), Stale("no version 3")]), Stale)


def test_transports_of_addresses_in_use_stay_open() -> None:
    opened: list[str] = []
    closed: list[str] = []

    class Transport:
        def __init__(self, address: str) -> None:
            self._address = address
            opened.append(address)

        def close(self) -> None:
            closed.append(self._address)

    pool = StoragedPool(Transport)  # type: ignore[arg-type]  # only `close` is used
    pool.update_addresses(dict(zip(UUIDS, ADDRESSES, strict=True)))
    for uuid in UUIDS:
        pool.transport(uuid)
    pool.update_addresses({UUIDS[0]: ADDRESSES[0], UUIDS[1]: "storaged-1:9780"})
    for uuid in UUIDS:
        pool.transport(uuid)
    assert (opened, closed) == ([*ADDRESSES, "storaged-1:9780"], ["storaged-1:9779"])

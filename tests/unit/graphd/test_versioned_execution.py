"""Tests of waits for spaces and versions that storageds do not have yet."""

from __future__ import annotations

import threading
import time

import pytest
from tests.kit.waiting import HANG_S

from asterism_daemonkit.rpc.call_context import CallContext
from asterism_model.schema import NodeType, Schema
from asterism_proto.errors import Stale
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from graphd.api.versioned_execution import VersionRunner
from graphd.routing.dispatch import Dispatcher, StoragedPool
from graphd.routing.routes import SpaceRoute
from graphd.routing.routing_table import RoutingTable

CATCH_UP_S = 0.05


def make_runner(routing: RoutingTable, catch_up_s: float = CATCH_UP_S) -> VersionRunner:
    def refuse(*_: object) -> bool:
        raise AssertionError("no storaged is called, and no version is looked up")

    return VersionRunner(
        routing=routing,
        dispatcher=Dispatcher(StoragedPool(refuse)),  # type: ignore[arg-type]  # never called
        space_exists=lambda *_: True,
        is_published=refuse,
        catch_up_s=catch_up_s,
    )


def with_space() -> metad_pb.PollReply:
    schema = Schema(node_types=(NodeType(name="a"),), parts=1).to_proto()
    space = common_pb.Space(
        space_id=7, name="s", schema=schema, parts=[common_pb.PartHosts(hosts=["x"])]
    )
    return metad_pb.PollReply(revision=2, spaces=[metad_pb.SpaceRoute(space=space)])


class SlowStoraged:
    """A storaged that opens its space after some seconds."""

    def __init__(self, opens_after_s: float, *, says_when: bool = True) -> None:
        self.opens_at = time.monotonic() + opens_after_s
        self.says_when = says_when

    def run(self, space: SpaceRoute) -> str:
        if time.monotonic() >= self.opens_at:
            return "written"
        error = Stale("space 7 has no partition here; this storaged has spaces [3]")
        if self.says_when:
            error.retry_after_s = 0.05
        raise error


@pytest.fixture
def routing() -> RoutingTable:
    table = RoutingTable()
    table.apply_reply(with_space())
    return table


def test_a_call_waits_for_a_space_until_its_deadline(routing: RoutingTable) -> None:
    storaged = SlowStoraged(10 * CATCH_UP_S)
    call = CallContext.with_timeout(HANG_S)
    assert make_runner(routing).retry_stale("s", call, storaged.run) == "written"


def test_a_call_that_waits_in_vain_ends_with_the_reason(routing: RoutingTable) -> None:
    storaged, call = SlowStoraged(HANG_S), CallContext.with_timeout(0.5)
    with pytest.raises(Stale, match=r"has spaces \[3\]"):
        make_runner(routing).retry_stale("s", call, storaged.run)
    assert time.monotonic() > call.deadline - 0.5 + CATCH_UP_S


def test_a_call_waits_for_a_version_for_a_while(routing: RoutingTable) -> None:
    storaged = SlowStoraged(HANG_S, says_when=False)
    with pytest.raises(Stale):
        make_runner(routing).retry_stale("s", CallContext.with_timeout(2 * HANG_S), storaged.run)
    assert time.monotonic() < storaged.opens_at


def test_without_catching_up_a_call_never_waits(routing: RoutingTable) -> None:
    storaged = SlowStoraged(HANG_S)
    runner = make_runner(routing, catch_up_s=0.0)
    with pytest.raises(Stale):
        runner.retry_stale("s", CallContext.with_timeout(2 * HANG_S), storaged.run)
    assert time.monotonic() < storaged.opens_at


def test_a_call_waits_for_the_route_of_a_created_space() -> None:
    routing = RoutingTable()
    arrival = threading.Timer(10 * CATCH_UP_S, routing.apply_reply, [with_space()])
    arrival.start()
    space = make_runner(routing).space_of("s", CallContext.with_timeout(HANG_S))
    arrival.join()
    assert space.space_id == 7

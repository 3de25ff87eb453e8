"""Tests of the tickets with which an in-process graphd calls storageds."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.kit.endpoints import endpoints

from asterism_access.principals import Principal, PrincipalKind
from asterism_daemonkit.rpc.call_context import CallContext
from asterism_model.schema import EdgeType, NodeType, Schema
from asterism_proto.errors import Deadline, Forbidden, NotReady, Unauthenticated
from asterism_proto.framing import Frame
from asterism_proto.methods import GRAPH
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from graphd.direct_client import InProcessGraphd

ALICE = Principal(name="alice", kind=PrincipalKind.TICKET)


class Cluster:
    """One storaged that accepts some tickets, and the routes of a graphd."""

    def __init__(self) -> None:
        self.accepted: set[str] = set()
        self.tickets: list[str] = []
        """Tickets that the next replies with routes contain; the last one stays."""
        self.ticket_s = 300.0
        self.fetches = 0
        self.greeted: list[str] = []
        """Tickets that the storaged has seen, in order."""
        self.error: Exception | None = None
        """Error of the next calls of the storaged."""
        self.routes_error: Exception | None = None
        self.address = ""

    def authenticate(self, authorization: str) -> Principal:
        ticket = authorization.removeprefix("Bearer").strip()
        self.greeted.append(ticket)
        if ticket not in self.accepted:
            raise Unauthenticated("ticket: expired")
        return ALICE

    def respond(self, frame: Frame, call: CallContext) -> Frame:
        assert call.principal == ALICE
        if self.error is not None:
            raise self.error
        return Frame(
            storaged_pb.ReadDegreesReply(),
            {"degrees": np.ones((len(frame.arrays["ids"]), 1), np.int64)},
        )

    def fetch_routes(self, known_revision: int, timeout_s: float) -> graphd_pb.GetRoutesReply:
        self.fetches += 1
        if self.routes_error is not None:
            raise self.routes_error
        ticket = self.tickets.pop(0) if len(self.tickets) > 1 else self.tickets[0]
        return graphd_pb.GetRoutesReply(
            revision=1,
            desired_state=None if known_revision == 1 else self._state(),
            ticket=ticket,
            ticket_s=self.ticket_s,
        )

    def _state(self) -> metad_pb.PollReply:
        schema = Schema(
            node_types=(NodeType(name="user"),),
            edge_types=(EdgeType(src_type="user", relation="knows", dst_type="user"),),
            parts=1,
        )
        space = common_pb.Space(
            space_id=7,
            name="shop",
            schema=schema.to_proto(),
            parts=[common_pb.PartHosts(hosts=["x"])],
        )
        manifest = common_pb.Manifest(space_id=7, version=1, digest="d")
        return metad_pb.PollReply(
            revision=1,
            spaces=[metad_pb.SpaceRoute(space=space, versions=[manifest])],
            storaged=[metad_pb.Host(uuid="x", address=self.address, online=True)],
        )


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    cluster = Cluster()
    with endpoints(cluster.respond, authenticate=cluster.authenticate) as running:
        cluster.address = running.transport.address
        yield cluster


@pytest.fixture
def graphd(cluster: Cluster) -> Iterator[InProcessGraphd]:
    graphd = InProcessGraphd(cluster.fetch_routes, contextlib.nullcontext)
    yield graphd
    graphd.close()


def call(graphd: InProcessGraphd, timeout_s: float = 30.0) -> bool:
    """Read degrees; return whether the storaged replied, and not None for a graphd."""
    request = graphd_pb.DegreesRequest(space="shop", edge_types=[0], node_type=0)
    frame = Frame(request, {"nodes": np.array([3, 4], np.int64)})
    return graphd.try_call(GRAPH["degrees"], frame, graphd.call_context(timeout_s)) is not None


def test_storageds_get_the_ticket_of_the_routes(cluster: Cluster, graphd: InProcessGraphd) -> None:
    cluster.tickets, cluster.accepted = ["one"], {"one"}
    assert call(graphd)
    assert set(cluster.greeted) == {"one"}


def test_a_refused_ticket_is_replaced_once(cluster: Cluster, graphd: InProcessGraphd) -> None:
    cluster.tickets, cluster.accepted = ["old", "new"], {"new"}
    assert call(graphd)
    assert cluster.fetches == 2
    assert cluster.greeted[0] == "old"
    assert cluster.greeted[-1] == "new"


def test_a_second_refusal_fails_the_call(cluster: Cluster, graphd: InProcessGraphd) -> None:
    cluster.tickets = ["old", "older"]
    with pytest.raises(Unauthenticated):
        call(graphd)
    assert cluster.fetches == 2


def test_an_open_connection_outlives_its_ticket(cluster: Cluster, graphd: InProcessGraphd) -> None:
    cluster.tickets, cluster.accepted = ["one", "two"], {"one"}
    assert call(graphd)
    cluster.accepted = {"two"}
    graphd._renew_ticket_at = 0.0
    graphd.invalidate_routes()
    for _ in range(2):
        assert call(graphd)


def test_a_refused_new_connection_replaces_the_ticket(
    cluster: Cluster, graphd: InProcessGraphd
) -> None:
    cluster.tickets, cluster.accepted = ["one", "two"], {"one"}
    assert call(graphd)
    transport: Any = graphd._hosts.transport("x")
    transport._idle_connections.pop().close()
    cluster.accepted = {"two"}
    assert call(graphd)
    assert graphd._current_ticket() == "two"


@pytest.mark.parametrize(("ticket_s", "expected"), [(300.0, "one"), (0.0, "two")])
def test_a_ticket_is_renewed_at_half_of_its_validity(
    ticket_s: float, expected: str, cluster: Cluster, graphd: InProcessGraphd
) -> None:
    cluster.tickets, cluster.accepted = ["one", "two"], {"one", "two"}
    cluster.ticket_s = ticket_s
    assert call(graphd)
    graphd.invalidate_routes()
    assert call(graphd)
    assert cluster.fetches == 2
    assert graphd._current_ticket() == expected


def test_changed_roles_go_to_a_graphd(cluster: Cluster, graphd: InProcessGraphd) -> None:
    """A role that was granted after the ticket is in the next one."""
    cluster.tickets, cluster.accepted = ["one", "two"], {"one", "two"}
    cluster.error = Forbidden("space='shop': not found, or 'alice' has no role there")
    assert not call(graphd)
    cluster.error = None
    assert call(graphd)
    assert graphd._current_ticket() == "two"


def test_a_revoked_key_fails_with_the_reason(cluster: Cluster, graphd: InProcessGraphd) -> None:
    cluster.tickets, cluster.accepted = ["one"], {"one"}
    assert call(graphd)
    cluster.accepted, cluster.routes_error = set(), Unauthenticated("api_key: revoked")
    graphd._hosts.close()
    with pytest.raises(Unauthenticated, match=r"^api_key: revoked$"):
        call(graphd)


@pytest.mark.parametrize("error", [NotReady("no reply from metad yet"), Deadline("late")])
def test_without_new_routes_a_call_goes_to_a_graphd(
    error: Exception, cluster: Cluster, graphd: InProcessGraphd
) -> None:
    cluster.tickets, cluster.accepted = ["one"], {"one"}
    assert call(graphd)
    cluster.accepted, cluster.routes_error = set(), error
    graphd._hosts.close()
    assert not call(graphd)


def test_without_access_control_there_is_no_ticket() -> None:
    def respond(frame: Frame, call: CallContext) -> Frame:
        degrees = np.ones((len(frame.arrays["ids"]), 1), np.int64)
        return Frame(storaged_pb.ReadDegreesReply(), {"degrees": degrees})

    cluster = Cluster()
    cluster.tickets = [""]
    with endpoints(respond) as running:
        cluster.address = running.transport.address
        graphd = InProcessGraphd(cluster.fetch_routes, contextlib.nullcontext)
        assert call(graphd)
        graphd.close()

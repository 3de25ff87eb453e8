from __future__ import annotations

import threading

import numpy as np
import pytest

from asterism_daemonkit.rpc.call_context import CallContext
from asterism_model.elements import EDGE, NODE
from asterism_model.schema import NodeType, Schema
from asterism_proto.errors import NotFound, NotReady
from asterism_proto.framing import Frame
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from graphd.routing.routing_table import RoutingTable


def poll_reply(revision: int, *versions: int) -> metad_pb.PollReply:
    schema = Schema(node_types=(NodeType(name="a"), NodeType(name="b")), parts=4)
    totals = [
        common_pb.PartitionStats(
            part=part,
            element=common_pb.NODE,
            type_id=type_id,
            count=10,
            positive=part,
            weight=float(part * (type_id + 1)),
        )
        for part in range(4)
        for type_id in range(2)
    ]
    space = common_pb.Space(
        space_id=7,
        name="s",
        schema=schema.to_proto(),
        parts=[common_pb.PartHosts(hosts=[uuid]) for uuid in ("y", "x", "y", "x")],
    )
    manifests = [
        common_pb.Manifest(space_id=7, version=version, digest=f"d{version}", totals=totals)
        for version in versions
    ]
    hosts = [
        metad_pb.Host(uuid="x", address="x:1", online=True),
        metad_pb.Host(uuid="y", address="y:1"),
    ]
    return metad_pb.PollReply(
        revision=revision,
        spaces=[metad_pb.SpaceRoute(space=space, versions=manifests)],
        storaged=hosts,
    )


def test_a_poll_becomes_routes() -> None:
    routes = RoutingTable().apply_reply(poll_reply(3, 1, 2))
    space = routes.space("s")
    assert space.hosts == ("x", "y")
    assert space.host_of_part.tolist() == [1, 0, 1, 0]
    assert space.parts_of(1) == [0, 2]
    assert space.current_version == 2
    assert space.find_version(0).version == 2
    assert space.find_version(1).digest == "d1"
    assert routes.addresses == {"x": "x:1", "y": "y:1"}


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    table = RoutingTable()
    with pytest.raises(NotFound, match="no space 'nope'; there are none"):
        table.routes.space("nope")
    with pytest.raises(NotReady, match="space 's' has no published version; submit a build"):
        table.apply_reply(poll_reply(1)).space("s").find_version(0)
    with pytest.raises(
        NotFound, match="version 9 of space 's' is not served; those that are: 2, 3"
    ):
        table.apply_reply(poll_reply(2, 2, 3)).space("s").find_version(9)


def test_retained_version_keeps_its_shares() -> None:
    table = RoutingTable()
    before = table.apply_reply(poll_reply(1, 1)).space("s").find_version(1)
    after = table.apply_reply(poll_reply(2, 1, 2)).space("s")
    assert after.find_version(1) is before
    assert after.find_version(2) is not before


def test_waiter_is_woken_by_an_update() -> None:
    table = RoutingTable()
    threading.Timer(0.02, lambda: table.apply_reply(poll_reply(1, 1))).start()
    assert table.wait_for(lambda routes: "s" in routes.spaces, 10)
    assert not table.wait_for(lambda routes: "t" in routes.spaces, 0)


def test_shares_are_weights_or_live_counts_by_type() -> None:
    totals = RoutingTable().apply_reply(poll_reply(1, 1)).space("s").find_version(1).totals
    weighted = totals.shares(NODE, (1, 0, 1), uniform=False)
    assert weighted.types.tolist() == [0] * 4 + [1] * 4
    assert np.array_equal(weighted.measure, [0, 1, 2, 3, 0, 2, 4, 6])
    assert weighted is totals.shares(NODE, (0, 1), uniform=False)
    assert totals.shares(NODE, (1,), uniform=True).measure.tolist() == [10] * 4
    assert totals.shares(EDGE, (0,), uniform=False).total == 0
    assert totals.drawable_count(NODE, (1,), uniform=False) == 6
    assert totals.drawable_count(NODE, (0, 1), uniform=True) == 80


def test_version_with_another_digest_is_another_version() -> None:
    table = RoutingTable()
    before = table.apply_reply(poll_reply(1, 1)).space("s").find_version(1)
    reply = poll_reply(2, 1)
    reply.spaces[0].versions[0].digest = "rebuilt"
    reply.spaces[0].versions[0].totals[0].count = 11
    after = table.apply_reply(reply).space("s").find_version(1)
    assert (before.digest, after.digest) == ("d1", "rebuilt")
    assert after.totals.nodes([0]) == before.totals.nodes([0]) + 1


@pytest.mark.parametrize(("known", "is_sent"), [(2, True), (3, False), (4, True)])
def test_routes_are_left_out_at_their_own_revision_only(known: int, is_sent: bool) -> None:
    """A known revision above metad's own is of a catalog that is gone."""
    table = RoutingTable()
    table.apply_reply(poll_reply(3, 1))
    request = Frame(graphd_pb.GetRoutesRequest(known_revision=known))
    reply = table.get_routes(request, CallContext.with_timeout(60)).head
    assert (reply.revision, reply.HasField("desired_state")) == (3, is_sent)


def test_clients_get_no_keys_and_grants_with_their_routes() -> None:
    table, reply = RoutingTable(), poll_reply(3, 1)
    reply.access.keys.add(key_id="k", secret_hash=b"hash")
    reply.access.grants.add(principal="alice", space="s")
    table.apply_reply(reply)
    routes = table.get_routes(Frame(graphd_pb.GetRoutesRequest()), CallContext.with_timeout(60))
    assert routes.head.desired_state.spaces[0].space.name == "s"
    assert not routes.head.desired_state.HasField("access")

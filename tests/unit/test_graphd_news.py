from __future__ import annotations

import threading

import numpy as np
import pytest

from asterism_proto.errors import NotFound, NotReady
from asterism_proto.schema import NodeType, Schema
from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.v1 import metad_pb2 as meta
from graphd.news import News
from graphd.totals import EDGE, NODE


def told(revision: int, *versions: int) -> meta.PollReply:
    schema = Schema(node_types=(NodeType(name="a"), NodeType(name="b")), parts=4)
    totals = [
        pb.Total(part=part, element=pb.NODE, type_id=type_id, count=10, positive=part, weight=float(part * (type_id + 1)))
        for part in range(4)
        for type_id in range(2)
    ]
    space = pb.Space(space_id=7, name="s", schema=schema.to_proto(), parts=[pb.PartHosts(hosts=[uuid]) for uuid in ("y", "x", "y", "x")])
    manifests = [pb.Manifest(space_id=7, version=version, digest=f"d{version}", totals=totals) for version in versions]
    hosts = [meta.Host(uuid="x", address="x:1", online=True), meta.Host(uuid="y", address="y:1")]
    return meta.PollReply(revision=revision, spaces=[meta.SpaceRoute(space=space, versions=manifests)], storaged=hosts)


def test_a_poll_becomes_routes() -> None:
    routes = News().apply(told(3, 1, 2))
    space = routes.space("s")
    assert space.hosts == ("x", "y")
    assert space.host_of_part.tolist() == [1, 0, 1, 0]
    assert space.parts_of(1) == [0, 2]
    assert space.current == 2
    assert space.at(0).version == 2
    assert space.at(1).digest == "d1"
    assert routes.addresses == {"x": "x:1", "y": "y:1"}


def test_what_is_not_there_is_named_with_what_is() -> None:
    news = News()
    with pytest.raises(NotFound, match="no space 'nope'; there are none"):
        news.routes.space("nope")
    with pytest.raises(NotReady, match="space 's' has no published version; submit a build"):
        news.apply(told(1)).space("s").at(0)
    with pytest.raises(NotFound, match="version 9 of space 's' is not served; those that are: 2, 3"):
        news.apply(told(2, 2, 3)).space("s").at(9)


def test_a_version_that_stays_keeps_the_shares_made_from_it() -> None:
    news = News()
    before = news.apply(told(1, 1)).space("s").at(1)
    after = news.apply(told(2, 1, 2)).space("s")
    assert after.at(1) is before
    assert after.at(2) is not before


def test_whoever_waits_for_news_is_woken_by_them() -> None:
    news = News()
    threading.Timer(0.02, lambda: news.apply(told(1, 1))).start()
    assert news.wait_for(lambda routes: "s" in routes.spaces, 10)
    assert not news.wait_for(lambda routes: "t" in routes.spaces, 0)


def test_shares_are_weights_or_live_counts_of_the_types_asked_for() -> None:
    totals = News().apply(told(1, 1)).space("s").at(1).totals
    weighted = totals.shares(NODE, (1, 0, 1), uniform=False)
    assert weighted.types.tolist() == [0] * 4 + [1] * 4
    assert np.array_equal(weighted.measure, [0, 1, 2, 3, 0, 2, 4, 6])
    assert weighted is totals.shares(NODE, (0, 1), uniform=False)
    assert totals.shares(NODE, (1,), uniform=True).measure.tolist() == [10] * 4
    assert totals.shares(EDGE, (0,), uniform=False).total == 0
    assert totals.available(NODE, (1,), uniform=False) == 6
    assert totals.available(NODE, (0, 1), uniform=True) == 80

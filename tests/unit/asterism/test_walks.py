"""Tests of metapaths that no walk can take, and of arguments of walks and rankings."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from asterism import Client, Graph
from asterism.calls.validation import NodeTypeRequired
from asterism.calls.walks import reachable_types
from asterism.euler.facade import Euler
from asterism.records.samples import SpaceInfo
from asterism_model.schema import Schema
from asterism_proto.errors import InvalidRequest, NotFound
from asterism_proto.framing import Frame
from asterism_proto.methods import Method
from asterism_proto.transport import Content
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import graphd_pb2 as graphd_pb

SCHEMA = Schema.from_dict(
    {
        "direction": "both",
        "nodes": {"user": {"features": {"age": "int16"}}, "item": {}},
        "edges": {"user:buys:item": {}, "item:by:user": {}, "user:follows:user": {}},
    }
)
BUYS, BY, FOLLOWS = range(3)


class StubTransport:
    """A transport that has nodes 0 to 9 of each type at version 5, and walks to nowhere."""

    prices_requests = False
    piece_bytes = 4 << 20

    def __init__(self) -> None:
        self.heads: list[Any] = []

    def call(self, method: Method, request: Content, timeout_s: float) -> Any:
        assert isinstance(request, Frame)
        head: Any = request.head
        self.heads.append(head)
        nodes = np.asarray(request.arrays["nodes"])
        if method.python_name == "node_types":
            known = np.where((nodes >= 0) & (nodes < 10), np.int32(0), np.int32(-1))
            return Frame(graphd_pb.NodeTypesReply(version=5), {"types": known.astype(np.int32)})
        if method.python_name == "node_features":
            return Frame(
                graphd_pb.NodeFeaturesReply(version=head.version or 5),
                {"f:age": np.ones(len(nodes), np.int16)},
            )
        raise NotFound("heard")

    def close(self) -> None:
        pass


@pytest.fixture
def transport() -> StubTransport:
    return StubTransport()


@pytest.fixture
def graph(transport: StubTransport) -> Graph:
    client = Client(transport)
    client.session.store_space(
        SpaceInfo(name="shop", space_id=1, schema=SCHEMA, version=5, created_ms=0, hosts=())
    )
    return client.graph("shop")


def test_reachable_types_follow_the_steps() -> None:
    assert reachable_types(SCHEMA, [[BUYS], [BY], [BUYS, FOLLOWS]], None, common_pb.OUT) == [
        {"item"},
        {"user"},
        {"item", "user"},
    ]
    assert reachable_types(SCHEMA, [[BUYS], [BUYS]], None, common_pb.OUT) == [{"item"}]
    assert reachable_types(SCHEMA, [[BUYS], [BUYS]], None, common_pb.IN) == [{"user"}]
    assert reachable_types(SCHEMA, [[BUYS]], "item", common_pb.OUT) == []
    restarted = reachable_types(SCHEMA, [[BUYS], [BUYS]], None, common_pb.OUT, restarts=True)
    assert restarted == [{"item", "user"}, {"item", "user"}]


def test_a_walk_refuses_a_metapath_that_no_walk_can_take(graph: Graph) -> None:
    with pytest.raises(
        InvalidRequest,
        match=r"metapath\[1\]=\['user:buys:item'\]: expected an edge type that starts at item, "
        r"where metapath\[0\] leads",
    ):
        graph.random_walk([1], ["buys", "buys"])
    with pytest.raises(InvalidRequest, match=r"ends at user, where metapath\[0\] leads"):
        graph.random_walk([1], ["buys", "buys"], direction="in")


@pytest.mark.parametrize(
    "call",
    [
        lambda graph: graph.random_walk([1], ["buys", "by"], 7),
        lambda graph: graph.random_walk([1], ["buys", "buys"], 1),
        lambda graph: graph.random_walk([1], ["buys", "buys"], restart=0.1),
        lambda graph: graph.random_walk([1], ["buys"], 3),
        lambda graph: graph.random_walk([1], None, 3, ntype="item"),
    ],
)
def test_a_walk_that_may_take_all_steps_is_sent(graph: Graph, call: Any) -> None:
    with pytest.raises(NotFound, match="heard"):
        call(graph)


def test_euler_fills_steps_that_no_walk_can_take(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = Schema.from_dict({**SCHEMA.to_dict(), "ids": "global"})
    graph._session.store_schema("shop", schema)
    steps: list[Any] = []

    def walk(nodes: Any, metapath: Any, **_: Any) -> Any:
        steps.append(metapath)
        return _Walks(np.array([[3, 4]]))

    monkeypatch.setattr(graph, "random_walk", walk)
    walks = Euler(graph).random_walk([3], [["buys"], ["buys"], ["by"]], default_node=9)
    assert walks.tolist() == [[3, 4, 9, 9]]
    assert steps == [[["user:buys:item"]]]


class _Walks:
    """Walks of one step."""

    def __init__(self, nodes: Any) -> None:
        self.nodes = nodes

    def __len__(self) -> int:
        return len(self.nodes)


def test_a_first_step_of_no_walk_is_refused(graph: Graph) -> None:
    with pytest.raises(InvalidRequest, match="length=0 with first_step='distinct'"):
        graph.random_walk([1], ["buys"], 0, walks=2, first_step="distinct")
    with pytest.raises(InvalidRequest, match="walks=None with first_step='distinct'"):
        graph.random_walk([1], ["buys"], first_step="distinct")


def test_pagerank_refuses_a_walk_that_never_ends(graph: Graph) -> None:
    with pytest.raises(InvalidRequest, match="alpha=0: expected above 0 and at most 1"):
        graph.personalized_pagerank([1], "follows", 3, alpha=0)
    with pytest.raises(NotFound, match="heard"):
        graph.personalized_pagerank([1], "follows", 3, alpha=1)


def test_strict_features_refuse_unknown_nodes(graph: Graph, transport: StubTransport) -> None:
    assert graph.node_features([1, 99], "age")["age"].tolist() == [1, 1]
    with pytest.raises(
        NotFound,
        match=r"nodes\[1\]=99: expected a node of type 'user' in version 5 \(1 more\); .*strict",
    ):
        graph.node_features([1, 99, 100], "age", strict=True)
    transport.heads.clear()
    assert len(graph.node_features([1, -1, 9], "age", strict=True)["age"]) == 3
    assert [head.version for head in transport.heads] == [0, 5], "both read one version"


def test_a_missing_node_type_is_named_with_its_remedy(graph: Graph) -> None:
    with pytest.raises(NodeTypeRequired, match="found item, user; pass ntype") as raised:
        graph.sample_neighbors([1], ["buys", "by"], 2)
    error = pickle.loads(pickle.dumps(raised.value))
    assert (error.message, error.problem) == (raised.value.message, raised.value.problem)
    assert "ntype" not in error.problem

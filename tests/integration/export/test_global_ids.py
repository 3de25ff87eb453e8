"""Spaces with global ids: an id determines its node type, so requests may omit the type."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import asterism
from asterism import Client, Graph

SCHEMA = {
    "parts": 3,
    "ids": "global",
    "direction": "both",
    "nodes": {"user": {"features": {"age": "int64"}}, "item": {}},
    "edges": {
        "user:buys:item": {},
        "user:follows:user": {},
        "item:like:item": {"missing": "create"},
    },
}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with asterism.open(tmp_path_factory.mktemp("global")) as opened:
        yield opened


@pytest.fixture(scope="module")
def graph(client: Client) -> Graph:
    client.create_space("shop", SCHEMA)
    graph = client.graph("shop")
    graph.upsert_nodes([0, 1, 2, 3], "user", features={"age": [10, 11, 12, 13]})
    graph.upsert_nodes([100, 101, 205], "item")
    graph.upsert_edges([0, 0, 1, 2], [100, 101, 205, 205], "buys")
    graph.upsert_edges([0, 3], [3, 1], "follows")
    graph.upsert_edges([100], [101], "like")
    graph.build()
    return graph


def test_neighbors_of_a_mixed_batch_need_no_types(graph: Graph) -> None:
    outgoing = graph.neighbors([0, 100, 3, 205, 999], ["buys", "follows", "like"])
    rows = [
        outgoing.nodes[a:b].tolist()
        for a, b in zip(outgoing.indptr, outgoing.indptr[1:], strict=False)
    ]
    assert rows == [[100, 101, 3], [101], [1], [], []]
    incoming = graph.neighbors([205, 3, 101], ["buys", "follows", "like"], direction="in")
    assert [
        incoming.nodes[a:b].tolist()
        for a, b in zip(incoming.indptr, incoming.indptr[1:], strict=False)
    ] == [[1, 2], [0], [0, 100]]


def test_fanout_crosses_types_without_type_arguments(graph: Graph) -> None:
    sample = graph.sample_fanout(
        [0, 3], [["buys", "follows"], ["buys", "follows", "like"]], [3, 2], seed=5
    )
    reached = {0: {100, 101, 3}, 3: {1}, 1: {205}, 100: {101}, 101: set(), 205: set()}
    first = sample.hops[0].nodes.reshape(2, 3)
    assert all(set(row) <= reached[seed] for seed, row in zip([0, 3], first.tolist(), strict=True))
    for parent, row in zip(
        first.reshape(-1).tolist(), sample.hops[1].nodes.reshape(-1, 2).tolist(), strict=True
    ):
        assert set(row) <= (reached[parent] or {-1})


@pytest.mark.parametrize(("ids", "ntype", "said"), [([7, 100], "user", "100"), ([2], "item", "2")])
def test_an_id_of_another_type_is_refused(
    graph: Graph, ids: list[int], ntype: str, said: str
) -> None:
    with pytest.raises(asterism.InvalidRequest, match=rf"ids\[\d\] = {said}: .* of type"):
        graph.upsert_nodes(ids, ntype)


def test_an_edge_does_not_make_a_node_of_a_second_type(graph: Graph) -> None:
    with pytest.raises(asterism.InvalidRequest, match="= 3: "):
        graph.upsert_edges([100], [3], "like")


def test_an_id_may_change_its_type_once_it_is_deleted(client: Client, tmp_path: Path) -> None:
    client.create_space("moving", SCHEMA)
    graph = client.graph("moving")
    graph.upsert_nodes([1, 2], "user")
    graph.delete_nodes([2], "user")
    graph.upsert_nodes([2], "item")
    graph.build()
    assert sorted(np.concatenate([batch.ids for batch in graph.scan_nodes("item")]).tolist()) == [2]
    assert sorted(np.concatenate([batch.ids for batch in graph.scan_nodes("user")]).tolist()) == [1]

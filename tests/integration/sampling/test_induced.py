"""Induced subgraphs, compared with a loop over all edges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.kit import cases

import asterism
from asterism import Graph
from asterism.records.samples import Subgraph
from graphd.operators import layers

WRITES, CITES, BY = "person:writes:paper", "paper:cites:paper", "paper:by:person"
UNKNOWN = 10**9


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[asterism.Client]:
    with asterism.open(cases.copy_built_graph(tmp_path_factory.mktemp("induced"))) as opened:
        yield opened


@pytest.fixture(scope="module")
def graph(client: asterism.Client) -> Graph:
    return client.graph("cases")


def seeds_and_types() -> tuple[np.ndarray, np.ndarray]:
    """Return nodes of both types, and their types.

    Some nodes occur twice; each type has an unknown id, and one slot is empty (-1).
    """
    people, papers = cases.person_ids()[::5], np.arange(0, 80, 2)
    nodes = np.concatenate([people, papers, [UNKNOWN, -1, 4], people[:3], papers[:3]])
    types = np.concatenate(
        [np.zeros(len(people)), np.ones(len(papers)), [1, 0, 0], np.zeros(3), np.ones(3)]
    ).astype(np.int32)
    order = np.random.default_rng(3).permutation(len(nodes))
    return nodes[order], types[order]


def expected_contents(
    nodes: np.ndarray, types: np.ndarray, groups: np.ndarray, names: list[str], direction: str
) -> tuple[dict[str, list[tuple[int, int]]], list[int], dict[str, list[tuple[int, int, int]]]]:
    """Return the expected nodes, seed indices and edges of an induced subgraph.

    Nodes are (group, id) by index; each seed gives its node's index; edges are (row, col, edge id).
    """
    members: dict[str, list[tuple[int, int]]] = {"person": [], "paper": []}
    numbers = []
    for node, kind, group in zip(nodes.tolist(), types.tolist(), groups.tolist(), strict=True):
        members_of_type = members[("person", "paper")[kind]]
        if node >= 0 and (group, node) not in members_of_type:
            members_of_type.append((group, node))
        numbers.append(members_of_type.index((group, node)) if node >= 0 else -1)
    edges = {}
    for name in names:
        src_type, relation, dst_type = name.split(":")
        index_of = {
            kind: {member: i for i, member in enumerate(members[kind])}
            for kind in (src_type, dst_type)
        }
        src, dst, _ = cases.edges()[relation]
        rows_with_ends = [
            ((index_of[src_type][group, a], index_of[dst_type][group, b], eid), (a, b))
            for eid, (a, b) in enumerate(zip(src.tolist(), dst.tolist(), strict=True))
            for group in sorted(set(groups.tolist()))
            if (group, a) in index_of[src_type] and (group, b) in index_of[dst_type]
        ]
        local_end, remote_end = (0, 1) if direction == "out" else (1, 0)
        edges[name] = [
            edge
            for edge, ends in sorted(
                rows_with_ends, key=lambda row: (row[0][local_end], row[1][remote_end], row[0][2])
            )
        ]
    return members, numbers, edges


def contents_of(
    subgraph: Subgraph,
) -> tuple[dict[str, list[tuple[int, int]]], list[int], dict[str, list[tuple[int, int, int]]]]:
    """Return a subgraph's contents in the form of `expected_contents`."""
    batch = subgraph.batch or {
        name: np.zeros(len(ids), np.int64) for name, ids in subgraph.nodes.items()
    }
    nodes = {
        name: list(zip(batch[name].tolist(), ids.tolist(), strict=True))
        for name, ids in subgraph.nodes.items()
    }
    assert subgraph.edge_ids is not None
    edges = {
        name: list(
            zip(
                subgraph.row[name].tolist(),
                subgraph.col[name].tolist(),
                subgraph.edge_ids[name].tolist(),
                strict=True,
            )
        )
        for name in subgraph.row
    }
    return nodes, subgraph.seeds.tolist(), edges


@pytest.mark.parametrize("direction", ["out", "in"])
@pytest.mark.parametrize("several", [False, True])
def test_induced_subgraph_has_exactly_the_inner_edges(
    graph: Graph, direction: str, several: bool
) -> None:
    nodes, types = seeds_and_types()
    indptr = np.array([0, 40, 40, 90, len(nodes)]) if several else None
    groups = (
        np.zeros(len(nodes), int) if indptr is None else np.repeat(np.arange(4), np.diff(indptr))
    )
    names = [CITES, BY, WRITES]
    sub = graph.induced_subgraph(
        nodes,
        ["cites", "by", "writes"],
        indptr=indptr,
        ntype=types,
        direction=direction,
        weights=True,
    )
    assert contents_of(sub) == expected_contents(nodes, types, groups, names, direction)
    assert all(len(sub.row[name]) for name in names)
    assert (sub.batch is None) == (not several)
    assert sub.num_sampled_nodes == {name: (len(ids),) for name, ids in sub.nodes.items()}
    assert sub.num_sampled_edges == {name: (len(row),) for name, row in sub.row.items()}
    assert sub.weights is not None
    assert sub.edge_ids is not None
    for name in (WRITES, CITES):
        assert np.array_equal(
            sub.weights[name], cases.edges()[name.split(":")[1]][2][sub.edge_ids[name]]
        )
    without_ids = graph.induced_subgraph(
        nodes, "cites", indptr=indptr, ntype=types, direction=direction, edge_ids=False
    )
    assert without_ids.edge_ids is None
    assert without_ids.weights is None
    assert np.array_equal(without_ids.row[CITES], sub.row[CITES])
    assert (sub.seed, sub.token) == (0, "")


def test_filters_named_weights_features_and_one_type(graph: Graph) -> None:
    papers = np.arange(0, 90, 3)
    sub = graph.induced_subgraph(
        papers, "cites", where="weight > 1", weight="recent", weights=True, node_features=["vec"]
    )
    src, dst, weight = cases.edges()["cites"]
    matching = np.flatnonzero((src % 3 == 0) & (dst % 3 == 0) & (weight > 1))
    assert sub.edge_ids is not None
    assert sub.weights is not None
    assert np.array_equal(np.sort(sub.edge_ids[CITES]), matching)
    np.testing.assert_allclose(sub.weights[CITES], np.log(weight[sub.edge_ids[CITES]]), rtol=1e-6)
    assert sub.features is not None
    assert np.array_equal(
        sub.features["paper"]["vec"], graph.node_features(papers, ["vec"], "paper")["vec"]
    )
    empty = graph.induced_subgraph([], "cites", indptr=[0, 0, 0])
    assert empty.nodes["paper"].size == empty.row[CITES].size == 0


def test_global_ids_need_no_node_types(client: asterism.Client) -> None:
    client.create_space(
        "global",
        {
            "ids": "global",
            "parts": 3,
            "nodes": {"a": {}, "b": {}},
            "edges": {"a:to:b": {}, "b:to:a": {}},
        },
    )
    graph = client.graph("global")
    graph.upsert_nodes([0, 2, 4], "a")
    graph.upsert_nodes([1, 3], "b")
    graph.upsert_edges([0, 2, 4, 0, 0], [1, 3, 1, 1, 3], "a:to:b")
    graph.upsert_edges([1, 3], [4, 0], "b:to:a")
    graph.build()
    sub = graph.induced_subgraph([3, 0, 99, 1, -1, 0])
    assert {name: ids.tolist() for name, ids in sub.nodes.items()} == {"a": [0], "b": [3, 1]}
    assert sub.seeds.tolist() == [0, 0, -1, 1, -1, 0]
    assert (sub.row["a:to:b"].tolist(), sub.col["a:to:b"].tolist()) == ([0, 0, 0], [1, 1, 0])
    assert (sub.row["b:to:a"].tolist(), sub.col["b:to:a"].tolist()) == ([0], [0])


def test_invalid_requests_are_refused_with_the_value(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    invalid_requests: tuple[tuple[dict[str, Any], type[Exception], str], ...] = (
        ({"nodes": [1, 2], "etypes": "writes"}, asterism.InvalidRequest, "pass ntype"),
        ({"nodes": [1, 2], "etypes": "eats"}, asterism.NotFound, "'eats'"),
        (
            {"nodes": [1, 2], "etypes": "cites", "direction": "up"},
            asterism.InvalidRequest,
            "direction='up'",
        ),
        ({"nodes": [1, 2], "etypes": "cites", "weight": "new"}, asterism.NotFound, "'new'"),
        ({"nodes": [1, 2], "etypes": "cites", "version": 77}, asterism.NotFound, "version 77"),
        ({"nodes": [1, -2], "etypes": "cites"}, asterism.InvalidRequest, r"nodes\[1\]=-2"),
        *(
            (
                {"nodes": [1, 2], "etypes": "cites", "indptr": bad},
                asterism.InvalidRequest,
                "rise from 0 to 2",
            )
            for bad in ([], [0, 1], [0, 2, 1, 2], [1, 2])
        ),
    )
    for arguments, error, message in invalid_requests:
        with pytest.raises(error, match=message):
            graph.induced_subgraph(**arguments)
    monkeypatch.setattr(layers, "REPLY_BYTES", 1000)
    with pytest.raises(asterism.InvalidRequest, match="expected at most 1,000 in one reply"):
        graph.induced_subgraph(np.arange(90), "cites")

"""Edges that statements and reads of several hops exclude: as if they did not exist.

Each result equals, to the byte, that of the same statement on a graph that was built without the
edges, on 1, 2 and 3 hosts.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.kit.hosted_graph import graph_on_hosts
from tests.kit.images import Edges, Nodes, version_of

from asterism.graph import Graph
from asterism_model.schema import EdgeType, NodeType, Schema
from asterism_proto.errors import InvalidRequest, NotFound

USERS, ITEMS, EDGES = 14, 9, 120
SCHEMA = Schema(
    node_types=(NodeType(name="user"), NodeType(name="item")),
    edge_types=(
        EdgeType(src_type="user", relation="buys", dst_type="item", weighted=True),
        EdgeType(src_type="item", relation="bought_by", dst_type="user"),
        EdgeType(src_type="user", relation="knows", dst_type="user"),
    ),
    parts=5,
    direction="both",
)
BUYS, KNOWS = "user:buys:item", "user:knows:user"


@cache
def _ends() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    generator = np.random.default_rng(8)
    return generator.integers(0, USERS, EDGES), generator.integers(0, ITEMS, EDGES)


@cache
def _masks() -> tuple[NDArray[np.bool_], ...]:
    """Return the excluded edges of each type: pairs, their reverse edges, and edges by id."""
    src, dst = _ends()
    pairs = set(zip(src[:25].tolist(), dst[:25].tolist(), strict=True))
    buys = np.array([pair in pairs for pair in zip(src.tolist(), dst.tolist(), strict=True)])
    return buys, buys, np.arange(EDGES) % 3 == 0


@cache
def graph(hosts: int, *, without: bool) -> Graph:
    src, dst = _ends()
    kept = [~mask if without else np.ones(EDGES, np.bool_) for mask in _masks()]
    ends = ((src, dst), (dst, src), (src, dst))
    edges = {
        edge_type.name: Edges(
            src=sources[keep],
            dst=targets[keep],
            eids=np.flatnonzero(keep),
            weights=(1 + np.arange(EDGES) % 4).astype(np.float32)[keep]
            if edge_type.weighted
            else None,
        )
        for edge_type, keep, (sources, targets) in zip(SCHEMA.edge_types, kept, ends, strict=True)
    }
    nodes = {"user": Nodes(ids=np.arange(USERS)), "item": Nodes(ids=np.arange(ITEMS))}
    return graph_on_hosts(version_of(SCHEMA, nodes, edges), hosts)


CLAUSES = (
    "EXCLUDE ON buys $src -> $dst REVERSE bought_by "
    "EXCLUDE ON knows $from -> $to @ $ids, 5 -> 6 @ 5000 EXCLUDE ON buys 1 -> 8 @ 5000"
)
STATEMENTS = [
    "SAMPLE 6 NEIGHBORS FROM $n OVER buys SEED 5 {} YIELD src, dst, edge_id, probability",
    "SAMPLE 3 NEIGHBORS FROM $n OVER buys, knows WITHOUT REPLACEMENT SEED 5 {} YIELD src, dst",
    "SAMPLE 3 NEIGHBORS FROM $n ON user OVER * BIDIRECT SEED 5 {} YIELD src, dst, probability",
    "TOP 3 NEIGHBORS FROM $n OVER buys {} YIELD src, dst, weight, edge_id",
    "GO FROM $n OVER buys {} YIELD src, dst, edge_id",
    "GO FROM $n OVER knows REVERSELY {} YIELD src, dst, edge_id",
    "GO 3 STEPS FROM $n OVER buys THEN bought_by {} YIELD src, dst, weight",
    "GO 1 TO 3 STEPS FROM $n OVER buys THEN bought_by THEN knows {} YIELD step, dst, edge_id",
    "GO 2 STEPS FROM $n OVER knows BIDIRECT {} YIELD src, dst, edge_id",
    "GO 2 STEPS FROM $n OVER buys THEN bought_by {} YIELD src, dst LIMIT [2, 3]",
    "GO 2 STEPS FROM $n OVER buys THEN bought_by SEED 5 {} YIELD src, dst SAMPLE [3, 4]",
    "GO 2 STEPS FROM $n OVER buys BIDIRECT SEED 5 {} YIELD src, dst, edge_id SAMPLE [3, 4]",
    "SAMPLE LAYER 6 FROM $n OVER buys SEED 5 {} YIELD src, dst, weight",
    "SAMPLE LAYERS [6, 5] FROM $n OVER buys THEN bought_by SEED 5 {} YIELD step, id, probability",
    "WALK 6 STEPS FROM $n OVER buys THEN bought_by SEED 5 {} YIELD path",
    "WALK 4 STEPS FROM $n OVER knows P 0.5 Q 2 WALKS 3 SEED 5 {} YIELD path, edge_ids",
]


def parameters() -> dict[str, Any]:
    src, dst = _ends()
    named = np.flatnonzero(_masks()[2])
    return {
        "n": np.arange(USERS),
        "src": src[:25],
        "dst": dst[:25],
        "from": src[named],
        "to": dst[named],
        "ids": named,
    }


@pytest.mark.parametrize("hosts", [1, 2, 3])
@pytest.mark.parametrize("statement", STATEMENTS, ids=[text[:50] for text in STATEMENTS])
def test_a_statement_reads_a_graph_without_the_edges(statement: str, hosts: int) -> None:
    values = parameters()
    found = graph(hosts, without=False).query(statement.format(CLAUSES), values)
    expected = graph(1, without=True).query(statement.format(""), values)
    assert found.columns == expected.columns
    assert len(found) == len(expected) > 0
    for name in found.columns:
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name, strict=True)
    whole = graph(1, without=False).query(statement.format(""), values)
    assert found.rows() != whole.rows()


@pytest.mark.parametrize("hosts", [1, 2, 3])
@pytest.mark.parametrize("direction", ["out", "in"])
def test_hops_are_those_of_an_enumeration(hosts: int, direction: str) -> None:
    src, dst = _ends()
    named = np.flatnonzero(_masks()[2])
    exclude = {
        "knows": (src[named], dst[named], named),
        "buys": np.stack([src, dst], axis=1)[:25],
    }
    path = ["knows", "buys", "bought_by"] if direction == "out" else ["knows", "bought_by", "buys"]
    found = graph(hosts, without=False).multi_hop_neighbors(
        [4, 1, 4, -1, 11],
        path,
        direction=direction,
        exclude=exclude,
        reverse_types={"buys": "bought_by"},
        edge_ids=True,
    )
    frontier = [4, 1, 4, -1, 11]
    for hop, name in enumerate(path):
        edges = found.adjacencies[hop]
        assert edges.edge_ids is not None
        triples = set()
        mask = _masks()[{"buys": 0, "bought_by": 1, "knows": 2}[name]]
        for edge in np.flatnonzero(~mask).tolist():
            ends = (int(src[edge]), int(dst[edge]))[:: -1 if name == "bought_by" else 1]
            local, remote = ends if direction == "out" else ends[::-1]
            triples |= {(row, remote, edge) for row, node in enumerate(frontier) if node == local}
        remote_ids = found.nodes[hop + 1][edges.cols].tolist()
        rows = zip(edges.rows.tolist(), remote_ids, edges.edge_ids.tolist(), strict=True)
        assert sorted(rows) == sorted(triples)
        frontier = found.nodes[hop + 1].tolist()
        assert len(set(frontier)) == len(frontier)
        assert set(frontier) == {remote for _, remote, _ in triples}


def test_a_view_and_a_call_exclude_their_edges_together() -> None:
    src, dst = _ends()
    whole = graph(1, without=False)
    pairs = np.stack([src, dst], axis=1)
    both = whole.multi_hop_neighbors(np.arange(USERS), ["buys"], exclude=pairs[:25])
    view = whole.without_edges({"buys": pairs[:10]})
    again = view.multi_hop_neighbors(np.arange(USERS), ["buys"], exclude={"buys": pairs[10:25]})
    for name in ("rows", "cols", "weights"):
        np.testing.assert_array_equal(
            getattr(both.adjacencies[0], name), getattr(again.adjacencies[0], name)
        )


@pytest.mark.parametrize(
    ("statement", "column", "said"),
    [
        ("SAMPLE 5 VERTICES EXCLUDE 1 -> 2", 19, "EXCLUDE in VERTICES"),
        ("SAMPLE 5 EDGES ON buys EXCLUDE 1 -> 2", 24, "EXCLUDE in EDGES"),
        ("SAMPLE 5 NEGATIVES FROM $n ON item EXCLUDE 1 -> 2", 36, "EXCLUDE in NEGATIVES"),
        ("FETCH PROP ON user 1 EXCLUDE 1 -> 2", 22, "EXCLUDE in FETCH"),
        ("GO FROM 1 OVER buys, knows EXCLUDE 1 -> 2", 28, "without an edge type, along user:buys"),
        ("GO 2 STEPS FROM 1 OVER buys THEN bought_by EXCLUDE 1 -> 2", 44, "without an edge type"),
        ("GO FROM 1 OVER buys EXCLUDE ON nothing 1 -> 2", 32, "no edge type 'nothing'"),
        ("GO FROM 1 OVER buys EXCLUDE 1 -> 2 REVERSE nothing", 44, "no edge type 'nothing'"),
        (
            "GO FROM 1 OVER buys EXCLUDE 1 -> 2 REVERSE knows",
            44,
            "found REVERSE user:knows:user, expected an edge type from item to user",
        ),
        ("GO FROM 1 OVER buys EXCLUDE $n -> 2", 21, "as many sources as destinations"),
        ("GO FROM 1 OVER buys EXCLUDE 1 -> 2 @ $n", 21, "1 integers, an edge id for each pair"),
        ("GO FROM 1 OVER buys EXCLUDE 1 -> 2 @ 'a'", 38, "expected a $parameter, an integer"),
        ("GO FROM 1 OVER buys EXCLUDE 1 -> 'a'", 1, "expected an integer"),
        ("GO FROM 1 OVER buys EXCLUDE 1 -> 2 @ -4", 38, "expected a $parameter, an integer"),
        ("GO FROM 1 OVER buys EXCLUDE 1", 30, "->"),
    ],
)
def test_a_clause_that_does_not_fit_is_refused(statement: str, column: int, said: str) -> None:
    with pytest.raises((InvalidRequest, NotFound)) as raised:
        graph(1, without=False).query(statement, {"n": np.arange(3)})
    assert said in raised.value.message
    assert raised.value.place is not None
    assert raised.value.place.column == column


def test_reads_of_hops_refuse_edges_without_a_type() -> None:
    with pytest.raises(InvalidRequest, match="exclude without an edge type"):
        graph(1, without=False).multi_hop_neighbors(
            [1], ["buys", "bought_by"], exclude=np.array([[1, 2]])
        )
    with pytest.raises(InvalidRequest, match="with exclude=None: expected edges to exclude"):
        graph(1, without=False).multi_hop_neighbors(
            [1], ["buys"], reverse_types={"buys": "bought_by"}
        )

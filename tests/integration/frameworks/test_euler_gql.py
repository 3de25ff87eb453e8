"""Euler's GQL returns the same results as the operators that its steps stand for.

The tests run over gRPC and embedded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from tests.kit.cluster import LocalCluster

import asterism
from asterism import Client, Graph
from asterism.euler import Euler
from asterism_proto.errors import AsterismError, InvalidRequest, NotFound

NODES = np.arange(1, 7)
INPUTS: Mapping[str, Any] = {
    "nodes": NODES,
    "all": -1,
    "et": ["knows", "likes"],
    "knows": "knows",
    "count": 4,
    "n": 6,
    "m": 3,
}
SEED = "seed"


def load(client: Client) -> Graph:
    """Load six nodes with two relations, weighted by their ids, and three kinds of features."""
    kinds = {
        "price": "float32",
        "x": {"shape": [2]},
        "tags": {"kind": "ragged", "dtype": "int64"},
        "brand": "bytes",
    }
    client.create_space(
        "gql",
        {
            "parts": 3,
            "ids": "global",
            "direction": "both",
            "nodes": {
                "even": {"weighted": True, "features": kinds},
                "odd": {"weighted": True, "features": {"price": "float32", "only": "int64"}},
            },
            "edges": {
                "odd:knows:even": {"weighted": True},
                "even:knows:odd": {"weighted": True},
                "odd:likes:odd": {"weighted": True, "features": {"w": {"shape": [2]}}},
            },
        },
    )
    graph = client.graph("gql")
    even, odd = np.array([2, 4, 6]), np.array([1, 3, 5])
    features = {
        "price": even,
        "x": np.stack([even, even * 10], axis=1),
        "tags": [[1], [], [7, 8, 9]],
        "brand": ["a", "", "cc"],
    }
    graph.upsert_nodes(even, "even", weights=even, features=features)
    graph.upsert_nodes(odd, "odd", weights=odd, features={"price": odd, "only": odd * 100})
    for name, pairs in (
        ("odd:knows:even", [(1, 2), (1, 4), (3, 6), (5, 2)]),
        ("even:knows:odd", [(2, 3), (4, 5), (6, 1)]),
    ):
        src, dst = np.array(pairs).T
        graph.upsert_edges(src, dst, name, weights=dst)
    graph.upsert_edges(
        [1, 1, 5],
        [3, 5, 1],
        "odd:likes:odd",
        weights=[3, 5, 1],
        features={"w": [[1, 2], [3, 4], [5, 6]]},
    )
    graph.build()
    return graph


@pytest.fixture(scope="module")
def eulers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Euler]]:
    with (
        LocalCluster(2) as cluster,
        cluster.client() as client,
        asterism.open(tmp_path_factory.mktemp("gql")) as inside,
    ):
        yield {"cluster": Euler(load(client)), "embedded": Euler(load(inside))}


@pytest.fixture(params=["cluster", "embedded"])
def euler(request: pytest.FixtureRequest, eulers: Mapping[str, Euler]) -> Euler:
    return eulers[request.param]


def rows(outputs: Mapping[str, Any], index: str, data: str) -> list[list[Any]]:
    return [outputs[data][start:stop].tolist() for start, stop in outputs[index].tolist()]


def test_full_neighbors_are_those_of_the_operator(euler: Euler) -> None:
    found = euler.run_gql("v(nodes).outV(et).as(nb)", INPUTS)
    ids, weights, types = euler.get_full_neighbor(NODES, ["knows", "likes"])
    for output, sparse in (("nb:1", ids), ("nb:2", weights), ("nb:3", types)):
        assert found[output].dtype == sparse.values.dtype
        assert found[output].tolist() == sparse.values.tolist()
    assert rows(found, "nb:0", "nb:1") == [[2, 4, 3, 5], [3], [6], [5], [2, 1], [1]]


def test_draws_are_those_of_the_operators_at_the_same_seed(euler: Euler) -> None:
    sampled = euler.graph.query(
        "sampleN(all, count).as(s).sampleNB(et, count, 0).as(nb)", INPUTS, language="euler"
    )
    assert sampled.seed is not None
    assert (
        np.asarray(sampled["s:0"]).tolist() == euler.sample_node(4, -1, seed=sampled.seed).tolist()
    )
    neighbors = euler.graph.query(
        "v(nodes).sampleNB(et, count, -1).as(nb)", INPUTS, language="euler"
    )
    ids, weights, types = euler.sample_neighbor(NODES, ["knows", "likes"], 4, seed=neighbors.seed)
    for output, expected in (("nb:1", ids), ("nb:2", weights), ("nb:3", types)):
        assert np.asarray(neighbors[output]).tolist() == expected.reshape(-1).tolist()
    edges = euler.graph.query("sampleE(knows, 9).as(e)", INPUTS, language="euler")
    assert (
        np.asarray(edges["e:0"]).tolist() == euler.sample_edge(9, "knows", seed=edges.seed).tolist()
    )
    layer = euler.graph.query(
        "v(nodes).sampleLNB(et, n, m, sqrt, 0).as(l)", INPUTS, language="euler"
    )
    nodes, adjacency = euler.sample_neighbor_layerwise(
        NODES[None], ["knows", "likes"], 3, 0, "sqrt", seed=layer.seed
    )
    assert np.asarray(layer["l:1"]).tolist() == nodes.reshape(-1).tolist()
    assert np.asarray(layer["l:2"]).tolist() == adjacency.indices.tolist()
    twice = euler.graph.query(
        "v(nodes).sampleNB(et, 30, 0).as(a).v_select(a).label().as(x)", INPUTS, language="euler"
    )
    assert np.asarray(twice["a:0"]).tolist() == [[i * 30, (i + 1) * 30] for i in range(6)]


def test_two_draws_of_a_query_are_independent(euler: Euler) -> None:
    found = euler.run_gql(
        (
            "v(ones).as(o).sampleNB(et, 2000, 0).as(a).v_select(o).select(o).sampleNB(et, 2000, "
            "0).as(b)"
        ),
        {**INPUTS, "ones": [1]},
    )
    a, b = found["a:1"], found["b:1"]
    shares = np.array([np.mean(a == node) for node in (2, 3, 4, 5)])
    match_probability = float((shares**2).sum())
    assert abs(np.mean(a == b) - match_probability) < 5 * np.sqrt(
        match_probability * (1 - match_probability) / 2000
    )


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("v(nodes).has(price gt 3 and price le 5 or price eq 1).as(x)", [1, 4, 5]),
        ("v(nodes).has(price in 1::2::9).as(x)", [1, 2]),
        ("v(nodes).has(price in (1, 2, 9)).as(x)", [1, 2]),
        ("v(nodes).has(price not_in [1, 2]).as(x)", [3, 4, 5, 6]),
        ("v(nodes).has(brand in a::cc).as(x)", [2, 6]),
        ("v(nodes).has(brand eq cc).as(x)", [6]),
        ("v(nodes).hasLabel(odd).as(x)", [1, 3, 5]),
        ("v(nodes).hasLabel(odd).has(price gt 1).as(x)", [3, 5]),
        ("v(nodes).hasKey(only).as(x)", [1, 3, 5]),
        ("v(nodes).hasKey(tags).as(x)", [2, 6]),
        ("v(nodes).has(weight ge $least).order_by(id, desc).as(x)", [6, 5, 4]),
        ("v(nodes).order_by(weight, desc).limit(2).as(x)", [6, 5]),
        ("v nodes has price gt 5 as x", [6]),
    ],
)
def test_conditions_filter_input_nodes_and_samples(
    euler: Euler, query: str, expected: list[int]
) -> None:
    assert euler.run_gql(query, {**INPUTS, "least": 4})["x:0"].tolist() == expected
    if "order_by" not in query and "$" not in query and "nodes has" not in query:
        samples = euler.run_gql(query.replace("v(nodes)", "sampleN(all, 300)"), INPUTS)["x:0"]
        assert set(samples.tolist()) == set(expected), (
            "a draw under the condition gives the same nodes"
        )


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "v(nodes).outV(et).has(price gt 2).order_by(weight, desc).limit(2).as(x)",
            [[5, 4], [3], [6], [5], [], []],
        ),
        ("v(nodes).outV(et).hasLabel(odd).as(x)", [[3, 5], [3], [], [5], [1], [1]]),
        ("v(nodes).outV(et).has(only in 300::500).as(x)", [[3, 5], [3], [], [5], [], []]),
        ("v(nodes).inV(et).as(x)", [[6, 5], [1, 5], [2, 1], [1], [4, 1], [3]]),
        ("v(nodes).inV(knows).has(price ge 4).as(x)", [[6], [5], [], [], [4], []]),
        ("v(nodes).outV(knows).order_by(id, desc).limit(1).as(x)", [[4], [3], [6], [5], [2], [1]]),
    ],
)
def test_neighbors_are_filtered_ordered_and_limited(
    euler: Euler, query: str, expected: list[list[int]]
) -> None:
    assert rows(euler.run_gql(query, INPUTS), "x:0", "x:1") == expected


def test_features_come_as_index_and_data(euler: Euler) -> None:
    found = euler.run_gql("v(nodes).values(x, tags, brand, price).as(f)", INPUTS)
    assert rows(found, "f:0", "f:1") == [[0, 0], [2, 20], [0, 0], [4, 40], [0, 0], [6, 60]]
    assert rows(found, "f:2", "f:3") == [[0], [1], [0], [0], [0], [7, 8, 9]]
    assert [bytes(row) for row in rows(found, "f:4", "f:5")] == [b"", b"a", b"", b"", b"", b"cc"]
    assert rows(found, "f:6", "f:7") == [[1], [2], [3], [4], [5], [6]]
    reduced = euler.run_gql("v(nodes).values(x, tags).mean(x).max(tags).as(f)", INPUTS)
    assert rows(reduced, "f:0", "f:1") == [[0], [11], [0], [22], [0], [33]]
    assert rows(reduced, "f:2", "f:3") == [[0], [1], [0], [0], [0], [9]]
    edges = euler.run_gql("e(edges).values(w).min(w).as(f)", {"edges": [[1, 3, 1], [5, 1, 1]]})
    assert rows(edges, "f:0", "f:1") == [[1], [5]]
    heads = euler.run_gql(
        "e(edges).inV.as(h).v_select(h).label().as(l)", {"edges": [[1, 3, 1], [1, 2, 0]]}
    )
    assert heads["h:1"].tolist() == [3, 2]
    assert heads["l:0"].tolist() == euler.get_node_type([3, 2]).tolist()
    out = euler.run_gql("v(nodes).outE(likes).as(e)", {**INPUTS, "likes": "likes"})
    assert out["e:1"].tolist() == [[1, 3, 1], [1, 5, 1], [5, 1, 1]]
    typed = euler.run_gql(
        "sampleNWithTypes(types, counts).as(n)", {"types": ["odd", "even"], "counts": [3, 2]}
    )
    assert [[node % 2 for node in row] for row in rows(typed, "n:0", "n:1")] == [[1, 1, 1], [0, 0]]


@pytest.mark.parametrize(
    ("query", "error", "column", "said"),
    [
        ("v(nodes).outX(et)", InvalidRequest, 15, "found 'et'"),
        ("v(nodes).has(price gt", InvalidRequest, 22, "found the end"),
        ("v(nodes).has(nothing gt 3)", NotFound, 1, "nothing"),
        ("v(nodes).outV(hates)", NotFound, 10, "edge type 'hates': expected one of"),
        ("v(nodes).values(nope)", NotFound, 10, "no feature 'nope'"),
        ("v(nodes).values(x).udf_mine(x)", NotFound, 10, "no function 'udf_mine'"),
        ("v(nodes).select(q).outV(et)", InvalidRequest, 20, "select of 'q'"),
        ("sampleN(all, nodes)", InvalidRequest, 14, "an integer"),
        ("v(nodes).order_by(price, asc)", InvalidRequest, 1, "expected id or weight"),
    ],
)
def test_invalid_queries_are_refused_at_their_position(
    euler: Euler, query: str, error: type[AsterismError], column: int, said: str
) -> None:
    with pytest.raises(error) as raised:
        euler.run_gql(query, INPUTS)
    assert said in raised.value.message
    assert raised.value.place is not None
    assert (raised.value.place.line, raised.value.place.column) == (1, column), raised.value.message


def test_outputs_have_lengths_of_their_own(euler: Euler) -> None:
    found = euler.graph.query("v(nodes).outV(et).as(x)", INPUTS, language="euler")
    assert (found.length, len(found), len(found.rows()), found.kind, found.version) == (
        -1,
        1,
        1,
        "euler",
        1,
    )
    assert "x:1 int64" in repr(found)
    with pytest.raises(InvalidRequest, match="expected equal lengths"):
        found.to_pandas()

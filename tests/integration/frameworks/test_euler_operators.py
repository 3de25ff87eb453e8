"""Euler's operators on Euler's own test graph, row by row, with and without results.

The graph has six nodes, odd and even ones, and each weighs its id. An edge weighs as much as its
destination: 1 -> 2, 4 and 3; 2 -> 3, 5; 3 -> 4; 4 -> 5; 5 -> 2, 6; 6 -> 1, 3, 5. Edges to even
nodes have one type. Edges to odd nodes have two types, because they start at either kind of node.

A separate star joins node 0 with five neighbors, with weights 1 : 2 : 4 : 4 : 8.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tests.kit.bodies import assert_follows_weights

import asterism
from asterism import Client, Graph

TO_EVEN, TO_ODD = "odd:to:even", ["odd:on:odd", "even:to:odd"]
EDGES = {
    "odd:to:even": [(1, 2), (1, 4), (3, 4), (5, 2), (5, 6)],
    "odd:on:odd": [(1, 3)],
    "even:to:odd": [(2, 3), (2, 5), (4, 5), (6, 1), (6, 3), (6, 5)],
}
MANY = 20_000


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with asterism.open(tmp_path_factory.mktemp("euler")) as opened:
        yield opened


@pytest.fixture(scope="module")
def graph(client: Client) -> Graph:
    kinds = {"even": {"weighted": True}, "odd": {"weighted": True}}
    client.create_space(
        "euler",
        {
            "parts": 2,
            "ids": "global",
            "direction": "both",
            "nodes": kinds,
            "edges": {name: {"weighted": True} for name in EDGES},
        },
    )
    graph = client.graph("euler")
    for ntype, ids in (("even", [2, 4, 6]), ("odd", [1, 3, 5])):
        graph.upsert_nodes(ids, ntype, weights=ids)
    for name, pairs in EDGES.items():
        src, dst = np.array(pairs).T
        graph.upsert_edges(src, dst, name, weights=dst)
    graph.build()
    return graph


@pytest.fixture(scope="module")
def star(client: Client) -> Graph:
    client.create_space(
        "star", {"parts": 3, "nodes": {"n": {}}, "edges": {"n:to:n": {"weighted": True}}}
    )
    graph = client.graph("star")
    graph.upsert_nodes(np.arange(6), "n")
    graph.upsert_edges(np.zeros(5, np.int64), [1, 2, 3, 4, 5], "to", weights=[1, 2, 4, 4, 8])
    graph.build()
    return graph


def test_1_sample_node_draws_by_weight_from_one_type_or_all(graph: Graph) -> None:
    assert_follows_weights(
        graph.sample_nodes(MANY, "even", seed=1).nodes, np.array([0, 0, 2, 0, 4, 0, 6])
    )
    assert_follows_weights(graph.sample_nodes(MANY, seed=2).nodes, np.arange(7))


def test_2_sample_node_with_src_draws_of_the_type_of_each_source(graph: Graph) -> None:
    samples = graph.sample_nodes_like([1, 2, 1], MANY, seed=3)
    assert samples.nodes.shape == (3, MANY)
    assert_follows_weights(samples.nodes[0], np.array([0, 1, 0, 3, 0, 5]))
    assert_follows_weights(samples.nodes[1], np.array([0, 0, 2, 0, 4, 0, 6]))
    assert (samples.types == np.array([[1], [0], [1]])).all()
    assert not np.array_equal(samples.nodes[0], samples.nodes[2])
    with pytest.raises(asterism.NotFound, match=r"nodes\[1\] = 77"):
        graph.sample_nodes_like([1, 77], 2)
    assert graph.sample_nodes_like([77, -1], 2, unknown="none").nodes.tolist() == [
        [-1, -1],
        [-1, -1],
    ]


def test_3_sample_edge_draws_by_weight_from_one_type_or_all(graph: Graph) -> None:
    edges = graph.sample_edges(MANY, TO_EVEN, seed=4)
    shares = np.zeros(49)
    for src, dst in EDGES["odd:to:even"]:
        shares[7 * src + dst] = dst
    assert_follows_weights(edges.src * 7 + edges.dst, shares)
    all_edges = graph.sample_edges(MANY, seed=5)
    assert_follows_weights(all_edges.types, np.array([18, 3, 22]))
    assert (all_edges.weights == all_edges.dst).all()


def test_6_sample_neighbor_draws_by_weight_over_all_types(graph: Graph, star: Graph) -> None:
    samples = graph.sample_neighbors([1], [TO_EVEN, *TO_ODD], MANY, seed=6)
    assert_follows_weights(samples.nodes[0], np.array([0, 0, 2, 3, 4]))
    assert_follows_weights(
        star.sample_neighbors([0], "to", MANY, seed=7).nodes[0], np.array([0, 1, 2, 4, 4, 8])
    )
    nothing = graph.sample_neighbors([3, 77, -1], TO_ODD, 2)
    assert nothing.nodes.tolist() == [[-1, -1]] * 3
    assert nothing.weights is not None
    assert nothing.weights.tolist() == [[0, 0]] * 3
    assert nothing.types.tolist() == [[-1, -1]] * 3


def test_7_get_top_k_neighbor_gives_the_heaviest_and_ties_by_id(graph: Graph, star: Graph) -> None:
    top = graph.top_k_neighbors([1, 2, 77], [TO_EVEN, *TO_ODD], 2)
    assert top.nodes.tolist() == [[4, 3], [5, 3], [-1, -1]]
    assert top.weights.tolist() == [[4, 3], [5, 3], [0, 0]]
    assert star.top_k_neighbors([0], "to", 4).nodes.tolist() == [[5, 3, 4, 2]]


def test_8_get_full_neighbor_comes_in_the_order_of_the_types(graph: Graph) -> None:
    full = graph.neighbors([1, 2, 77], [TO_EVEN, *TO_ODD])
    assert [full[row].tolist() for row in range(3)] == [[2, 4, 3], [3, 5], []]
    assert full.types.tolist() == [0, 0, 1, 2, 2]
    reverse = graph.neighbors([5], [TO_EVEN, *TO_ODD], direction="in")
    assert reverse.nodes.tolist() == [2, 4, 6]


def test_9_get_sorted_full_neighbor_comes_by_id_or_by_weight(graph: Graph, star: Graph) -> None:
    assert graph.neighbors([1], [TO_EVEN, *TO_ODD], sort="id").nodes.tolist() == [2, 3, 4]
    assert graph.neighbors([1], [TO_EVEN, *TO_ODD], sort="weight").nodes.tolist() == [4, 3, 2]
    assert star.neighbors([0], "to", sort="weight").nodes.tolist() == [5, 3, 4, 2, 1]


def test_10_sample_fanout_draws_for_each_occurrence_by_itself(graph: Graph) -> None:
    fanout = graph.sample_fanout([1, 1, 77], [TO_EVEN, TO_ODD], [500, 2], seed=8)
    first = fanout.hops[0].nodes.reshape(3, 500)
    assert fanout.hops[1].nodes.shape == (3 * 500 * 2,)
    assert set(first[:2].ravel().tolist()) == {2, 4}
    assert not np.array_equal(first[0], first[1])
    assert (first[2] == -1).all()
    assert (fanout.hops[1].nodes[2000:] == -1).all()


def test_12_sample_neighbor_layerwise_pools_all_nodes_of_a_layer(graph: Graph) -> None:
    # 1 leads to 2 (weight 2) and 4 (4), 3 to 4 (4), 5 to 2 (2) and 6 (6): the totals are 4 for node
    # 2, 8 for node 4, and 6 for node 6.
    layer = graph.sample_layer([1, 3, 5], TO_EVEN, MANY, seed=9)
    assert_follows_weights(layer.nodes, np.array([0, 0, 4, 0, 8, 0, 6]))
    assert np.allclose(layer.probabilities, np.array([0, 0, 4, 0, 8, 0, 6])[layer.nodes] / 18)
    roots = graph.sample_layer([1, 3, 5], TO_EVEN, MANY, measure="sqrt", seed=10)
    assert_follows_weights(roots.nodes, np.sqrt([0, 0, 4, 0, 8, 0, 6]))
    squares = graph.sample_layer([1, 3, 5], TO_EVEN, MANY, measure="squares", seed=11)
    assert_follows_weights(squares.nodes, np.array([0, 0, 4 + 4, 0, 16 + 16, 0, 36]))
    few = graph.sample_layer([1, 3, 5], TO_EVEN, 2, replace=False, seed=12)
    expected = {(s, d) for s, d in EDGES["odd:to:even"] if d in few.nodes}
    assert {
        ([1, 3, 5][row], int(few.nodes[col]))
        for row, col in zip(few.adjacency.rows, few.adjacency.cols, strict=True)
    } == expected
    batch = graph.sample_layer([[1, 3], [5, 77]], TO_EVEN, 500, seed=13)
    assert [set(row.tolist()) for row in batch.nodes] == [{2, 4}, {2, 6}]
    assert graph.sample_layer([2, 77], TO_EVEN, 3).nodes.tolist() == [-1, -1, -1]


def test_13_sparse_get_adj_gives_the_edges_between_two_lists(graph: Graph) -> None:
    found = graph.adjacency([1, 2, 1, 77, -1], [3, 4, 5, 4], [TO_EVEN, *TO_ODD])
    entries = list(
        zip(
            found.rows.tolist(),
            found.cols.tolist(),
            found.weights.tolist() if found.weights is not None else (),
            strict=True,
        )
    )
    assert entries == [
        (0, 1, 4),
        (0, 3, 4),
        (0, 0, 3),
        (1, 0, 3),
        (1, 2, 5),
        (2, 1, 4),
        (2, 3, 4),
        (2, 0, 3),
    ]
    assert found.shape == (5, 4)
    assert len(graph.adjacency([2], [4], TO_EVEN, row_type="odd")) == 0


def test_14_random_walk_ends_where_no_edge_leads_on(graph: Graph) -> None:
    walks = graph.random_walk([3, 77], [TO_EVEN, TO_ODD, TO_EVEN, TO_ODD], seed=14)
    assert walks.nodes[0, :3].tolist() == [3, 4, 5]
    assert walks.nodes[1].tolist() == [77, -1, -1, -1, -1]
    assert graph.random_walk([1], ["odd:on:odd"], 3).nodes.tolist() == [[1, 3, -1, -1]]


def test_15_gen_pair_leaves_out_padding() -> None:
    assert asterism.ops.walk_pairs([[1, 2, -1]], 1, 1).tolist() == [[1, 2], [2, 1]]


def test_22_get_node_type_is_minus_one_for_unknown_nodes(graph: Graph, star: Graph) -> None:
    types = graph.node_types([1, 2, 77, -1])
    assert types.tolist() == [1, 0, -1, -1]
    assert types.dtype == np.int32
    assert graph.node_types([1, 2], "odd").tolist() == [1, -1]
    assert star.node_types([5, 6], "n").tolist() == [0, -1]
    with pytest.raises(asterism.InvalidRequest, match="per type"):
        star.node_types([5])


def test_23_24_types_have_ids_in_the_schema(graph: Graph) -> None:
    assert [graph.schema.node_type_id(name) for name in ("even", "odd")] == [0, 1]
    assert graph.schema.edge_type_id("odd:on:odd") == 1
    with pytest.raises(asterism.NotFound, match="'to' is ambiguous"):
        graph.schema.edge_type_id("to")


def test_get_multi_hop_neighbor_gives_each_node_once_a_hop(graph: Graph) -> None:
    found = graph.multi_hop_neighbors([1, 5], [TO_EVEN, TO_ODD])
    assert [nodes.tolist() for nodes in found.nodes] == [[1, 5], [2, 4, 6], [3, 5, 1]]
    assert [types.tolist() for types in found.types] == [[1, 1], [0, 0, 0], [1, 1, 1]]
    for hop, edges in enumerate(found.adjacencies):
        ends = [found.nodes[hop][edges.rows], found.nodes[hop + 1][edges.cols]]
        expected_edges = EDGES["odd:to:even"] if hop == 0 else EDGES["even:to:odd"]
        assert set(zip(*(end.tolist() for end in ends), strict=True)) == {
            pair for pair in expected_edges if pair[0] in found.nodes[hop]
        }
        assert edges.weights is not None
        assert (edges.weights == ends[1]).all()


def test_sample_fanout_layerwise_draws_from_the_layer_before(graph: Graph) -> None:
    stack = graph.sample_fanout_layerwise([1, 5], [TO_EVEN, TO_ODD], [3, 400], seed=15)
    assert [layer.nodes.shape for layer in stack.layers] == [(3,), (400,)]
    first = stack[0].nodes
    reached = np.zeros(7)
    for node in first.tolist():
        for src, dst in EDGES["even:to:odd"]:
            reached[dst] += dst * (src == node)
    assert np.allclose(stack[1].probabilities, reached[stack[1].nodes] / reached.sum())
    per_row = graph.sample_fanout_layerwise(
        np.array([[1], [5]]), [TO_EVEN, TO_ODD], [400, 3], seed=16
    )
    assert [set(row.tolist()) for row in per_row[0].nodes] == [{2, 4}, {2, 6}]
    assert per_row[1].nodes.shape == (2, 3)


def test_negatives_are_of_the_requested_type_and_not_positive(graph: Graph) -> None:
    samples = graph.sample_negatives([[1, 2], [5, 6]], MANY, "even", seed=17)
    assert_follows_weights(samples.nodes[0], np.array([0, 0, 0, 0, 4, 0, 6]))
    assert_follows_weights(samples.nodes[1], np.array([0, 0, 2, 0, 4, 0, 0]))
    shared = graph.sample_negatives([[1, 2], [5, 6]], 50, "even", shared=True, seed=18)
    assert set(shared.nodes.ravel().tolist()) == {4}
    edges = graph.neighbors([1, 3], TO_EVEN)
    assert set(
        graph.sample_negatives([1, 3], 200, "even", exclude=edges, seed=19).nodes[0].tolist()
    ) == {6}
    nothing = graph.sample_negatives([1, 3], 2, "even", exclude=[[2, 4, 6], [2, 4, -1]])
    assert nothing.nodes.tolist() == [[-1, -1], [6, 6]]
    assert nothing.types.tolist() == [[-1, -1], [0, 0]]
    assert_follows_weights(
        graph.sample_negatives([1], MANY, weighted=False, exclude=[[6]], seed=20).nodes[0],
        np.array([0, 1, 1, 1, 1, 1]),
    )

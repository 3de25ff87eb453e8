"""Programs written for Euler.

Euler's operators by their names, with their shapes and edge cases, on Euler's own test graph.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from tests.kit import euler_graph
from tests.kit.bodies import assert_follows_weights

import asterism
from asterism import Client, Graph
from asterism.euler import Euler, SparseTensor
from asterism.records.samples import NeighborSample

MANY = 20_000
BIGGEST = 1 << 62


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with asterism.open(tmp_path_factory.mktemp("euler")) as opened:
        yield opened


@pytest.fixture(scope="module")
def graph(client: Client) -> Graph:
    return euler_graph.write(client, "euler")


@pytest.fixture(scope="module")
def tf_euler(graph: Graph) -> Euler:
    return asterism.euler.Euler(graph)


def table(sparse: SparseTensor, fill: Any = 0) -> list[list[Any]]:
    """Return a sparse tensor as lists."""
    assert sparse.indices.dtype == np.int64
    assert sparse.indices.shape == (len(sparse.values), len(sparse.dense_shape))
    assert sparse.indices.tolist() == sorted(sparse.indices.tolist()), (
        "row after row, as TensorFlow wants them"
    )
    out = np.full(sparse.dense_shape, fill, sparse.values.dtype)
    out[tuple(sparse.indices.T)] = sparse.values
    return out.tolist()  # type: ignore[no-any-return]


def test_types_are_known_by_name_by_number_and_minus_one_for_all(tf_euler: Euler) -> None:
    assert tf_euler.get_node_type_id(["1", "0"]).tolist() == [0, 1], (
        "a text is a name first: type '1' came first and is number 0"
    )
    assert tf_euler.get_node_type_id([1, 0]).tolist() == [1, 0], "a number is a number"
    assert tf_euler.get_node_type_id("_0").tolist() == [1]
    assert tf_euler.get_node_type_id(["-1", "1"]).tolist() == [0, 1]
    assert tf_euler.get_edge_type_id(-1).tolist() == [0, 1]
    assert tf_euler.get_edge_type_id(np.array([1])).dtype == np.int32
    assert tf_euler.get_edge_type_id("_1:_0:_0").tolist() == [0]
    for wrong in ("unknown", 2, -2, "7"):
        with pytest.raises(asterism.NotFound, match=r"_1 \(0\), _0 \(1\)"):
            tf_euler.get_node_type_id([wrong])
    with pytest.raises(asterism.InvalidRequest, match="which share a number"):
        tf_euler.get_edge_type_id("_0:_1:_1")


def test_1_sample_node_draws_by_weight_from_a_type_or_all(tf_euler: Euler) -> None:
    even = tf_euler.sample_node(MANY, "0", seed=1)
    assert (even.shape, even.dtype) == ((MANY,), np.int64)
    assert_follows_weights(even, np.array([0, 0, 2, 0, 4, 0, 6]))
    assert_follows_weights(tf_euler.sample_node(MANY, 0, seed=2), np.array([0, 1, 0, 3, 0, 5]))
    for everything in ("-1", -1):
        assert_follows_weights(tf_euler.sample_node(MANY, everything, seed=3), np.arange(7))


SOURCES = [3, 1, 6, 1]
EVERY_TYPE = ["_1:_0:_0", "_1:_1:_1", "_0:_1:_1"]


def columns_of(sample: NeighborSample) -> list[Any]:
    """Return the neighbors and weights of a sample, flat."""
    return [sample.nodes.reshape(-1).tolist(), np.asarray(sample.weights).reshape(-1).tolist()]


def flat(columns: Sequence[Any]) -> list[Any]:
    return [column.reshape(-1).tolist() for column in columns]


CALLS_OF_OPERATORS: Mapping[str, tuple[Callable[[Euler], Any], Callable[[Graph], Any]]] = {
    "sample_node": (
        lambda e: e.sample_node(9, "0", seed=1).tolist(),
        lambda g: g.sample_nodes(9, "_0", seed=1).nodes.tolist(),
    ),
    "sample_node with a condition": (
        lambda e: e.sample_node(9, -1, "weight gt 2", seed=1).tolist(),
        lambda g: g.sample_nodes(9, where="weight > 2", seed=1).nodes.tolist(),
    ),
    "sample_node_with_src": (
        lambda e: e.sample_node_with_src(SOURCES, 5, seed=1).tolist(),
        lambda g: g.sample_nodes_like(SOURCES, 5, seed=1).nodes.tolist(),
    ),
    "sample_edge": (
        lambda e: e.sample_edge(9, -1, seed=1)[:, :2].tolist(),
        lambda g: np.stack([(edges := g.sample_edges(9, seed=1)).src, edges.dst], axis=1).tolist(),
    ),
    "sample_graph_label": (
        lambda e: e.sample_graph_label(9, seed=1).tolist(),
        lambda g: list(g.sample_graph_labels(9, seed=1).labels),
    ),
    "sample_neighbor": (
        lambda e: flat(e.sample_neighbor(SOURCES, -1, 5, seed=1)[:2]),
        lambda g: columns_of(g.sample_neighbors(SOURCES, EVERY_TYPE, 5, seed=1)),
    ),
    "sample_fanout": (
        lambda e: [flat(hops) for hops in e.sample_fanout(SOURCES, [-1, "0"], [3, 2], seed=1)[:2]],
        lambda g: (
            lambda sample: [
                [SOURCES, *(hop.nodes.reshape(-1).tolist() for hop in sample.hops)],
                [np.asarray(hop.weights).reshape(-1).tolist() for hop in sample.hops],
            ]
        )(g.sample_fanout(SOURCES, [EVERY_TYPE, ["_1:_0:_0"]], [3, 2], seed=1)),
    ),
    "sample_fanout_with_feature": (
        lambda e: flat(
            e.sample_fanout_with_feature(SOURCES, [-1], [3], -1, ["f3"], [2], [], [], seed=1)[0]
        ),
        lambda g: [
            SOURCES,
            g.sample_fanout(SOURCES, [EVERY_TYPE], [3], seed=1).hops[0].nodes.reshape(-1).tolist(),
        ],
    ),
    "sample_neighbor_layerwise": (
        lambda e: e.sample_neighbor_layerwise([SOURCES], -1, 5, weight_func="sqrt", seed=1)[
            0
        ].tolist(),
        lambda g: g.sample_layer([SOURCES], EVERY_TYPE, 5, measure="sqrt", seed=1).nodes.tolist(),
    ),
    "sample_fanout_layerwise": (
        lambda e: flat(e.sample_fanout_layerwise(SOURCES, [-1, -1], [4, 3], seed=1)[0][1:]),
        lambda g: [
            layer.nodes.reshape(-1).tolist()
            for layer in g.sample_fanout_layerwise(
                SOURCES, [EVERY_TYPE, EVERY_TYPE], [4, 3], seed=1
            ).layers
        ],
    ),
    "random_walk": (
        lambda e: e.random_walk([3, 1], [["0"], ["1"]], seed=1).tolist(),
        lambda g: g.random_walk(
            [3, 1], [["_1:_0:_0"], ["_1:_1:_1", "_0:_1:_1"]], 2, seed=1
        ).nodes.tolist(),
    ),
    "random_walk by p and q": (
        lambda e: e.random_walk(SOURCES, [-1] * 5, 0.25, 4.0, seed=1).tolist(),
        lambda g: g.random_walk(SOURCES, [EVERY_TYPE], 5, p=0.25, q=4.0, seed=1).nodes.tolist(),
    ),
}
"""Operators that draw, with the call of a graph that each stands for."""


@pytest.mark.parametrize("name", CALLS_OF_OPERATORS)
def test_operators_equal_the_calls_that_they_stand_for(
    tf_euler: Euler, graph: Graph, name: str
) -> None:
    operator, call = CALLS_OF_OPERATORS[name]
    assert operator(tf_euler) == call(graph)


def test_every_operator_with_a_seed_stands_for_a_call() -> None:
    seeded = {
        name
        for name, operator in inspect.getmembers(Euler, inspect.isfunction)
        if name[0] != "_" and "seed" in inspect.signature(operator).parameters
    }
    covered = {name.partition(" ")[0] for name in CALLS_OF_OPERATORS}
    # Its first layer is a sample of neighbors: test_layers_are_of_all_nodes_together_...
    assert seeded - covered == {"sample_fanout_layerwise_each_node"}


def test_2_sample_node_with_src_draws_from_each_nodes_type(tf_euler: Euler) -> None:
    samples = tf_euler.sample_node_with_src([1, 2], MANY, seed=4)
    assert samples.shape == (2, MANY)
    assert_follows_weights(samples[0], np.array([0, 1, 0, 3, 0, 5]))
    assert_follows_weights(samples[1], np.array([0, 0, 2, 0, 4, 0, 6]))
    with pytest.raises(asterism.NotFound, match="77"):
        tf_euler.sample_node_with_src([77], 1)


def test_3_sample_edge_draws_from_a_type_or_all(tf_euler: Euler) -> None:
    edges = tf_euler.sample_edge(MANY, "0", seed=5)
    assert (edges.shape, edges.dtype) == ((MANY, 3), np.int64)
    assert set(edges[:, 2].tolist()) == {0}
    for everything in (None, -1):
        samples = tf_euler.sample_edge(MANY, everything, seed=6)
        shares = np.zeros(70)
        for src, dst in euler_graph.PAIRS:
            shares[10 * src + dst] = dst
        assert_follows_weights(10 * samples[:, 0] + samples[:, 1], shares)
        assert (samples[:, 2] == samples[:, 1] % 2).all()


def test_4_5_graph_labels_are_uniform_and_unknown_ones_empty(tf_euler: Euler) -> None:
    labels = tf_euler.sample_graph_label(MANY, seed=7)
    assert (labels.shape, labels.dtype) == ((MANY,), object)
    assert_follows_weights(
        np.array([int(label) for label in labels]), np.array([0, 1, 1, 1, 1, 1, 1])
    )
    nodes = tf_euler.get_graph_by_label(["3", b"unknown", "6"])
    assert table(nodes, -1) == [[3], [-1], [6]]
    assert nodes.dense_shape == (3, 1)


def test_6_sample_neighbor_pads_with_the_default_node(tf_euler: Euler) -> None:
    ids, weights, types = tf_euler.sample_neighbor([[1, 6]], ["0", "1"], MANY, seed=8)
    assert (ids.shape, ids.dtype, weights.dtype, types.dtype) == (
        (2, MANY),
        np.int64,
        np.float32,
        np.int32,
    )
    assert_follows_weights(ids[0], np.array([0, 0, 2, 3, 4]))
    assert_follows_weights(ids[1], np.array([0, 1, 0, 3, 0, 5]))
    assert (weights == ids).all()
    assert (types == ids % 2).all()
    nothing = tf_euler.sample_neighbor([3, 77, -1], ["1"], 2, default_node=9)
    assert [column.tolist() for column in nothing] == [[[9, 9]] * 3, [[0, 0]] * 3, [[-1, -1]] * 3]
    assert tf_euler.sample_neighbor([77], -1, 1)[0].tolist() == [[-1]]


def test_7_get_top_k_neighbor_is_heaviest_first_and_padded(tf_euler: Euler) -> None:
    ids, weights, types = tf_euler.get_top_k_neighbor(
        [1, 3, 77], ["0", "1"], 2, default_node=BIGGEST
    )
    assert ids.tolist() == [[4, 3], [4, BIGGEST], [BIGGEST, BIGGEST]]
    assert weights.tolist() == [[4, 3], [4, 0], [0, 0]]
    assert types.tolist() == [[0, 1], [0, -1], [-1, -1]]


def test_8_9_get_full_neighbor_orders_by_type_or_by_id(tf_euler: Euler) -> None:
    ids, weights, types = tf_euler.get_full_neighbor([1, 77, 2], ["1", "0"])
    assert table(ids, -1) == [[3, 2, 4], [-1, -1, -1], [3, 5, -1]]
    assert table(weights) == [[3, 2, 4], [0, 0, 0], [3, 5, 0]]
    assert table(types, -1) == [[1, 0, 0], [-1, -1, -1], [1, 1, -1]]
    assert table(tf_euler.get_full_neighbor([1], ["0", "1"])[0]) == [[2, 4, 3]]
    assert table(tf_euler.get_sorted_full_neighbor([1], ["1", "0"])[0]) == [[2, 3, 4]]
    assert tf_euler.get_full_neighbor([77], -1)[0].dense_shape == (1, 0)


def test_10_sample_fanout_is_flat_and_has_the_nodes_first(tf_euler: Euler) -> None:
    ids, weights, types = tf_euler.sample_fanout(
        [1, 77], ["0", ["1"]], [3, 2], default_node=0, seed=9
    )
    assert [hop.shape for hop in ids] == [(2,), (6,), (12,)]
    assert [hop.shape for hop in weights] == [hop.shape for hop in types] == [(6,), (12,)]
    assert set(ids[1][:3].tolist()) <= {2, 4}
    assert [
        hop.shape
        for hop in tf_euler.sample_fanout(
            np.array([1]), np.array([[0, 1], [0, 1]]), np.array([3, 2])
        )[0]
    ] == [(1,), (3,), (6,)]
    assert ids[1][3:].tolist() == [0] * 3
    assert ids[2][6:].tolist() == [0] * 6
    assert types[1].tolist() == [1] * 6 + [-1] * 6, "types, where Euler gave the weights again"


def test_11_sample_fanout_with_feature_reads_every_hop(tf_euler: Euler) -> None:
    ids, weights, types, dense, sparse = tf_euler.sample_fanout_with_feature(
        [1, 6], [["0", "1"], ["0", "1"]], [2, 2], -1, ["f3", "f4"], [2, 4], ["f1"], [7], seed=10
    )
    plain = tf_euler.sample_fanout([1, 6], [["0", "1"], ["0", "1"]], [2, 2], seed=10)
    assert [[hop.tolist() for hop in column] for column in (ids, weights, types)] == [
        [hop.tolist() for hop in column] for column in plain
    ]
    assert [column.shape for column in dense] == [(2, 2), (2, 4), (4, 2), (4, 4), (8, 2), (8, 4)]
    for hop, nodes in enumerate(ids):
        assert np.allclose(dense[2 * hop], nodes[:, None] + [0.1, 0.2])
        assert np.allclose(
            dense[2 * hop + 1],
            np.concatenate([nodes[:, None] + [0.3, 0.4, 0.5], np.zeros((len(nodes), 1))], axis=1),
        )
        assert table(sparse[hop]) == [[10 * node + 1, 10 * node + 2] for node in nodes.tolist()]
    short = tf_euler.sample_fanout_with_feature([3], [["1"]], [2], 9, ["f3"], [2], ["f1"], [7])
    assert short[0][1].tolist() == [9, 9]
    assert short[3][1].tolist() == [[0, 0], [0, 0]]
    assert table(short[4][1]) == [[7], [7]]


def test_12_sample_neighbor_layerwise_returns_adjacencies(tf_euler: Euler) -> None:
    nodes, adjacency = tf_euler.sample_neighbor_layerwise([[1, 3], [5, 77]], "0", MANY, seed=11)
    assert nodes.shape == (2, MANY)
    assert_follows_weights(nodes[0], np.array([0, 0, 2, 0, 8]))
    assert adjacency.dense_shape == (2, 2, MANY)
    assert adjacency.values.dtype == np.int64
    few, few_adjacency = tf_euler.sample_neighbor_layerwise(
        [[1, 3], [5, 77]], "0", 3, weight_func="sqrt", default_node=0, seed=12
    )
    expected = [
        [[int((src, dst) in euler_graph.PAIRS) for dst in row] for src in layer]
        for layer, row in zip([[1, 3], [5, 77]], few.tolist(), strict=True)
    ]
    assert table(few_adjacency) == expected
    nothing, no_adjacency = tf_euler.sample_neighbor_layerwise([[77]], "0", 2, default_node=8)
    assert nothing.tolist() == [[8, 8]]
    assert table(no_adjacency) == [[[0, 0]]]
    with pytest.raises(asterism.InvalidRequest, match="weight_func='log'"):
        tf_euler.sample_neighbor_layerwise([[1]], "0", 2, weight_func="log")
    with pytest.raises(asterism.InvalidRequest, match="row for each layer"):
        tf_euler.sample_neighbor_layerwise([1], "0", 2)


def test_13_sparse_get_adj_has_the_edges_between_batches(tf_euler: Euler) -> None:
    sources, targets = [[1, 2, 1], [6, 77, -1]], [[4, 3], [1, 3]]
    adjacency = tf_euler.sparse_get_adj(sources, targets, ["0", "1"])
    assert adjacency.dense_shape == (2, 3, 2)
    assert table(adjacency) == [[[1, 1], [0, 1], [1, 1]], [[1, 1], [0, 0], [0, 0]]]
    flat = tf_euler.sparse_get_adj(np.ravel(sources), np.ravel(targets), -1, n=3, m=2)
    assert table(flat) == table(adjacency)
    assert table(tf_euler.sparse_get_adj([1, 2], [3, 4], "0")) == [[[0, 1], [0, 0]]]
    with pytest.raises(asterism.InvalidRequest, match="expected a multiple of 4"):
        tf_euler.sparse_get_adj(np.ravel(sources), np.ravel(targets), -1, n=4, m=2)


def test_14_random_walk_pads_dead_ends_with_the_default_node(tf_euler: Euler) -> None:
    walks = tf_euler.random_walk([3, 77], [["0"], ["1"], ["0"]], default_node=9, seed=13)
    assert walks[0, :3].tolist() == [3, 4, 5]
    assert walks[1].tolist() == [77, 9, 9, 9]
    biased = tf_euler.random_walk([1] * 500, [["0", "1"]] * 6, p=0.25, q=4.0, seed=14)
    assert biased.shape == (500, 7)
    assert {pair for walk in biased.tolist() for pair in pairwise(walk)} <= set(euler_graph.PAIRS)


def test_15_gen_pair_gives_pairs_of_each_walk_nearest_first(tf_euler: Euler) -> None:
    pairs = tf_euler.gen_pair([[1, 2, 3], [4, 5, -1]], 1, 1)
    assert pairs.tolist() == [[[1, 2], [2, 1], [2, 3], [3, 2]], [[4, 5], [5, 4], [5, -1], [-1, 5]]]
    assert tf_euler.gen_pair([[1, 2, 3]], 2, 0).tolist() == [[[2, 1], [3, 2], [3, 1]]]
    assert tf_euler.gen_pair(np.zeros((0, 3), np.int64), 1, 1).shape[0] == 0


def test_16_get_dense_feature_pads_with_zeros_and_never_cuts(tf_euler: Euler) -> None:
    both, wide = tf_euler.get_dense_feature([1, 77, 2, -1], ["f3", "f4"], [2, 5])
    assert both.dtype == np.float32
    assert np.allclose(both, [[1.1, 1.2], [0, 0], [2.1, 2.2], [0, 0]])
    assert np.allclose(wide, [[1.3, 1.4, 1.5, 0, 0], [0] * 5, [2.3, 2.4, 2.5, 0, 0], [0] * 5])
    assert tf_euler.get_dense_feature([], ["f3"], [2])[0].shape == (0, 2)
    with pytest.raises(asterism.InvalidRequest, match="dimension=1: expected at least"):
        tf_euler.get_dense_feature([1], ["f3"], [1])
    with pytest.raises(asterism.InvalidRequest, match="expected one value for each of 2"):
        tf_euler.get_dense_feature([1], ["f3", "f4"], [2])
    with pytest.raises(asterism.NotFound, match="feature 'f9': expected a feature of a type"):
        tf_euler.get_dense_feature([1], ["f9"], [1])
    with pytest.raises(
        asterism.InvalidRequest, match="expected a dense feature, this one is binary"
    ):
        tf_euler.get_dense_feature([1], ["f5"], [1])


def test_17_get_sparse_feature_has_one_default_if_missing(tf_euler: Euler) -> None:
    first, second = tf_euler.get_sparse_feature([2, 77, 1], ["f1", "f2"])
    assert table(first, -1) == [[21, 22], [0, -1], [11, 12]]
    assert table(second, -1) == [[23, 24], [0, -1], [13, 14]]
    assert table(tf_euler.get_sparse_feature([77], ["f1", "f2"], [5, 6])[1]) == [[6]]


def test_18_get_binary_feature_is_empty_where_there_is_none(tf_euler: Euler) -> None:
    first, second = tf_euler.get_binary_feature([6, 77, 1], ["f5", "f6"], thread_num=4)
    assert first.tolist() == [b"6a", b"", b"1a"]
    assert second.tolist() == [b"6b", b"", b"1b"]


def test_19_20_21_features_of_missing_edges_are_defaults(tf_euler: Euler) -> None:
    edges = [[1, 2, 0], [6, 5, 1], [1, 2, 1], [77, 1, 0], [2, 3, 1], [1, 2, 0]]
    (dense,) = tf_euler.get_edge_dense_feature(edges, ["f3"], [2])
    assert np.allclose(
        dense, [[12.1, 12.2], [65.1, 65.2], [0, 0], [0, 0], [23.1, 23.2], [12.1, 12.2]]
    )
    (sparse,) = tf_euler.get_edge_sparse_feature(edges, ["f1"], [9])
    assert table(sparse, -1) == [[121, 122], [651, 652], [9, -1], [9, -1], [231, 232], [121, 122]]
    assert tf_euler.get_edge_binary_feature(edges, ["f5"])[0].tolist() == [
        b"12a",
        b"65a",
        b"",
        b"",
        b"23a",
        b"12a",
    ]
    assert tf_euler.get_edge_dense_feature([], ["f3"], [2])[0].shape == (0, 2)
    sampled_edges = tf_euler.sample_edge(50, seed=15)
    assert np.allclose(
        tf_euler.get_edge_dense_feature(sampled_edges, ["f3"], [2])[0][:, 0],
        10 * sampled_edges[:, 0] + sampled_edges[:, 1] + 0.1,
    )
    with pytest.raises(asterism.InvalidRequest, match="source, destination, type"):
        tf_euler.get_edge_dense_feature([1, 2, 0], ["f3"], [2])


def test_22_get_node_type_gives_int32_min_for_unknown_nodes(tf_euler: Euler) -> None:
    types = tf_euler.get_node_type([[1, 2], [77, 6]])
    assert types.dtype == np.int32
    assert types.tolist() == [[0, 1], [-(2**31), 1]]


def test_25_to_29_local_operators_match_ops(tf_euler: Euler) -> None:
    assert tf_euler.inflate_idx([0, 1, 0, 2, 1]).tolist() == [0, 2, 1, 4, 3]
    assert tf_euler.inflate_idx([0]).dtype == np.int32
    gathered = tf_euler.sparse_gather([1, 1], [[0, 3], [1, 2]], [7, 8], [2, 4])
    assert (gathered.indices.tolist(), gathered.values.tolist(), gathered.dense_shape) == (
        [[0, 2], [1, 2]],
        [8, 8],
        (2, 4),
    )
    updates, indices = np.array([[1.0], [4.0], [2.0]], np.float32), [0, 2, 0]
    assert tf_euler.gather(updates, [2, 0]).tolist() == [[2], [1]]
    assert tf_euler.scatter_add(updates, indices, 3).tolist() == [[3], [0], [4]]
    assert tf_euler.scatter_max(updates, indices, 3).tolist() == [[2], [np.float32(-1e9)], [4]]
    assert tf_euler.scatter_("mean", updates, indices, 3).tolist() == [[1.5], [0], [4]]
    assert np.allclose(
        tf_euler.scatter_softmax(updates, indices, 3)[:, 0], [1 / (1 + np.e), 1, np.e / (1 + np.e)]
    )
    with pytest.raises(asterism.InvalidRequest, match="op='min'"):
        tf_euler.scatter_("min", updates, indices, 3)


def test_layers_are_of_all_nodes_together_or_of_each_node(tf_euler: Euler) -> None:
    nodes, adjacencies = tf_euler.sample_fanout_layerwise(
        [1, 5], ["0", "1"], [3, 4], weight_func="sqrt", seed=16
    )
    assert [layer.shape for layer in nodes] == [(2,), (3,), (4,)]
    assert [adjacency.dense_shape for adjacency in adjacencies] == [(1, 2, 3), (1, 3, 4)]
    for sources, targets, adjacency in zip(nodes, nodes[1:], adjacencies, strict=False):
        assert table(adjacency)[0] == [
            [int((src, dst) in euler_graph.PAIRS) for dst in targets.tolist()]
            for src in sources.tolist()
        ]
    node_layers, node_adjacencies = tf_euler.sample_fanout_layerwise_each_node(
        [1, 5, 77], ["0", "1"], [3, 4], default_node=9, seed=17
    )
    assert [layer.shape for layer in node_layers] == [(3,), (9,), (12,)]
    assert node_layers[1][6:].tolist() == [9] * 3
    assert node_layers[2][8:].tolist() == [9] * 4
    assert [adjacency.dense_shape for adjacency in node_adjacencies] == [(3, 3, 4)]
    sources, targets = node_layers[1].reshape(3, 3).tolist(), node_layers[2].reshape(3, 4).tolist()
    assert table(node_adjacencies[0]) == [
        [[int((src, dst) in euler_graph.PAIRS) for dst in targets[i]] for src in sources[i]]
        for i in range(3)
    ]
    assert (
        node_layers[1].tolist()[:6]
        == tf_euler.sample_neighbor([1, 5], "0", 3, seed=17)[0].ravel().tolist()
    )
    assert len(tf_euler.sample_fanout_layerwise_each_node([1], ["0"], [3])[1]) == 0
    with pytest.raises(asterism.InvalidRequest, match="two lists of one length"):
        tf_euler.sample_fanout_layerwise([1], ["0"], [3, 4])


def test_get_multi_hop_neighbor_has_each_node_once_with_weights(tf_euler: Euler) -> None:
    nodes, adjacencies = tf_euler.get_multi_hop_neighbor([1, 5], ["0", "1"])
    assert [hop.tolist() for hop in nodes] == [[1, 5], [2, 4, 6], [3, 5, 1]]
    assert table(adjacencies[0]) == [[2, 4, 0], [2, 0, 6]]
    assert table(adjacencies[1]) == [[3, 5, 0], [0, 5, 0], [3, 5, 1]]


def test_conditions_filter_nodes_edges_and_neighbors(tf_euler: Euler) -> None:
    assert_follows_weights(
        tf_euler.sample_node(MANY, -1, condition="weight gt 2 and f5 ne 5a", seed=21),
        np.array([0, 0, 0, 3, 4, 0, 6]),
    )
    assert_follows_weights(
        tf_euler.sample_node(MANY, "1", condition="id lt 2 or f5 eq 5a", seed=22),
        np.array([0, 1, 0, 0, 0, 5]),
    )
    ids, weights, types = tf_euler.sample_neighbor(
        [1, 2, 77], "-1", MANY, condition="f5 ne 13a and weight ge 3", seed=23
    )
    assert set(ids[0].tolist()) == {4}, "of the edges: they have the feature, as nodes do"
    assert_follows_weights(ids[1], np.array([0, 0, 0, 3, 0, 5]))
    assert (set(ids[2].tolist()), set(weights[2].tolist()), set(types[2].tolist())) == (
        {-1},
        {0},
        {-1},
    )
    assert tf_euler.get_top_k_neighbor([1], [0, 1], 3, condition="weight lt 4")[0].tolist() == [
        [3, 2, -1]
    ]
    assert table(tf_euler.get_full_neighbor([1], "-1", "f5 eq 12a or f5 eq 14a")[0]) == [[2, 4]]
    assert table(tf_euler.get_sorted_full_neighbor([1, 5], "-1", "graph_label eq 2")[0]) == [
        [2],
        [2],
    ], "of the neighbors, where edges have no such feature"
    with pytest.raises(
        asterism.NotFound,
        match="condition='price gt 3': expected features of _1, _0, found 'price'",
    ):
        tf_euler.sample_node(1, condition="price gt 3")
    for wrong in ("price", "price gt", "price > 3", "price gt 3 xor f1 lt 2", "price gt 3 and"):
        with pytest.raises(
            asterism.InvalidRequest, match="expected a name, one of gt ge lt le eq ne and a value"
        ):
            tf_euler.get_full_neighbor([1], ["0"], wrong)


def test_only_a_graph_of_one_type_may_have_ids_per_type(client: Client) -> None:
    client.create_space(
        "one",
        {
            "parts": 2,
            "nodes": {"n": {"features": {"x": {"shape": [1]}}}},
            "edges": {"n:to:n": {"weighted": True, "features": {"f": {}}}},
        },
    )
    graph = client.graph("one")
    graph.upsert_nodes([0, 1, 2], "n", features={"x": np.array([[0], [1], [2]], np.float32)})
    graph.upsert_edges(
        [0, 0, 0],
        [1, 2, 1],
        "to",
        weights=[1, 3, 5],
        features={"f": np.array([10, 20, 30], np.float32)},
    )
    graph.build()
    tf_euler = Euler(graph)
    assert tf_euler.get_full_neighbor([0], ["to"])[0].values.tolist() == [1, 1, 2], (
        "a node 0 is a node"
    )
    assert tf_euler.get_edge_dense_feature([[0, 1, 0], [0, 2, 0]], "f", 1)[0].tolist() == [
        [10],
        [20],
    ], "of several edges the first"
    assert tf_euler.get_node_type([0, 9]).tolist() == [0, -(2**31)]
    assert tf_euler.sample_node_with_src([2], 3).shape == (1, 3)
    assert tf_euler.get_dense_feature([2, 9], "x", 1)[0].tolist() == [[2], [0]]
    assert table(tf_euler.sparse_get_adj([0], [1, 2], ["to"])) == [[[1, 1]]]
    client.create_space("two", {"nodes": {"a": {}, "b": {}}})
    with pytest.raises(asterism.InvalidRequest, match="ids: global"):
        Euler(client.graph("two"))
    with pytest.raises(asterism.InvalidRequest, match="framework='paddle'"):
        Euler(graph, framework="paddle")

"""Tests of Euler's operators with TensorFlow tensors, eager and in a ``tf.function``.

Results equal those with arrays; scatters have gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tests.kit import euler_graph

import asterism
from asterism import Graph, ops
from asterism.euler import Euler
from asterism.tensorflow.euler import OUTPUT_SPECS
from asterism_proto.errors import InvalidRequest

NODES, PAIRS, TRIPLES = [1, 2, 6, 1], [[1, 2], [5, 6]], [[1, 2, 0], [6, 5, 1], [1, 9, 0]]
ALL = [["0", "1"], -1]
CALLS: dict[str, tuple[list[Any], Callable[..., Any]]] = {
    "sample_node": ([], lambda e: e.sample_node(9, "1", seed=1)),
    "sample_node_with_src": ([NODES], lambda e, n: e.sample_node_with_src(n, 3, seed=1)),
    "sample_edge": ([], lambda e: e.sample_edge(9, seed=1)),
    "sample_graph_label": ([], lambda e: e.sample_graph_label(5, seed=1)),
    "get_graph_by_label": ([[b"1", b"none", b"4"]], lambda e, labels: e.get_graph_by_label(labels)),
    "sample_neighbor": ([NODES], lambda e, n: e.sample_neighbor(n, -1, 3, 9, seed=1)),
    "get_top_k_neighbor": ([NODES], lambda e, n: e.get_top_k_neighbor(n, ["0", "1"], 2)),
    "get_full_neighbor": ([NODES], lambda e, n: e.get_full_neighbor(n, -1)),
    "get_sorted_full_neighbor": ([NODES], lambda e, n: e.get_sorted_full_neighbor(n, ["1"])),
    "sample_fanout": ([NODES], lambda e, n: e.sample_fanout(n, ALL, [2, 3], seed=1)),
    "sample_fanout_with_feature": (
        [NODES],
        lambda e, n: e.sample_fanout_with_feature(
            n, ALL, [2, 3], -1, ["f3", "f4"], [2, 3], ["f1"], [7], seed=1
        ),
    ),
    "sample_neighbor_layerwise": (
        [PAIRS],
        lambda e, n: e.sample_neighbor_layerwise(n, -1, 3, seed=1),
    ),
    "sample_fanout_layerwise": (
        [NODES],
        lambda e, n: e.sample_fanout_layerwise(n, ALL, [2, 3], seed=1),
    ),
    "sample_fanout_layerwise_each_node": (
        [NODES],
        lambda e, n: e.sample_fanout_layerwise_each_node(n, ALL, [2, 3], seed=1),
    ),
    "sparse_get_adj": ([PAIRS, [[2, 3, 4], [2, 6, 1]]], lambda e, n, m: e.sparse_get_adj(n, m, -1)),
    "get_multi_hop_neighbor": ([[1, 2]], lambda e, n: e.get_multi_hop_neighbor(n, ALL)),
    "random_walk": ([NODES], lambda e, n: e.random_walk(n, [-1] * 4, p=0.5, q=2.0, seed=1)),
    "gen_pair": ([[[1, 2, 3], [4, 5, 6]]], lambda e, paths: e.gen_pair(paths, 1, 1)),
    "get_dense_feature": ([NODES], lambda e, n: e.get_dense_feature(n, ["f3", "f4"], [2, 4])),
    "get_edge_dense_feature": ([TRIPLES], lambda e, t: e.get_edge_dense_feature(t, ["f3"], [2])),
    "get_sparse_feature": ([[1, 9]], lambda e, n: e.get_sparse_feature(n, ["f1", "f2"], [4, 5])),
    "get_edge_sparse_feature": ([TRIPLES], lambda e, t: e.get_edge_sparse_feature(t, "f1")),
    "get_binary_feature": ([NODES], lambda e, n: e.get_binary_feature(n, ["f5", "f6"])),
    "get_edge_binary_feature": ([TRIPLES], lambda e, t: e.get_edge_binary_feature(t, "f5")),
    "get_node_type": ([PAIRS], lambda e, n: e.get_node_type(n)),
    "inflate_idx": ([[0, 1, 0, 2]], lambda e, idx: e.inflate_idx(idx)),
    "sparse_gather": (
        [[1], [[0, 3], [1, 2]], [7, 8]],
        lambda e, rows, at, values: e.sparse_gather(rows, at, values, [2, 4]),
    ),
}
"""Operators by name, with their input tensors and a function that calls them."""
VARIABLE_SIZE = {"get_multi_hop_neighbor"}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    with asterism.open(tmp_path_factory.mktemp("euler")) as client:
        yield euler_graph.write(client, "euler")


def assert_same(actual: Any, expected: Any) -> None:
    """Check tensors against arrays in the same structure."""
    if isinstance(actual, tf.SparseTensor):
        assert actual.dense_shape.numpy().tolist() == list(expected.dense_shape)
        assert np.array_equal(actual.indices, expected.indices)
        assert_same(actual.values, expected.values)
    elif isinstance(expected, list | tuple):
        assert type(actual) is type(expected)
        for left, right in zip(actual, expected, strict=True):
            assert_same(left, right)
    else:
        assert actual.dtype == (
            tf.string if expected.dtype == object else tf.as_dtype(expected.dtype)
        )
        assert np.array_equal(actual.numpy(), expected)


def as_constants(values: list[Any]) -> list[Any]:
    return [
        tf.constant(value, tf.string if isinstance(value[0], bytes) else tf.int64)
        for value in values
    ]


def test_every_operator_is_covered_here() -> None:
    excluded = (
        "gather",
        "get_node_type_id",
        "get_edge_type_id",
        "run_gql",
    )  # the outputs of run_gql depend on its text
    operators = {name for name in dir(Euler) if not name.startswith("_") and name not in excluded}
    assert (
        set(CALLS)
        == set(OUTPUT_SPECS)
        == {name for name in operators if not name.startswith("scatter_")}
    )


@pytest.mark.parametrize("name", list(CALLS))
def test_operator_is_equal_eager_and_in_function(graph: Graph, name: str) -> None:
    arguments, call = CALLS[name]
    tf_euler, tensors = Euler(graph, framework="tensorflow"), as_constants(arguments)
    expected = call(Euler(graph), *arguments)
    assert_same(call(tf_euler, *tensors), expected)
    shapes: list[Any] = []

    def traced_call(*tensors: Any) -> Any:
        result = call(tf_euler, *tensors)
        shapes[:] = [
            (tensor, tensor.shape)
            for tensor in tf.nest.flatten(result)
            if not isinstance(tensor, tf.SparseTensor)
        ]
        return result

    open_signature = [tf.TensorSpec([None] * tensor.shape.rank, tensor.dtype) for tensor in tensors]
    if name == "sparse_gather":
        open_signature[1] = tf.TensorSpec([None, 2], tf.int64)  # the rank must be known
    assert_same(tf.function(traced_call, input_signature=open_signature)(*tensors), expected)
    assert_same(tf.function(traced_call)(*tensors), expected)
    if name not in VARIABLE_SIZE:
        assert all(shape.is_fully_defined() for _, shape in shapes)


def test_types_may_be_numbers_in_a_function(graph: Graph) -> None:
    tf_euler = Euler(graph, framework="tensorflow")
    function = tf.function(
        lambda: (tf_euler.get_node_type_id(["0", "1"]), tf_euler.get_edge_type_id("-1"))
    )
    assert_same(
        function(), (Euler(graph).get_node_type_id(["0", "1"]), Euler(graph).get_edge_type_id("-1"))
    )


def test_unseeded_draws_differ_on_each_function_run(graph: Graph) -> None:
    tf_euler = Euler(graph, framework="tensorflow")
    function = tf.function(lambda: tf_euler.sample_node(100))
    assert not np.array_equal(function(), function())


def test_euler_style_model_learns_in_a_function(graph: Graph) -> None:
    tf_euler = Euler(graph, framework="tensorflow")
    dense = tf.keras.layers.Dense(1)
    dense.build((None, 5))
    optimizer = tf.keras.optimizers.Adam(0.05)

    @tf.function
    def step(nodes: Any) -> Any:
        targets = tf.cast(
            tf_euler.get_node_type(nodes) == tf_euler.get_node_type_id("1"), tf.float32
        )
        with tf.GradientTape() as tape:
            x = tf.concat(tf_euler.get_dense_feature(nodes, ["f3", "f4"], [2, 3]), axis=1)
            neighbors, _, _ = tf_euler.sample_neighbor(nodes, -1, 4)
            neighbor_features = tf.concat(
                tf_euler.get_dense_feature(neighbors, ["f3", "f4"], [2, 3]), axis=1
            )
            mean = tf_euler.scatter_mean(
                neighbor_features, tf.repeat(tf.range(tf.size(nodes)), 4), 6
            )
            logits = tf.squeeze(dense(tf.sin(x * 3.0) + 0.01 * mean), 1)
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(targets, logits))
        optimizer.apply_gradients(
            zip(
                tape.gradient(loss, dense.trainable_variables),
                dense.trainable_variables,
                strict=True,
            )
        )
        return loss

    losses = [float(step(tf.range(1, 7, dtype=tf.int64))) for _ in range(150)]
    assert losses[-1] < 0.7 * losses[0]


@pytest.mark.parametrize("name", ["scatter_add", "scatter_mean", "scatter_max", "scatter_softmax"])
def test_tensor_scatters_match_arrays_and_have_gradients(graph: Graph, name: str) -> None:
    generator = np.random.default_rng(0)
    values, indices = generator.normal(size=(40, 3)), generator.integers(0, 7, 40)
    indices[indices == 5] = 4  # a position without inputs
    scatter = getattr(Euler(graph, framework="tensorflow"), name)
    for actual in (
        scatter(tf.constant(values), indices, 7),
        tf.function(lambda x: scatter(x, indices, 7))(tf.constant(values)),
    ):
        assert np.allclose(actual, getattr(ops, name)(values, indices, 7))
    analytic, numeric = tf.test.compute_gradient(
        lambda x: scatter(x, indices, 7), [tf.constant(values)]
    )
    assert np.allclose(analytic, numeric, atol=1e-6)
    with pytest.raises(tf.errors.InvalidArgumentError):
        scatter(tf.constant([1.0]), [-1], 2)


def test_gather_has_a_gradient_and_scatters_have_names(graph: Graph) -> None:
    tf_euler = Euler(graph, framework="tensorflow")
    rows = tf.Variable(np.eye(3, dtype=np.float32))
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(tf_euler.gather(rows, [2, 2, 0]))
    assert tf.convert_to_tensor(tape.gradient(total, rows)).numpy().tolist() == [
        [1, 1, 1],
        [0, 0, 0],
        [2, 2, 2],
    ]
    assert tf_euler.scatter_("add", tf.constant([1.0, 2.0]), [1, 1], 2).numpy().tolist() == [0, 3]
    with pytest.raises(InvalidRequest, match="op='min': expected add, max, mean, softmax"):
        tf_euler.scatter_("min", tf.constant([1.0]), [0], 1)

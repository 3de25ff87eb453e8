"""Tests of operators in TensorFlow graphs: results equal the graph's own.

They sample on each call of a function, and have static shapes that layers can use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from asterism import Graph
from asterism.tensorflow import Operators
from asterism_proto.errors import InvalidRequest

CALLS: dict[str, Callable[[Operators, Any, Any], Any]] = {
    "sample_nodes": lambda of, nodes, seed: of.sample_nodes(9, "paper", seed=seed),
    "sample_neighbors": lambda of, nodes, seed: of.sample_neighbors(nodes, "cites", 4, seed=seed),
    "sample_fanout": lambda of, nodes, seed: of.sample_fanout(
        nodes, ["cites", "cites"], [3, 2], seed=seed
    ),
    "random_walk": lambda of, nodes, seed: of.random_walk(nodes, ["cites"] * 5, seed=seed),
    "sample_negatives": lambda of, nodes, seed: of.sample_negatives(
        tf.stack([nodes, nodes], 1), 3, "paper", seed=seed
    ),
    "node_features": lambda of, nodes, seed: of.node_features(nodes, "label", "paper"),
}
DIRECT_CALLS: dict[str, Callable[[Graph, Any, int], Any]] = {
    "sample_nodes": lambda graph, nodes, seed: graph.sample_nodes(9, "paper", seed=seed).nodes,
    "sample_neighbors": lambda graph, nodes, seed: neighbors(graph, nodes, seed),
    "sample_fanout": lambda graph, nodes, seed: [
        nodes,
        *(hop.nodes for hop in graph.sample_fanout(nodes, ["cites"] * 2, [3, 2], seed=seed).hops),
    ],
    "random_walk": lambda graph, nodes, seed: (
        graph.random_walk(nodes, ["cites"] * 5, seed=seed).nodes
    ),
    "sample_negatives": lambda graph, nodes, seed: (
        graph.sample_negatives(np.stack([nodes, nodes], 1), 3, "paper", seed=seed).nodes
    ),
    "node_features": lambda graph, nodes, seed: graph.node_features(nodes, "label", "paper"),
}


def neighbors(graph: Graph, nodes: Any, seed: int) -> Any:
    sample = graph.sample_neighbors(nodes, "cites", 4, seed=seed)
    return sample.nodes, sample.weights, sample.types


def assert_same(actual: Any, expected: Any) -> None:
    tf.nest.assert_same_structure(
        actual, tf.nest.map_structure(tf.convert_to_tensor, expected), check_types=False
    )
    for left, right in zip(tf.nest.flatten(actual), tf.nest.flatten(expected), strict=True):
        assert left.dtype == tf.as_dtype(np.asarray(right).dtype)
        assert np.array_equal(left.numpy(), np.asarray(right))


@pytest.mark.parametrize("name", list(CALLS))
def test_operator_matches_graph_eager_and_in_function(papers: Graph, name: str) -> None:
    operators, nodes = (
        Operators(papers),
        np.array([7, 0, -1 if "neighbors" in name else 3, 7, 1500]),
    )
    function = tf.function(lambda nodes, seed: CALLS[name](operators, nodes, seed))
    for seed in (1, 2):
        expected = DIRECT_CALLS[name](papers, nodes, seed)
        assert_same(CALLS[name](operators, nodes, seed), expected)
        assert_same(function(tf.constant(nodes), tf.constant(seed, tf.int64)), expected)
    assert function.experimental_get_tracing_count() == 1


def test_shapes_are_set_from_arguments(papers: Graph) -> None:
    operators, shapes = Operators(papers), {}

    @tf.function(input_signature=[tf.TensorSpec([8], tf.int64), tf.TensorSpec([None], tf.int64)])
    def traced_call(fixed_nodes: Any, open_nodes: Any) -> Any:
        for name in CALLS:
            shapes[name] = [
                [
                    tensor.shape.as_list()
                    for tensor in tf.nest.flatten(CALLS[name](operators, nodes, None))
                ]
                for nodes in (fixed_nodes, open_nodes)
            ]
        return fixed_nodes

    traced_call(np.arange(8), np.arange(3))
    assert shapes == {
        "sample_nodes": [[[9]], [[9]]],
        "sample_neighbors": [[[8, 4]] * 3, [[None, 4]] * 3],
        "sample_fanout": [[[8], [24], [48]], [[None]] * 3],
        "random_walk": [[[8, 6]], [[None, 6]]],
        "sample_negatives": [[[8, 3]], [[None, 3]]],
        "node_features": [[[8]], [[None]]],
    }


def test_unseeded_runs_differ_and_seeded_runs_repeat(papers: Graph) -> None:
    operators = Operators(papers)
    unseeded, seeded = (
        tf.function(lambda: operators.sample_nodes(50)),
        tf.function(lambda: operators.sample_nodes(50, seed=3)),
    )
    assert not np.array_equal(unseeded(), unseeded())
    assert np.array_equal(seeded(), seeded())
    assert np.array_equal(
        operators.sample_nodes(5, seed=2**64 - 1), papers.sample_nodes(5, seed=2**64 - 1).nodes
    )


def test_rejected_call_explains_itself_in_a_function(papers: Graph) -> None:
    operators = Operators(papers)
    with pytest.raises(InvalidRequest, match="nodes"):
        operators.sample_neighbors([-7], "cites", 2)
    with pytest.raises(tf.errors.OpError, match="InvalidRequest: nodes"):
        tf.function(lambda: operators.sample_neighbors(tf.constant([-7], tf.int64), "cites", 2))()
    with pytest.raises(
        InvalidRequest,
        match="feature 'words' of 'paper': expected a dense feature, this one is ragged",
    ):
        operators.node_features([1], "words", "paper")

"""Tests of tensors along edge types that lead to nodes without neighbors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import tensorflow as tf

import asterism
from asterism import Graph
from asterism.euler import Euler
from asterism.tensorflow import Operators

STARTS = [1, 2, -1]
"""A buyer of item 5, a buyer of nothing, and no node."""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    """Return buyers and items; no edge starts at an item."""
    node = {"features": {"f": {"dtype": "float32", "shape": [2]}}}
    schema = {
        "ids": "global",
        "nodes": {"user": node, "item": node},
        "edges": {"user:buys:item": {"weighted": True}},
    }
    with asterism.open(tmp_path_factory.mktemp("shop")) as client:
        client.create_space("shop", schema)
        graph = client.graph("shop")
        graph.upsert_nodes([1, 2], "user", features={"f": [[1, 1], [2, 2]]})
        graph.upsert_nodes([5], "item", features={"f": [[5, 5]]})
        graph.upsert_edges([1], [5], "buys", weights=[4])
        graph.build()
        yield graph


def eager_and_traced(call: Callable[[Any], Any]) -> list[Any]:
    """Return the arrays of a call of the starts: eager, and in a function of open shapes."""
    function = tf.function(call, input_signature=[tf.TensorSpec([None], tf.int64)])
    starts = tf.constant(STARTS, tf.int64)
    return [
        [tensor.numpy().tolist() for tensor in tf.nest.flatten(run(starts))]
        for run in (call, function)
    ]


def test_neighbors_and_walks_after_a_dead_end_are_no_node(shop: Graph) -> None:
    operators = Operators(shop)
    for neighbors, weights, types in eager_and_traced(
        lambda nodes: operators.sample_neighbors(nodes, "buys", 2, seed=1)
    ):
        assert neighbors == [[5, 5], [-1, -1], [-1, -1]]
        assert weights == [[4, 4], [0, 0], [0, 0]]
        assert types == [[0, 0], [-1, -1], [-1, -1]]
    for (walks,) in eager_and_traced(
        lambda nodes: operators.random_walk(nodes, ["buys"], length=2, seed=1)
    ):
        assert walks == [[1, 5, -1], [2, -1, -1], [-1, -1, -1]]


def test_features_of_no_node_are_zero(shop: Graph) -> None:
    operators = Operators(shop)

    def call(nodes: Any) -> Any:
        neighbors, _, _ = operators.sample_neighbors(nodes, "buys", 1, seed=1)
        return operators.node_features(neighbors, "f", "item")

    for (features,) in eager_and_traced(call):
        assert features == [[[5, 5]], [[0, 0]], [[0, 0]]]


def test_fanouts_into_a_type_without_edges_are_padded(shop: Graph) -> None:
    euler = Euler(shop, framework="tensorflow")
    path = [["buys"], ["buys"]]
    for flat in eager_and_traced(lambda nodes: euler.sample_fanout(nodes, path, [1, 2], 9, seed=1)):
        ids, weights, types = flat[:3], flat[3:5], flat[5:]
        assert ids == [STARTS, [5, 9, 9], [9] * 6]
        assert weights == [[4, 0, 0], [0] * 6]
        assert types == [[0, -1, -1], [-1] * 6]

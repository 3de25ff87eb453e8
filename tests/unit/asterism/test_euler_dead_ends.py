"""Tests of Euler's operators along edge types that lead to a type without edges."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from tests.kit.hosted_graph import graph_on_hosts
from tests.kit.images import Edges, Nodes, version_of

from asterism.euler import Euler
from asterism_model.schema import EdgeType, Feature, NodeType, Schema

FEATURES = (Feature(name="f", dtype="float32", shape=(2,)), Feature(name="l", kind="ragged"))
BUYERS, ITEMS = np.array([1, 2]), np.array([3, 4, 5])


@cache
def tf_euler(hosts: int) -> Euler:
    """Return the operators of two users who buy items; no edge starts at an item."""
    schema = Schema(
        node_types=tuple(NodeType(name=name, features=FEATURES) for name in ("user", "item")),
        edge_types=(
            EdgeType(src_type="user", relation="buys", dst_type="item", weighted=True),
            EdgeType(src_type="user", relation="knows", dst_type="user", weighted=True),
        ),
        ids="global",
        parts=3,
    )
    nodes = {
        name: Nodes(
            ids=ids,
            features={
                "f": np.stack([ids, ids], axis=1).astype(np.float32),
                "l": (np.arange(len(ids) + 1), ids.astype(np.float32)),
            },
        )
        for name, ids in (("user", BUYERS), ("item", ITEMS))
    }
    edges = {
        "user:buys:item": Edges(
            src=np.array([1, 1, 2]), dst=ITEMS, weights=np.array([2, 4, 8], np.float32)
        ),
        "user:knows:user": Edges(
            src=np.array([1]), dst=np.array([2]), weights=np.ones(1, np.float32)
        ),
    }
    return Euler(graph_on_hosts(version_of(schema, nodes, edges), hosts))


@pytest.mark.parametrize("hosts", [1, 2])
@pytest.mark.parametrize("path", [["buys"] * 3, [["buys"], [0], "0"], ["user:buys:item"] * 3])
def test_fanouts_into_a_type_without_edges_are_padded(path: list[Any], hosts: int) -> None:
    ids, weights, types = tf_euler(hosts).sample_fanout([2, 2], path, [2, 3, 1], 9, seed=1)
    assert [hop.tolist() for hop in ids] == [[2, 2], [5] * 4, [9] * 12, [9] * 12]
    assert [hop.tolist() for hop in weights] == [[8] * 4, [0] * 12, [0] * 12]
    assert [hop.tolist() for hop in types] == [[0] * 4, [-1] * 12, [-1] * 12]
    assert [hop.dtype for hop in (*ids, *weights, *types)] == (
        [np.int64] * 4 + [np.float32] * 3 + [np.int32] * 3
    )


def test_fanouts_from_a_type_without_edges_are_padded() -> None:
    ids, weights, types = tf_euler(1).sample_fanout([3, 2, 77], [-1, -1], [1, 2], seed=1)
    assert ids[1].tolist() == [-1, 5, -1]
    assert ids[2].tolist() == [-1] * 6
    assert [hop.tolist() for hop in weights] == [[0, 8, 0], [0] * 6]
    assert types[0].tolist() == [-1, 0, -1]


def test_features_after_a_dead_end_are_those_of_no_node() -> None:
    ids, _, types, dense, sparse = tf_euler(2).sample_fanout_with_feature(
        [2], [["buys"], ["buys"]], [1, 2], -1, ["f"], [2], ["l"], [7], seed=1
    )
    assert [hop.tolist() for hop in ids] == [[2], [5], [-1, -1]]
    assert [hop.tolist() for hop in types] == [[0], [-1, -1]]
    assert [hop.tolist() for hop in dense] == [[[2, 2]], [[5, 5]], [[0, 0]] * 2]
    assert [hop.values.tolist() for hop in sparse] == [[2], [5], [7, 7]]


def test_other_operators_pad_after_a_dead_end_too() -> None:
    euler = tf_euler(1)
    assert euler.sample_neighbor([5], ["buys"], 2, 9, seed=1)[0].tolist() == [[9, 9]]
    assert euler.random_walk([2, 5], [["buys"], ["buys"]], default_node=9, seed=1).tolist() == [
        [2, 5, 9],
        [5, 9, 9],
    ]
    layers, _ = euler.sample_fanout_layerwise([2], ["buys", "buys"], [1, 2], 9, seed=1)
    assert [layer.tolist() for layer in layers] == [[2], [5], [9, 9]]

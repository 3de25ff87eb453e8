"""Tests of statements with infinite parameters: they are numbers, not names of columns."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from tests.kit.hosted_graph import graph_on_hosts
from tests.kit.images import Edges, Nodes, version_of

from asterism.graph import Graph
from asterism_model.schema import EdgeType, Feature, NodeType, Schema

INF = float("inf")


@cache
def graph() -> Graph:
    """Return items with the prices -inf, 1, 5 and inf, each with an edge from item 0 of its price.

    A feature called ``inf`` could be mistaken for the number.
    """
    prices = np.array([-INF, 1.0, 5.0, INF])
    features = (Feature(name="price", dtype="float64"), Feature(name="inf", dtype="float64"))
    schema = Schema(
        node_types=(NodeType(name="item", features=features),),
        edge_types=(
            EdgeType(src_type="item", relation="like", dst_type="item", features=features[:1]),
        ),
        parts=1,
    )
    nodes = Nodes(ids=np.arange(4), features={"price": prices, "inf": np.full(4, 3.0)})
    edges = Edges(src=np.zeros(4, np.int64), dst=np.arange(4), features={"price": prices})
    return graph_on_hosts(version_of(schema, {"item": nodes}, {"item:like:item": edges}))


@pytest.mark.parametrize(
    ("where", "parameters", "matching"),
    [
        ("BETWEEN $low AND $high", {"low": 0, "high": INF}, [1, 2, 3]),
        ("BETWEEN $low AND $high", {"low": -INF, "high": 1}, [0, 1]),
        ("BETWEEN $low AND $high", {"low": -INF, "high": INF}, [0, 1, 2, 3]),
        ("BETWEEN $low AND $high", {"low": INF, "high": np.float64(INF)}, [3]),
        ("BETWEEN $low AND $high", {"low": np.float32(-INF), "high": np.array(-INF)}, [0]),
        ("NOT BETWEEN $low AND $high", {"low": 2, "high": INF}, [0, 1]),
        ("BETWEEN $low AND 5", {"low": -INF}, [0, 1, 2]),
        ("BETWEEN 1 AND $high", {"high": INF}, [1, 2, 3]),
        ("IN [$low, 5]", {"low": -INF}, [0, 2]),
        ("IN $values", {"values": [INF, -INF]}, [0, 3]),
    ],
)
def test_infinite_parameters_bound_ranges_and_lists(
    where: str, parameters: dict[str, Any], matching: list[int]
) -> None:
    nodes = graph().query(
        f"SAMPLE 60 VERTICES ON item WHERE price {where} SEED 1 YIELD id", parameters
    )
    assert np.unique(nodes["id"]).tolist() == matching
    edges = graph().query(f"GO FROM 0 OVER like WHERE like.price {where} YIELD dst", parameters)
    assert sorted(np.asarray(edges["dst"]).tolist()) == matching

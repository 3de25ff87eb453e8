"""Fractional fanouts of an embedded service: shares of each node's edges, and refusals."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.kit import cases

import asterism
from asterism import Graph
from asterism_proto.errors import InvalidRequest

PEOPLE = np.concatenate([cases.person_ids()[:30], [-1, 5]])
OPTIONS: list[dict[str, Any]] = [
    {"weighted": True},
    {"weighted": False, "where": "when > 900"},
    {"weight": "recent", "where": "dst.id < 40"},
    {"exclude": {"writes": (PEOPLE[:9], np.arange(9))}},
]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    folder = cases.copy_built_graph(tmp_path_factory.mktemp("shares"))
    with asterism.open(folder) as client:
        yield client.graph("cases")


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_share_counts_the_edges_that_match(graph: Graph, options: dict[str, Any]) -> None:
    seen = {name: options[name] for name in ("where", "exclude") if name in options}
    degrees = graph.degrees(PEOPLE, "writes", **seen)[:, 0]
    counts = np.array([-(-Fraction("0.3") * int(degree) // 1) for degree in degrees], np.int64)
    options = {"replace": False, "seed": 5, "edge_ids": True, **options}
    sample = graph.sample_neighbors(PEOPLE, "writes", 0.3, **options)
    assert sample.nodes.shape == (len(PEOPLE), counts.max())
    for count in np.unique(counts[counts > 0]).tolist():
        whole = graph.sample_neighbors(PEOPLE, "writes", count, **options)
        rows = np.flatnonzero(counts == count)
        np.testing.assert_array_equal(sample.nodes[rows, :count], whole.nodes[rows])
        np.testing.assert_array_equal(sample.weights[rows, :count], whole.weights[rows])
        np.testing.assert_array_equal(sample.edge_ids[rows, :count], whole.edge_ids[rows])
        assert (sample.nodes[rows, count:] == -1).all()
    replayed = graph.replay(sample.token, PEOPLE, exclude=options.get("exclude"))
    np.testing.assert_array_equal(replayed.nodes, sample.nodes)


def test_hops_of_shares_and_of_counts_follow_each_other(graph: Graph) -> None:
    metapath: list[Any] = ["writes", ["cites", "by"], "cites"]
    sample = graph.sample_fanout(
        PEOPLE, metapath, [0.25, 2, np.float32(0.1)], replace=False, seed=3, node_features=["vec"]
    )
    first, second, third = sample.hops
    expected = graph.sample_neighbors(PEOPLE, "writes", 0.25, replace=False, seed=3)
    assert (first.fanout, second.fanout) == (expected.nodes.shape[1], 2)
    np.testing.assert_array_equal(first.nodes.reshape(len(PEOPLE), -1), expected.nodes)
    assert len(third) == len(PEOPLE) * first.fanout * 2 * third.fanout
    assert third.features is not None
    assert graph.explain.sample_fanout(PEOPLE, metapath[:1], [0.5], replace=False).price is not None


@pytest.mark.parametrize(
    ("n", "options", "message"),
    [
        (0.5, {}, r"n=0\.5: expected replace=False; a share"),
        (0.0, {"replace": False}, r"n=0\.0: expected a share of each node's edges, above 0"),
        (1.5, {"replace": False}, r"n=1\.5: expected a share"),
        (float("nan"), {"replace": False}, "n=nan: expected a share"),
        (0.5, {"replace": False, "times": np.zeros(1, np.int64)}, r"share=0\.5: expected no times"),
    ],
)
def test_other_shares_are_refused(
    graph: Graph, n: float, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidRequest, match=message):
        graph.sample_neighbors(PEOPLE[:1], "writes", n, **options)


def test_other_calls_refuse_shares(graph: Graph) -> None:
    half: Any = 0.5
    for call in (
        lambda: graph.sample_subgraph(PEOPLE, [half], "writes"),
        lambda: graph.sample_labor(PEOPLE, [half], "writes"),
        lambda: graph.sample_layer(PEOPLE, "writes", half),
        lambda: graph.sample_fanout_layerwise(PEOPLE, ["writes"], [half]),
        lambda: graph.sample_nodes(half),
    ):
        with pytest.raises(InvalidRequest, match=r"=0\.5: expected an integer"):
            call()

"""Heaviest neighbors and degrees, compared with whole neighborhoods."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tests.kit import cases

import asterism
from asterism import Graph


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    with asterism.open(cases.copy_built_graph(tmp_path_factory.mktemp("heaviest"))) as client:
        yield client.graph("cases")


@pytest.mark.parametrize("direction", ["out", "in"])
@pytest.mark.parametrize("etypes", ["cites", ["by", "cites"], ["cites", "by"], None])
@pytest.mark.parametrize("k", [1, 3, 10, 500])
def test_top_k_sorts_by_weight_then_id_type_and_edge_id(
    graph: Graph, direction: str, etypes: object, k: int
) -> None:
    papers = np.concatenate([np.arange(cases.PAPERS), [-1, 10**9, 3, 3]])
    top = graph.top_k_neighbors(
        papers, etypes, k, ntype="paper", direction=direction, edge_ids=True
    )
    all_neighbors = graph.neighbors(papers, etypes, ntype="paper", direction=direction)
    names = [etypes] if isinstance(etypes, str) else etypes or ["writes", "cites", "by"]
    type_rank = {graph.schema.edge_type_id(name): i for i, name in enumerate(names)}
    assert top.edge_ids is not None
    for i in range(len(papers)):
        segment = slice(all_neighbors.indptr[i], all_neighbors.indptr[i + 1])
        rows = sorted(
            zip(
                (-all_neighbors.weights[segment]).tolist(),
                all_neighbors.nodes[segment].tolist(),
                [type_rank[t] for t in all_neighbors.types[segment].tolist()],
                all_neighbors.edge_ids[segment].tolist(),
                strict=True,
            )
        )[:k]
        n = len(rows)
        assert (-top.weights[i, :n]).tolist() == [row[0] for row in rows]
        assert top.nodes[i, :n].tolist() == [row[1] for row in rows]
        assert [type_rank[t] for t in top.types[i, :n].tolist()] == [row[2] for row in rows]
        assert top.edge_ids[i, :n].tolist() == [row[3] for row in rows]
        assert (top.nodes[i, n:] == -1).all()
        assert (top.types[i, n:] == -1).all()
        assert (top.weights[i, n:] == 0).all()
        assert (top.edge_ids[i, n:] == -1).all()


def test_top_k_of_a_hub_returns_its_heaviest_edges(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with asterism.open(tmp_path_factory.mktemp("hub")) as client:
        client.create_space(
            "hub", {"parts": 2, "nodes": {"n": {}}, "edges": {"n:to:n": {"weighted": True}}}
        )
        graph = client.graph("hub")
        n = 200_000
        weights = np.random.default_rng(5).random(n).astype(np.float32)
        graph.upsert_nodes(np.arange(n), "n")
        graph.upsert_edges(np.zeros(n, np.int64), np.arange(n), "to", weights=weights)
        graph.build()
        top = graph.top_k_neighbors([0], "to", 1000)
        order = np.lexsort((np.arange(n), -weights))[:1000]
        assert top.nodes[0].tolist() == order.tolist()
        assert np.array_equal(top.weights[0], weights[order])
        assert graph.degrees([0, 1]).tolist() == [[n], [0]]


@pytest.mark.parametrize("direction", ["out", "in"])
def test_degrees_count_every_edge_by_type(graph: Graph, direction: str) -> None:
    papers = np.concatenate([np.arange(cases.PAPERS), [-1, 10**9, 3]])
    names = ["cites", "by", "writes"]
    degrees = graph.degrees(papers, names, ntype="paper", direction=direction)
    for column, name in enumerate(names):
        src, dst, _ = cases.edges()[name]
        ends = src if direction == "out" else dst
        counts = (
            np.bincount(ends, minlength=cases.PAPERS)
            if name != {"out": "writes", "in": "by"}[direction]
            else np.zeros(cases.PAPERS, int)
        )
        assert degrees[: cases.PAPERS, column].tolist() == counts.tolist()
        assert degrees[cases.PAPERS :, column].tolist() == [0, 0, counts[3]]
    assert graph.degrees(np.zeros(0, np.int64), "cites").shape == (0, 1)


@pytest.mark.parametrize("direction", ["out", "in"])
@pytest.mark.parametrize("weight", ["weight", "recent"])
def test_weighted_degrees_sum_weights_by_type_and_name(
    graph: Graph, direction: str, weight: str
) -> None:
    papers = np.concatenate([np.arange(cases.PAPERS), [-1, 10**9, 3, 3]])
    names = ["cites", "writes"]
    degrees = graph.degrees(papers, names, ntype="paper", direction=direction, weight=weight)
    assert (degrees.dtype, degrees.shape) == (np.float64, (len(papers), 2))
    for column, name in enumerate(names):
        expected = np.zeros(cases.PAPERS)
        for edges in graph.scan_edges(name, weight=weight):
            if (direction, name) != ("out", "writes"):
                np.add.at(
                    expected,
                    edges.src if direction == "out" else edges.dst,
                    edges.weights.astype(np.float64),
                )
        assert np.allclose(degrees[: cases.PAPERS, column], expected, rtol=1e-12, atol=0)
        assert degrees[cases.PAPERS :, column].tolist() == [
            0,
            0,
            degrees[3, column],
            degrees[3, column],
        ]
        assert expected.any() == ((direction, name) != ("out", "writes"))
    unit_degrees = graph.degrees(
        papers, "by", ntype="paper", weight="weight"
    )  # the edge type has no weights: each edge counts 1
    assert unit_degrees.tolist() == graph.degrees(papers, "by", ntype="paper").tolist()
    with pytest.raises(asterism.NotFound, match="recent"):
        graph.degrees(papers, ["cites", "by"], ntype="paper", weight="recent")


def test_top_k_by_named_weight_sorts_by_that_weight(graph: Graph) -> None:
    papers = np.arange(cases.PAPERS)
    top = graph.top_k_neighbors(
        papers, "writes", 4, ntype="paper", direction="in", edge_ids=True, weight="recent"
    )
    all_neighbors = graph.neighbors(
        papers, "writes", ntype="paper", direction="in", weight="recent"
    )
    assert top.edge_ids is not None
    for i in range(len(papers)):
        segment = slice(all_neighbors.indptr[i], all_neighbors.indptr[i + 1])
        order = np.lexsort(
            (
                all_neighbors.edge_ids[segment],
                all_neighbors.nodes[segment],
                -all_neighbors.weights[segment],
            )
        )[:4]
        assert (
            top.edge_ids[i, : len(order)].tolist()
            == all_neighbors.edge_ids[segment][order].tolist()
        )
        assert (
            top.weights[i, : len(order)].tolist() == all_neighbors.weights[segment][order].tolist()
        )
    by_edge_weight = graph.top_k_neighbors(
        papers, "writes", 4, ntype="paper", direction="in", edge_ids=True
    )
    assert by_edge_weight.edge_ids is not None
    assert (by_edge_weight.edge_ids != top.edge_ids).any()


def test_invalid_requests_are_refused_with_the_value(graph: Graph) -> None:
    for call, message in (
        (lambda: graph.top_k_neighbors([1], "cites", 0), "k=0"),
        (lambda: graph.top_k_neighbors([1], "cites", -2), "k=-2"),
        (
            lambda: graph.top_k_neighbors(np.zeros(1000, np.int64), "cites", 10**6),
            "may not fit into one reply",
        ),
        (lambda: graph.degrees([1], None), "pass ntype"),
        (lambda: graph.degrees([1], "cites", direction="up"), "'up'"),
    ):
        with pytest.raises(asterism.InvalidRequest, match=message):
            call()  # type: ignore[no-untyped-call]

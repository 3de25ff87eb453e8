"""Personalized PageRank, compared with linear algebra within its error bounds.

Cases vary edge types, directions, weights and filters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.distributions.checks.hosts import request_context
from tests.distributions.checks.visits import dense_pagerank, pushed_pagerank, small_graph
from tests.kit.images import Edges, Nodes, version_of

import asterism
from asterism import Graph
from asterism.records.samples import PageRanks
from asterism_model.schema import EdgeType, NodeType, Schema
from asterism_proto.v1 import common_pb2 as common_pb
from graphd.operators import pagerank
from graphd.operators.pagerank import PagerankParams
from graphd.operators.request_context import RequestContext
from storaged import sampling as draw
from storaged.sampling import pagerank as ranking

N = 60


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[asterism.Client]:
    with asterism.open(tmp_path_factory.mktemp("pagerank")) as opened:
        yield opened


def weighted_pairs() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return distinct pairs of nodes and a weight for each; the last five nodes are isolated."""
    rng = np.random.default_rng(11)
    pairs = np.unique(np.sort(rng.integers(0, N - 5, (170, 2)), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    return pairs[:, 0], pairs[:, 1], rng.integers(1, 9, len(pairs)).astype(np.float64)


def weight_matrix(*, symmetric: bool, uniform: bool = False) -> np.ndarray:
    out = np.zeros((N, N))
    a, b, w = weighted_pairs()
    np.add.at(out, (a, b), 1.0 if uniform else w)
    return out + out.T if symmetric else out


@pytest.fixture(scope="module")
def graph(client: asterism.Client) -> Graph:
    """Return a graph with edges `to` and reverse edges `back` of the same weights.

    The weight table `halved` holds half of each weight.
    """
    edge = {"weighted": True, "tables": {"halved": "weight / 2"}}
    client.create_space(
        "knit",
        {
            "parts": 4,
            "direction": "both",
            "nodes": {"n": {}},
            "edges": {"n:to:n": edge, "n:back:n": edge},
        },
    )
    graph = client.graph("knit")
    graph.upsert_nodes(np.arange(N), "n")
    a, b, w = weighted_pairs()
    graph.upsert_edges(a, b, "to", weights=w)
    graph.upsert_edges(b, a, "back", weights=w)
    graph.build()
    return graph


def score_matrix(ranks: PageRanks) -> np.ndarray:
    """Return the scores as a matrix of shape (m, N)."""
    out = np.zeros((len(ranks), N))
    rows, columns = np.nonzero(ranks.mask)
    out[rows, ranks.nodes[rows, columns]] = ranks.scores[rows, columns]
    return out


@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize(
    ("alpha", "epsilon"), [(0.15, 1e-3), (0.15, 1e-6), (0.5, 0.01), (0.9, 0.5)]
)
def test_symmetric_scores_are_within_epsilon_degrees(
    graph: Graph, uniform: bool, alpha: float, epsilon: float
) -> None:
    ranks = graph.personalized_pagerank(
        np.arange(N), None, N, alpha=alpha, epsilon=epsilon, weighted=not uniform
    )
    matrix = weight_matrix(symmetric=True, uniform=uniform)
    missing = dense_pagerank(matrix, alpha) - score_matrix(ranks)
    assert missing.min() >= -1e-12
    assert (missing <= epsilon * matrix.sum(axis=1) + 1e-12).all(), (
        "the bound of Andersen, Chung & Lang"
    )
    assert np.allclose(missing.sum(axis=1), ranks.residuals, rtol=0, atol=1e-12), (
        "a residual is all that is missing"
    )
    assert (np.diff(ranks.scores, axis=1) <= 0).all()
    assert (ranks.residuals <= epsilon * matrix.sum()).all()


@pytest.mark.parametrize("direction", ["out", "in"])
def test_directed_scores_are_within_the_residuals(graph: Graph, direction: str) -> None:
    ranks = graph.personalized_pagerank(np.arange(N), "to", N, epsilon=2e-3, direction=direction)
    matrix = (
        weight_matrix(symmetric=False) if direction == "out" else weight_matrix(symmetric=False).T
    )
    missing = dense_pagerank(matrix, 0.15) - score_matrix(ranks)
    assert missing.min() >= -1e-12
    assert (missing <= ranks.residuals[:, None] + 1e-12).all()
    assert np.allclose(
        score_matrix(ranks),
        [pushed_pagerank(matrix, start, 0.15, 2e-3)[0] for start in range(N)],
        rtol=0,
        atol=1e-12,
    )
    assert ranks.nodes[N - 1].tolist() == [N - 1] + [-1] * (N - 1), (
        "a walk from a dead end ends there"
    )
    assert ranks.scores[N - 1, 0] == 1.0


def test_smaller_k_is_a_prefix_and_rows_are_independent(graph: Graph) -> None:
    full = graph.personalized_pagerank(np.arange(N), None, 12, epsilon=1e-4)
    subset = graph.personalized_pagerank([7, 3, 7], None, 5, epsilon=1e-4)
    assert np.array_equal(subset.nodes, full.nodes[[7, 3, 7], :5])
    assert np.array_equal(subset.scores, full.scores[[7, 3, 7], :5])
    assert np.array_equal(subset.residuals, full.residuals[[7, 3, 7]])
    assert (full.types[full.mask] == 0).all()


def test_named_weights_and_filters_are_used(graph: Graph) -> None:
    matrix = np.where(weight_matrix(symmetric=False) > 3, weight_matrix(symmetric=False), 0.0)
    ranks = graph.personalized_pagerank(
        np.arange(N), "to", N, epsilon=1e-9, where="weight > 3", weight="halved"
    )
    assert np.allclose(score_matrix(ranks), dense_pagerank(matrix, 0.15), rtol=0, atol=1e-6)
    tight = graph.personalized_pagerank([2], "to", N, epsilon=4e-3, weight="halved")
    assert np.allclose(
        score_matrix(tight)[0],
        pushed_pagerank(weight_matrix(symmetric=False) / 2, 2, 0.15, 4e-3)[0],
        rtol=0,
        atol=1e-12,
    )


def test_unknown_starts_have_empty_rows(graph: Graph) -> None:
    ranks = graph.personalized_pagerank([-1, 10**9], None, 3)
    assert (ranks.nodes == -1).all()
    assert ranks.residuals.tolist() == [0.0, 0.0]
    assert graph.personalized_pagerank([], None, 3).nodes.shape == (0, 3)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda g: g.personalized_pagerank([1], None, 0), "k=0"),
        (lambda g: g.personalized_pagerank([1], None, 3, alpha=0), "alpha=0"),
        (lambda g: g.personalized_pagerank([1], None, 3, alpha=1.5), "alpha=1.5"),
        (lambda g: g.personalized_pagerank([1], None, 3, epsilon=0), "epsilon=0"),
        (lambda g: g.personalized_pagerank([1], None, 3, epsilon="x"), "epsilon='x'"),
        (lambda g: g.personalized_pagerank([1], [], 3), r"etypes=\[\]"),
        (lambda g: g.personalized_pagerank([1] * 1000, None, 10_000), "do not fit into one reply"),
        (lambda g: g.personalized_pagerank([1], None, 1 << 21), "expected 1 to 1048576"),
    ],
)
def test_invalid_requests_are_refused_with_the_value(
    graph: Graph, call: Callable[[Graph], Any], said: str
) -> None:
    with pytest.raises(asterism.InvalidRequest, match=said):
        call(graph)


PARAMS = PagerankParams(
    edge_types=(0, 1), direction=common_pb.OUT, uniform=False, alpha=0.2, epsilon=1e-4, top_k=4
)


class RecordingDispatcher:
    """Dispatcher that records the requested node ids."""

    def __init__(self, dispatcher: Any) -> None:
        self._dispatcher = dispatcher
        self.requested_ids: dict[str, list[int]] = {}

    def dispatch(
        self, name: str, space: Any, requests: Sequence[tuple[int, Any]], call: Any
    ) -> Any:
        for _, request in requests:
            self.requested_ids.setdefault(name, []).extend(request.array("ids", "int64").tolist())
        return self._dispatcher.dispatch(name, space, requests, call)


def test_each_node_is_read_once_over_all_rounds_and_starts() -> None:
    base = request_context(small_graph(), 3)
    recorder: Any = RecordingDispatcher(base.dispatcher)
    pagerank.pagerank(
        RequestContext(space=base.space, version=base.version, dispatcher=recorder, call=base.call),
        PARAMS,
        np.arange(4),
        0,
        None,
    )
    assert sorted(recorder.requested_ids["read_neighbors"]) == [0, 1, 2], "3 leads nowhere"
    assert sorted(recorder.requested_ids["read_degrees"]) == [0, 1, 2, 3]


def array_bytes(arrays: Mapping[str, np.ndarray]) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in arrays.items()}


def test_chunking_keeps_scores_and_limits_name_their_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    starts = np.array([0, 1, 2, 3, 0])
    at_once = pagerank.pagerank(request_context(small_graph(), 3), PARAMS, starts, 0, None)
    monkeypatch.setattr(pagerank, "_PIECE_EDGES", 2)
    monkeypatch.setattr(pagerank, "MAX_PAIRS", 7)  # less than two starts need
    in_groups = pagerank.pagerank(request_context(small_graph(), 3), PARAMS, starts, 0, None)
    assert array_bytes(in_groups) == array_bytes(at_once)
    monkeypatch.setattr(pagerank, "MAX_PAIRS", 3)
    with pytest.raises(
        asterism.InvalidRequest,
        match=r"nodes\[0\] = 0 reaches more than 3 nodes with epsilon 0.0001",
    ):
        pagerank.pagerank(request_context(small_graph(), 3), PARAMS, starts, 0, None)
    monkeypatch.setattr(pagerank, "MAX_PAIRS", 7)
    monkeypatch.setattr(pagerank, "MAX_EDGES", 5)
    with pytest.raises(
        asterism.InvalidRequest, match="more than 5 edges, the maximum of one request"
    ):
        pagerank.pagerank(request_context(small_graph(), 3), PARAMS, starts, 0, None)


def random_graph(nodes: int) -> draw.LocalVersion:
    """Return a graph of two node types with common ids and five edge types.

    One edge type has no weights. There are zero weights, hubs and dead ends.
    """
    rng = np.random.default_rng(nodes)
    relations = [
        ("n", "a", "n"),
        ("n", "b", "m"),
        ("m", "c", "n"),
        ("m", "d", "m"),
        ("n", "e", "n"),
    ]
    types = tuple(
        EdgeType(src_type=src, relation=name, dst_type=dst, weighted=name != "e")
        for src, name, dst in relations
    )
    schema = Schema(
        node_types=(NodeType(name="n"), NodeType(name="m")),
        edge_types=types,
        parts=3,
        direction="both",
    )
    edges = {}
    for edge in types:
        src, dst = (np.minimum(rng.zipf(1.3, 6 * nodes) - 1, nodes - 1) for _ in range(2))
        weights = rng.integers(0, 5, src.size).astype(np.float32) if edge.weighted else None
        edges[edge.name] = Edges(src=src, dst=dst, weights=weights)
    node_tables = {"n": Nodes(ids=np.arange(nodes)), "m": Nodes(ids=np.arange(0, 2 * nodes, 2))}
    return version_of(schema, node_tables, edges)


@pytest.mark.parametrize("direction", [common_pb.OUT, common_pb.IN])
@pytest.mark.parametrize("uniform", [False, True])
def test_single_host_gives_the_bytes_of_several_hosts(
    direction: common_pb.Direction, uniform: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = random_graph(2000)
    params = PagerankParams(
        edge_types=(3, 0, 1, 4, 2),
        direction=direction,
        uniform=uniform,
        alpha=0.2,
        epsilon=3e-6,
        top_k=40,
    )
    starts, types = np.array([0, 1, 0, 7, 1999, -1, 5]), np.array([0, 1, 1, 0, 0, 0, -1], np.int32)
    several = array_bytes(pagerank.pagerank(request_context(version, 3), params, starts, -1, types))
    node_counts = []
    for capacity, piece in (
        (1 << 13, 1 << 22),
        (64, 1),
        (600, 50),
    ):  # hash tables grow, and with them the arrays that they index
        monkeypatch.setattr(ranking, "_FIRST_CAPACITY", capacity)
        monkeypatch.setattr(ranking, "_CHECKPOINT_EDGES", piece)
        ranks = pagerank.pagerank(request_context(version, 1), params, starts, -1, types)
        assert array_bytes(ranks) == several
        node_counts.append(int((ranks["ids"] >= 0).sum()))
    assert node_counts == [160] * 3, "four of the starts are nodes"


def test_single_host_enforces_limits_and_checks_deadlines(monkeypatch: pytest.MonkeyPatch) -> None:
    params = {
        "edge_types": (0, 1),
        "direction": 1,
        "uniform": False,
        "alpha": 0.2,
        "epsilon": 1e-4,
        "top": 4,
    }
    ids, kinds = np.array([3, 0]), np.zeros(2, np.int32)
    monkeypatch.setattr(ranking, "MAX_NODES", 3)
    with pytest.raises(
        asterism.InvalidRequest,
        match=r"nodes\[1\] = 0 reaches more than 3 nodes with epsilon 0.0001",
    ):
        draw.rank_nodes(small_graph(), ids=ids, kinds=kinds, checkpoint=lambda: None, **params)
    monkeypatch.setattr(ranking, "MAX_NODES", 1 << 22)
    monkeypatch.setattr(ranking, "_CHECKPOINT_EDGES", 1)
    checkpoints: list[int] = []
    draw.rank_nodes(
        small_graph(), ids=ids, kinds=kinds, checkpoint=lambda: checkpoints.append(1), **params
    )
    assert len(checkpoints) > 3
    for invalid in ({"alpha": 0.0}, {"epsilon": 0.0}, {"epsilon": float("nan")}, {"top": 0}):
        with pytest.raises(
            asterism.InvalidRequest, match="expected a probability above 0, and two numbers above 0"
        ):
            draw.rank_nodes(
                small_graph(), ids=ids, kinds=kinds, checkpoint=lambda: None, **(params | invalid)
            )
    with pytest.raises(asterism.InvalidRequest, match="types"):
        draw.rank_nodes(small_graph(), ids=ids, kinds=kinds[:1], checkpoint=lambda: None, **params)
    parts = dict(list(small_graph().parts.items())[1:])
    with pytest.raises(asterism.Unavailable, match=r"part 0 .* belongs to another host"):
        draw.rank_nodes(
            replace(small_graph(), parts=parts),
            ids=ids,
            kinds=kinds,
            checkpoint=lambda: None,
            **params,
        )

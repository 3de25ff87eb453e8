"""Personalised PageRank: within its bounds of what linear algebra gives, along edge types, directions, weights and conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.kit.images import Edges, Nodes, version_of
from tests.law.checks.hosts import sampling_of
from tests.law.checks.visits import dense, pushed, web

import asterism
from asterism import Graph
from asterism.records import PageRanks
from asterism_proto.schema import EdgeType, NodeType, Schema
from asterism_proto.v1 import common_pb2 as pb
from graphd import pagerank, sample
from graphd.pagerank import Ranking
from storaged import draw
from storaged.draw import ranking

N = 60


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[asterism.Client]:
    with asterism.open(tmp_path_factory.mktemp("pagerank")) as opened:
        yield opened


def joined() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs of nodes, each once, and a weight; the last five nodes are joined to nobody."""
    rng = np.random.default_rng(11)
    pairs = np.unique(np.sort(rng.integers(0, N - 5, (170, 2)), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    return pairs[:, 0], pairs[:, 1], rng.integers(1, 9, len(pairs)).astype(np.float64)


def weights(*, symmetric: bool, uniform: bool = False) -> np.ndarray:
    out = np.zeros((N, N))
    a, b, w = joined()
    np.add.at(out, (a, b), 1.0 if uniform else w)
    return out + out.T if symmetric else out


@pytest.fixture(scope="module")
def graph(client: asterism.Client) -> Graph:
    """Edges `to` one way and `back` the other, by the same weights; `halved` is half of each."""
    edge = {"weighted": True, "tables": {"halved": "weight / 2"}}
    client.create_space("knit", {"parts": 4, "direction": "both", "nodes": {"n": {}}, "edges": {"n:to:n": edge, "n:back:n": edge}})
    graph = client.graph("knit")
    graph.upsert_nodes(np.arange(N), "n")
    a, b, w = joined()
    graph.upsert_edges(a, b, "to", weights=w)
    graph.upsert_edges(b, a, "back", weights=w)
    graph.build()
    return graph


def laid(found: PageRanks) -> np.ndarray:
    """Scores [m, N]."""
    out = np.zeros((len(found), N))
    rows, places = np.nonzero(found.mask)
    out[rows, found.nodes[rows, places]] = found.scores[rows, places]
    return out


@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize(("alpha", "epsilon"), [(0.15, 1e-3), (0.15, 1e-6), (0.5, 0.01), (0.9, 0.5)])
def test_scores_of_a_graph_of_both_directions_are_within_epsilon_degrees(graph: Graph, uniform: bool, alpha: float, epsilon: float) -> None:
    found = graph.personalized_pagerank(np.arange(N), None, N, alpha=alpha, epsilon=epsilon, weighted=not uniform)
    matrix = weights(symmetric=True, uniform=uniform)
    short = dense(matrix, alpha) - laid(found)
    assert short.min() >= -1e-12
    assert (short <= epsilon * matrix.sum(axis=1) + 1e-12).all(), "the bound of Andersen, Chung & Lang"
    assert np.allclose(short.sum(axis=1), found.residuals, rtol=0, atol=1e-12), "a residual is all that is missing"
    assert (np.diff(found.scores, axis=1) <= 0).all()
    assert (found.residuals <= epsilon * matrix.sum()).all()


@pytest.mark.parametrize("direction", ["out", "in"])
def test_scores_along_one_direction_are_within_what_is_held_back(graph: Graph, direction: str) -> None:
    found = graph.personalized_pagerank(np.arange(N), "to", N, epsilon=2e-3, direction=direction)
    matrix = weights(symmetric=False) if direction == "out" else weights(symmetric=False).T
    short = dense(matrix, 0.15) - laid(found)
    assert short.min() >= -1e-12
    assert (short <= found.residuals[:, None] + 1e-12).all()
    assert np.allclose(laid(found), [pushed(matrix, start, 0.15, 2e-3)[0] for start in range(N)], rtol=0, atol=1e-12)
    assert found.nodes[N - 1].tolist() == [N - 1] + [-1] * (N - 1), "a walk from a dead end ends there"
    assert found.scores[N - 1, 0] == 1.0


def test_fewer_nodes_are_the_first_of_more_and_rows_do_not_depend_on_each_other(graph: Graph) -> None:
    whole = graph.personalized_pagerank(np.arange(N), None, 12, epsilon=1e-4)
    some = graph.personalized_pagerank([7, 3, 7], None, 5, epsilon=1e-4)
    assert np.array_equal(some.nodes, whole.nodes[[7, 3, 7], :5])
    assert np.array_equal(some.scores, whole.scores[[7, 3, 7], :5])
    assert np.array_equal(some.residuals, whole.residuals[[7, 3, 7]])
    assert (whole.types[whole.mask] == 0).all()


def test_weights_of_a_name_and_conditions_are_walked_by(graph: Graph) -> None:
    matrix = np.where(weights(symmetric=False) > 3, weights(symmetric=False), 0.0)
    found = graph.personalized_pagerank(np.arange(N), "to", N, epsilon=1e-9, where="weight > 3", weight="halved")
    assert np.allclose(laid(found), dense(matrix, 0.15), rtol=0, atol=1e-6)
    tight = graph.personalized_pagerank([2], "to", N, epsilon=4e-3, weight="halved")
    assert np.allclose(laid(tight)[0], pushed(weights(symmetric=False) / 2, 2, 0.15, 4e-3)[0], rtol=0, atol=1e-12)


def test_nobody_has_no_row(graph: Graph) -> None:
    found = graph.personalized_pagerank([-1, 10**9], None, 3)
    assert (found.nodes == -1).all()
    assert found.residuals.tolist() == [0.0, 0.0]
    assert graph.personalized_pagerank([], None, 3).nodes.shape == (0, 3)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda g: g.personalized_pagerank([1], None, 0), "k 0"),
        (lambda g: g.personalized_pagerank([1], None, 3, alpha=0), "alpha 0"),
        (lambda g: g.personalized_pagerank([1], None, 3, alpha=1.5), "alpha 1.5"),
        (lambda g: g.personalized_pagerank([1], None, 3, epsilon=0), "epsilon 0"),
        (lambda g: g.personalized_pagerank([1], None, 3, epsilon="x"), "epsilon 'x'"),
        (lambda g: g.personalized_pagerank([1], [], 3), r"etypes \[\]"),
        (lambda g: g.personalized_pagerank([1] * 1000, None, 10_000), "do not fit into one reply"),
        (lambda g: g.personalized_pagerank([1], None, 1 << 21), "expected 1 to 1048576"),
    ],
)
def test_what_can_not_be_ranked_is_refused_with_its_value(graph: Graph, call: Callable[[Graph], Any], said: str) -> None:
    with pytest.raises(asterism.InvalidRequest, match=said):
        call(graph)


HOW = Ranking(edge_types=(0, 1), direction=pb.OUT, uniform=False, alpha=0.2, epsilon=1e-4, top=4)


class _Told:
    """Notes which nodes are asked about."""

    def __init__(self, asking: Any) -> None:
        self._asking = asking
        self.asked: dict[str, list[int]] = {}

    def ask(self, name: str, space: Any, requests: Sequence[tuple[int, Any]], call: Any) -> Any:
        for _, request in requests:
            self.asked.setdefault(name, []).extend(request.array("ids", "int64").tolist())
        return self._asking.ask(name, space, requests, call)


def test_each_node_is_read_once_however_many_rounds_and_starts_there_are() -> None:
    around = sampling_of(web(), 3)
    told: Any = _Told(around.fanout)
    pagerank.pagerank(sample.Sampling(space=around.space, version=around.version, fanout=told, call=around.call), HOW, np.arange(4), 0, None)
    assert sorted(told.asked["read_neighbors"]) == [0, 1, 2], "3 leads nowhere"
    assert sorted(told.asked["read_degrees"]) == [0, 1, 2, 3]


def _bytes(found: Mapping[str, np.ndarray]) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in found.items()}


def test_small_pieces_and_groups_give_the_same_and_limits_say_which_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    starts = np.array([0, 1, 2, 3, 0])
    whole = pagerank.pagerank(sampling_of(web(), 3), HOW, starts, 0, None)
    monkeypatch.setattr(pagerank, "_PIECE_EDGES", 2)
    monkeypatch.setattr(pagerank, "MOST_PAIRS", 7)  # less than two starts need
    apart = pagerank.pagerank(sampling_of(web(), 3), HOW, starts, 0, None)
    assert _bytes(apart) == _bytes(whole)
    monkeypatch.setattr(pagerank, "MOST_PAIRS", 3)
    with pytest.raises(asterism.InvalidRequest, match=r"nodes\[0\] = 0 comes to more than 3 nodes with epsilon 0.0001"):
        pagerank.pagerank(sampling_of(web(), 3), HOW, starts, 0, None)
    monkeypatch.setattr(pagerank, "MOST_PAIRS", 7)
    monkeypatch.setattr(pagerank, "MOST_EDGES", 5)
    with pytest.raises(asterism.InvalidRequest, match="more than 5 edges, the most that one request reads"):
        pagerank.pagerank(sampling_of(web(), 3), HOW, starts, 0, None)


def _knit(nodes: int) -> draw.Version:
    """Two node types with ids in common and five edge types between them, one without weights, with zeros, hubs and dead ends."""
    rng = np.random.default_rng(nodes)
    ends = [("n", "a", "n"), ("n", "b", "m"), ("m", "c", "n"), ("m", "d", "m"), ("n", "e", "n")]
    types = tuple(EdgeType(src_type=src, relation=name, dst_type=dst, weighted=name != "e") for src, name, dst in ends)
    schema = Schema(node_types=(NodeType(name="n"), NodeType(name="m")), edge_types=types, parts=3, direction="both")
    edges = {}
    for edge in types:
        src, dst = (np.minimum(rng.zipf(1.3, 6 * nodes) - 1, nodes - 1) for _ in range(2))
        weights = rng.integers(0, 5, src.size).astype(np.float32) if edge.weighted else None
        edges[edge.name] = Edges(src=src, dst=dst, weights=weights)
    sides = {"n": Nodes(ids=np.arange(nodes)), "m": Nodes(ids=np.arange(0, 2 * nodes, 2))}
    return version_of(schema, sides, edges)


@pytest.mark.parametrize("direction", [pb.OUT, pb.IN])
@pytest.mark.parametrize("uniform", [False, True])
def test_one_host_of_all_parts_gives_the_bytes_of_several(direction: pb.Direction, uniform: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    version = _knit(2000)
    how = Ranking(edge_types=(3, 0, 1, 4, 2), direction=direction, uniform=uniform, alpha=0.2, epsilon=3e-6, top=40)
    starts, types = np.array([0, 1, 0, 7, 1999, -1, 5]), np.array([0, 1, 1, 0, 0, 0, -1], np.int32)
    several = _bytes(pagerank.pagerank(sampling_of(version, 3), how, starts, -1, types))
    rooms = []
    for room, piece in ((1 << 13, 1 << 22), (64, 1), (600, 50)):  # tables of numbers grow, and so does what they number
        monkeypatch.setattr(ranking, "_ROOM", room)
        monkeypatch.setattr(ranking, "_PIECE", piece)
        found = pagerank.pagerank(sampling_of(version, 1), how, starts, -1, types)
        assert _bytes(found) == several
        rooms.append(int((found["ids"] >= 0).sum()))
    assert rooms == [160] * 3, "four of the starts are nodes"


def test_one_host_refuses_what_is_too_much_and_looks_at_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    how = {"edge_types": (0, 1), "direction": 1, "uniform": False, "alpha": 0.2, "epsilon": 1e-4, "top": 4}
    ids, kinds = np.array([3, 0]), np.zeros(2, np.int32)
    monkeypatch.setattr(ranking, "MOST_NODES", 3)
    with pytest.raises(asterism.InvalidRequest, match=r"nodes\[1\] = 0 comes to more than 3 nodes with epsilon 0.0001"):
        draw.rank(web(), ids=ids, kinds=kinds, checkpoint=lambda: None, **how)
    monkeypatch.setattr(ranking, "MOST_NODES", 1 << 22)
    monkeypatch.setattr(ranking, "_PIECE", 1)
    looked: list[int] = []
    draw.rank(web(), ids=ids, kinds=kinds, checkpoint=lambda: looked.append(1), **how)
    assert len(looked) > 3
    for wrong in ({"alpha": 0.0}, {"epsilon": 0.0}, {"epsilon": float("nan")}, {"top": 0}):
        with pytest.raises(asterism.InvalidRequest, match="expected a probability above 0, and numbers above 0"):
            draw.rank(web(), ids=ids, kinds=kinds, checkpoint=lambda: None, **(how | wrong))
    with pytest.raises(asterism.InvalidRequest, match="types"):
        draw.rank(web(), ids=ids, kinds=kinds[:1], checkpoint=lambda: None, **how)
    parts = dict(list(web().parts.items())[1:])
    with pytest.raises(asterism.Unavailable, match=r"part 0 .* is not held here"):
        draw.rank(replace(web(), parts=parts), ids=ids, kinds=kinds, checkpoint=lambda: None, **how)

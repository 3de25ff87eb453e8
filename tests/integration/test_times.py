"""Neighborhoods until times, through the client: against the edges that were written, through changes of the graph, and every refusal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tests.kit import cases
from tests.kit.waiting import HANG_S

import asterism
from asterism import Graph

NODES, EDGES = 40, 900
RNG = np.random.default_rng(4)
SRC, DST = RNG.integers(0, NODES, (2, EDGES))
WHEN = RNG.integers(0, 9, EDGES)
WEIGHTS = RNG.choice(np.array([0, 1, 5], np.float32), EDGES)
SEEN_AT = RNG.integers(-1, 10, NODES)
SCHEMA = {
    "parts": 3,
    "direction": "both",
    "nodes": {"n": {}},
    "edges": {
        "n:e:n": {"weighted": True, "features": {"when": "int32"}, "time": "when"},
        "n:f:n": {"features": {"when": "float32"}, "time": "when"},
        "n:u:n": {"edges": "unique", "features": {"when": "int64"}, "time": "when"},
        "n:z:n": {},
    },
}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    with asterism.open(tmp_path_factory.mktemp("times")) as client:
        client.create_space("s", SCHEMA)
        graph = client.graph("s")
        graph.upsert_nodes(np.arange(NODES), "n")
        graph.upsert_edges(SRC, DST, "e", weights=WEIGHTS, features={"when": WHEN})
        graph.upsert_edges(SRC, DST, "f", features={"when": WHEN / 4})
        graph.upsert_edges(SRC[:50], DST[:50], "z")
        graph.build(timeout_s=HANG_S)
        yield graph


@pytest.mark.parametrize("direction", ["out", "in"])
@pytest.mark.parametrize("strict", [False, True])
def test_what_comes_back_is_what_was_written_until_each_time(graph: Graph, direction: str, strict: bool) -> None:
    near, far = (SRC, DST) if direction == "out" else (DST, SRC)
    kinds: list[dict[str, Any]] = [{}, {"weighted": False}, {"replace": False}, {"replace": False, "weighted": False}]
    for how in (*kinds, {"replace": False, "strategy": "last"}):
        asked = {"times": SEEN_AT, "strict": strict, "direction": direction, "edge_times": True, "edge_ids": True}
        found = graph.sample_neighbors(np.arange(NODES), "e", 6, **asked, **how)
        assert found.times is not None
        assert found.edge_ids is not None
        assert found.weights is not None
        for node in range(NODES):
            seen = np.flatnonzero((near == node) & (SEEN_AT[node] > WHEN if strict else SEEN_AT[node] >= WHEN))
            mine = found.mask[node]
            edges = found.edge_ids[node][mine]
            assert set(edges) <= set(seen)
            assert (far[edges].tolist(), WHEN[edges].tolist()) == (found.nodes[node][mine].tolist(), found.times[node][mine].tolist())
            assert WEIGHTS[edges].tolist() == found.weights[node][mine].tolist()
            assert (found.times[node][~mine] == 0).all()
            drawable = seen if "strategy" in how or not how.get("weighted", True) else seen[WEIGHTS[seen] > 0]
            assert mine.sum() == (min(6, len(drawable)) if "replace" in how else 6 * (len(drawable) > 0))
            if "strategy" in how:
                assert edges.tolist() == sorted(seen, key=lambda edge: (WHEN[edge], far[edge], edge))[::-1][:6]


def test_times_of_floats_and_whole_numbers_are_compared_as_numbers(graph: Graph) -> None:
    nodes = np.arange(NODES)
    whole = graph.sample_neighbors(nodes, "f", 400, weighted=False, replace=False, times=np.ones(NODES, np.uint8), edge_times=True)
    parts = graph.sample_neighbors(nodes, "f", 400, weighted=False, replace=False, times=np.full(NODES, 1.24), edge_times=True)
    assert whole.times is not None
    assert whole.times.dtype == np.float64
    assert cases.digest(whole.nodes) == cases.digest(parts.nodes)
    assert (whole.mask.sum(), whole.times.max()) == (int((WHEN <= 4).sum()), 1.0)
    half = graph.sample_neighbors(nodes, "e", 400, weighted=False, replace=False, times=np.full(NODES, 3.5), strict=True)
    assert half.mask.sum() == int((WHEN <= 3).sum())
    everything = graph.sample_neighbors(nodes, "e", 400, weighted=False, replace=False, times=np.full(NODES, np.inf))
    assert everything.mask.sum() == EDGES
    assert not graph.sample_neighbors([0, -1, 10**9], "e", 3, times=[-np.inf, 5.0, 5.0]).mask.any()
    assert graph.sample_neighbors([], "e", 3, times=[]).nodes.shape == (0, 3)


def test_a_subgraph_follows_types_without_a_time_whole(graph: Graph) -> None:
    found = graph.sample_subgraph([3, 3, 7], [-1, -1], times=[2, 8, 2], disjoint=True, edge_times=True, direction="in")
    assert found.times is not None
    assert found.batch is not None
    assert found.edge_ids is not None
    limits = np.array([2, 8, 2])[found.batch["n"]]
    assert sorted(found.times) == ["n:e:n", "n:f:n", "n:u:n"]
    for name, times in (("n:e:n", WHEN), ("n:f:n", WHEN / 4)):
        edges, cols = found.edge_ids[name], found.col[name]
        assert found.times[name].tolist() == times[edges].tolist()
        gone_on = np.flatnonzero(np.arange(len(limits)) < sum(found.num_sampled_nodes["n"][:2]))
        expected = [int(((found.nodes["n"][at] == DST) & (times <= limits[at])).sum()) for at in gone_on]
        assert np.bincount(cols, minlength=len(limits))[gone_on].tolist() == expected
    gone_on = np.arange(sum(found.num_sampled_nodes["n"][:2]))
    assert len(found.edge_ids["n:z:n"]) == sum(int((DST[:50] == found.nodes["n"][at]).sum()) for at in gone_on)


def test_a_fanout_sees_what_its_starts_do_and_conditions_leave_fewer(graph: Graph) -> None:
    nodes, hops = np.arange(NODES), [30, 40]
    for where, left in (("", np.ones(EDGES, np.bool_)), ("weight > 0 and when > 1", (WEIGHTS > 0) & (WHEN > 1))):
        asked: dict[str, Any] = {"weighted": False, "replace": False, "times": SEEN_AT, "edge_times": True, "edge_ids": True, "where": where}
        found = graph.sample_fanout(nodes, ["e", "e"], hops, **asked)
        starts, paths = nodes, np.arange(NODES)
        for hop, count in zip(found.hops, hops, strict=True):
            assert hop.edge_ids is not None
            assert hop.times is not None
            drawn = hop.edge_ids.reshape(-1, count)
            for node, path, edges in zip(starts.tolist(), paths.tolist(), drawn, strict=True):
                seen = np.flatnonzero((node == SRC) & (SEEN_AT[path] >= WHEN) & left)
                assert sorted(edges[edges >= 0].tolist()) == seen.tolist()
            assert np.array_equal(hop.times, np.where(hop.edge_ids >= 0, WHEN[hop.edge_ids], 0))
            starts, paths = hop.nodes, np.repeat(paths, count)
        again = graph.replay(found.token, nodes, times=SEEN_AT)
        assert cases.digest(again.hops[1].nodes) == cases.digest(found.hops[1].nodes)
    mixed = graph.sample_fanout(nodes, ["e", "z"], [3, 3], weighted=False, times=SEEN_AT, edge_times=True)
    assert mixed.hops[0].times is not None
    assert mixed.hops[1].times is None
    assert (mixed.hops[1].nodes >= 0).any()
    assert graph.explain.sample_fanout([1, 2], ["e"], [3], times=[4, 5]).shares == ()


def test_times_stay_right_through_upserts_deletes_and_builds(tmp_path_factory: pytest.TempPathFactory) -> None:
    with asterism.open(tmp_path_factory.mktemp("changed")) as client:
        client.create_space("s", SCHEMA)
        graph = client.graph("s")
        graph.upsert_nodes(np.arange(4), "n")
        graph.upsert_edges([0, 0, 0], [1, 2, 3], "u", features={"when": [5, 6, 7]})
        graph.build(timeout_s=HANG_S)

        def seen(time: int, direction: str = "out", node: int = 0) -> list[tuple[int, int]]:
            kept = {"times": [time], "replace": False, "strategy": "last", "edge_times": True, "direction": direction}
            found = graph.sample_neighbors([node], "u", 5, **kept)  # type: ignore[arg-type]  # a plain dict of arguments
            assert found.times is not None
            return list(zip(found.nodes[found.mask].tolist(), found.times[found.mask].tolist(), strict=True))

        assert seen(6) == [(2, 6), (1, 5)]
        graph.upsert_edges([0], [2], "u", features={"when": [1]})
        graph.upsert_edges([0], [1], "u")
        graph.delete_edges([0], [3], "u")
        graph.build(timeout_s=HANG_S)
        assert seen(9) == [(2, 1), (1, 0)]
        assert seen(9, "in", 2) == [(0, 1)]
        assert seen(0) == [(1, 0)]
        assert seen(9, "in", 3) == []
        graph.delete_nodes([2], "n")
        graph.build(timeout_s=HANG_S)
        assert seen(9) == [(1, 0)]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda g: g.sample_neighbors([1], "z", 2, times=[1]), "times with edge types n:z:n, which have none"),
        (lambda g: g.sample_neighbors([1], ["e", "f"], 2, times=[1]), "times of n:e:n, n:f:n are whole numbers and floats"),
        (lambda g: g.sample_neighbors([1], "e", 2, times=[1, 2]), "times has 2 entries for 1 rows"),
        (lambda g: g.sample_neighbors([1], "e", 2, times=[np.nan]), r"times\[0\] = nan"),
        (lambda g: g.sample_neighbors([1], "e", 2, times=["now"]), "times: expected numbers"),
        (lambda g: g.sample_neighbors([1], "e", 2, times=[1], strategy="last"), "the last neighbors with replacement"),
        (lambda g: g.sample_neighbors([1], "e", 2, times=[1], strategy="newest"), "strategy 'newest': expected 'uniform' or 'last'"),
        (lambda g: g.sample_neighbors([1], "e", 2, times=[1], probabilities=True), "probabilities of neighbors until times are not served"),
        (lambda g: g.sample_fanout([1], ["e", "z"], [2, 2], times=[1], probabilities=True), "probabilities of neighbors until times are not served"),
        (lambda g: g.sample_fanout([1], ["e", ["e", "z"]], [2, 2], times=[1]), "times with edge types n:z:n, which have none"),
        (lambda g: g.sample_fanout([1], ["z", "z"], [2, 2], times=[1]), "times with edge types n:z:n, which have none"),
        (lambda g: g.sample_fanout([1], ["z", "z"], [2, 2], strategy="last"), "strategy='last', .* without times"),
        (lambda g: g.sample_fanout([1], ["e"], [2], times=[1, 2]), "times has 2 entries for 1 rows"),
        (lambda g: g.sample_neighbors([1], "e", 2, strict=True), "strict=True, .* without times"),
        (lambda g: g.sample_subgraph([1], [2], "e", times=[1]), "sample with disjoint=True"),
        (lambda g: g.sample_subgraph([1], [2], "z", times=[1], disjoint=True), "none of them has times"),
        (lambda g: g.sample_subgraph([1], [2], "e", edge_times=True), "edge_times=True without times"),
        (lambda g: g.replay(g.sample_neighbors([1], "e", 2, times=[1]).token, [1]), "times=None: the call that the token is of had them"),
        (lambda g: g.replay(g.sample_neighbors([1], "e", 2).token, [1], times=[1]), "times=given: the call that the token is of had none"),
        (lambda g: g.replay(g.sample_neighbors([1], "e", 2, times=[1]).token, [1], times=[2]), "had others, or of other types or times"),
        (lambda g: g.upsert_edges([1], [2], "f", features={"when": [np.nan]}), "a time is a number"),
    ],
)
def test_what_is_not_served_or_makes_no_sense_is_refused(graph: Graph, call: Callable[[Graph], Any], said: str) -> None:
    with pytest.raises(asterism.InvalidRequest, match=said):
        call(graph)


def test_a_call_until_times_is_explained_without_shares(graph: Graph) -> None:
    told = graph.explain.sample_neighbors([1, 2], "e", 3, times=[4, 5])
    assert told.shares == ()
    assert [asked.method for asked in told.asked] == ["draw_neighbors"]

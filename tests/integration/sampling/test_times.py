"""Temporal neighborhoods through the client, compared with the written edges.

Tests cover changes of the graph and every error.
"""

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
def test_neighbors_match_edges_written_until_each_time(
    graph: Graph, direction: str, strict: bool
) -> None:
    sources, targets = (SRC, DST) if direction == "out" else (DST, SRC)
    variants: list[dict[str, Any]] = [
        {},
        {"weighted": False},
        {"replace": False},
        {"replace": False, "weighted": False},
    ]
    for options in (*variants, {"replace": False, "strategy": "last"}):
        arguments = {
            "times": SEEN_AT,
            "strict": strict,
            "direction": direction,
            "edge_times": True,
            "edge_ids": True,
        }
        sample = graph.sample_neighbors(np.arange(NODES), "e", 6, **arguments, **options)
        assert sample.times is not None
        assert sample.edge_ids is not None
        assert sample.weights is not None
        for node in range(NODES):
            eligible = np.flatnonzero(
                (sources == node) & (SEEN_AT[node] > WHEN if strict else SEEN_AT[node] >= WHEN)
            )
            row_mask = sample.mask[node]
            edges = sample.edge_ids[node][row_mask]
            assert set(edges) <= set(eligible)
            assert (targets[edges].tolist(), WHEN[edges].tolist()) == (
                sample.nodes[node][row_mask].tolist(),
                sample.times[node][row_mask].tolist(),
            )
            assert WEIGHTS[edges].tolist() == sample.weights[node][row_mask].tolist()
            assert (sample.times[node][~row_mask] == 0).all()
            drawable = (
                eligible
                if "strategy" in options or not options.get("weighted", True)
                else eligible[WEIGHTS[eligible] > 0]
            )
            assert row_mask.sum() == (
                min(6, len(drawable)) if "replace" in options else 6 * (len(drawable) > 0)
            )
            if "strategy" in options:
                assert (
                    edges.tolist()
                    == sorted(eligible, key=lambda edge: (WHEN[edge], targets[edge], edge))[::-1][
                        :6
                    ]
                )


def test_float_and_integer_times_compare_as_numbers(graph: Graph) -> None:
    nodes = np.arange(NODES)
    by_integer = graph.sample_neighbors(
        nodes,
        "f",
        400,
        weighted=False,
        replace=False,
        times=np.ones(NODES, np.uint8),
        edge_times=True,
    )
    by_float = graph.sample_neighbors(
        nodes, "f", 400, weighted=False, replace=False, times=np.full(NODES, 1.24), edge_times=True
    )
    assert by_integer.times is not None
    assert by_integer.times.dtype == np.float64
    assert cases.digest(by_integer.nodes) == cases.digest(by_float.nodes)
    assert (by_integer.mask.sum(), by_integer.times.max()) == (int((WHEN <= 4).sum()), 1.0)
    half = graph.sample_neighbors(
        nodes, "e", 400, weighted=False, replace=False, times=np.full(NODES, 3.5), strict=True
    )
    assert half.mask.sum() == int((WHEN <= 3).sum())
    unlimited = graph.sample_neighbors(
        nodes, "e", 400, weighted=False, replace=False, times=np.full(NODES, np.inf)
    )
    assert unlimited.mask.sum() == EDGES
    assert not graph.sample_neighbors([0, -1, 10**9], "e", 3, times=[-np.inf, 5.0, 5.0]).mask.any()
    assert graph.sample_neighbors([], "e", 3, times=[]).nodes.shape == (0, 3)


def test_subgraph_takes_all_edges_of_types_without_times(graph: Graph) -> None:
    subgraph = graph.sample_subgraph(
        [3, 3, 7], [-1, -1], times=[2, 8, 2], disjoint=True, edge_times=True, direction="in"
    )
    assert subgraph.times is not None
    assert subgraph.batch is not None
    assert subgraph.edge_ids is not None
    limits = np.array([2, 8, 2])[subgraph.batch["n"]]
    assert sorted(subgraph.times) == ["n:e:n", "n:f:n", "n:u:n"]
    for name, times in (("n:e:n", WHEN), ("n:f:n", WHEN / 4)):
        edges, cols = subgraph.edge_ids[name], subgraph.col[name]
        assert subgraph.times[name].tolist() == times[edges].tolist()
        expanded = np.flatnonzero(np.arange(len(limits)) < sum(subgraph.num_sampled_nodes["n"][:2]))
        expected = [
            int(((subgraph.nodes["n"][node_index] == DST) & (times <= limits[node_index])).sum())
            for node_index in expanded
        ]
        assert np.bincount(cols, minlength=len(limits))[expanded].tolist() == expected
    expanded = np.arange(sum(subgraph.num_sampled_nodes["n"][:2]))
    assert len(subgraph.edge_ids["n:z:n"]) == sum(
        int((DST[:50] == subgraph.nodes["n"][node_index]).sum()) for node_index in expanded
    )


def test_fanout_inherits_start_times_and_applies_filters(graph: Graph) -> None:
    nodes, hops = np.arange(NODES), [30, 40]
    for where, passing in (
        ("", np.ones(EDGES, np.bool_)),
        ("weight > 0 and when > 1", (WEIGHTS > 0) & (WHEN > 1)),
    ):
        arguments: dict[str, Any] = {
            "weighted": False,
            "replace": False,
            "times": SEEN_AT,
            "edge_times": True,
            "edge_ids": True,
            "where": where,
        }
        fanout = graph.sample_fanout(nodes, ["e", "e"], hops, **arguments)
        starts, paths = nodes, np.arange(NODES)
        for hop, count in zip(fanout.hops, hops, strict=True):
            assert hop.edge_ids is not None
            assert hop.times is not None
            sampled = hop.edge_ids.reshape(-1, count)
            for node, path, edges in zip(starts.tolist(), paths.tolist(), sampled, strict=True):
                eligible = np.flatnonzero((node == SRC) & (SEEN_AT[path] >= WHEN) & passing)
                assert sorted(edges[edges >= 0].tolist()) == eligible.tolist()
            assert np.array_equal(hop.times, np.where(hop.edge_ids >= 0, WHEN[hop.edge_ids], 0))
            starts, paths = hop.nodes, np.repeat(paths, count)
        replayed = graph.replay(fanout.token, nodes, times=SEEN_AT)
        assert cases.digest(replayed.hops[1].nodes) == cases.digest(fanout.hops[1].nodes)
    mixed = graph.sample_fanout(
        nodes, ["e", "z"], [3, 3], weighted=False, times=SEEN_AT, edge_times=True
    )
    assert mixed.hops[0].times is not None
    assert mixed.hops[1].times is None
    assert (mixed.hops[1].nodes >= 0).any()
    assert graph.explain.sample_fanout([1, 2], ["e"], [3], times=[4, 5]).shares == ()


def test_times_stay_right_through_upserts_deletes_and_builds(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with asterism.open(tmp_path_factory.mktemp("changed")) as client:
        client.create_space("s", SCHEMA)
        graph = client.graph("s")
        graph.upsert_nodes(np.arange(4), "n")
        graph.upsert_edges([0, 0, 0], [1, 2, 3], "u", features={"when": [5, 6, 7]})
        graph.build(timeout_s=HANG_S)

        def visible_edges(
            time: int, direction: str = "out", node: int = 0
        ) -> list[tuple[int, int]]:
            arguments = {
                "times": [time],
                "replace": False,
                "strategy": "last",
                "edge_times": True,
                "direction": direction,
            }
            # The arguments are a dict of mixed types.
            sample = graph.sample_neighbors([node], "u", 5, **arguments)  # type: ignore[arg-type]
            assert sample.times is not None
            return list(
                zip(
                    sample.nodes[sample.mask].tolist(),
                    sample.times[sample.mask].tolist(),
                    strict=True,
                )
            )

        assert visible_edges(6) == [(2, 6), (1, 5)]
        graph.upsert_edges([0], [2], "u", features={"when": [1]})
        graph.upsert_edges([0], [1], "u")
        graph.delete_edges([0], [3], "u")
        graph.build(timeout_s=HANG_S)
        assert visible_edges(9) == [(2, 1), (1, 0)]
        assert visible_edges(9, "in", 2) == [(0, 1)]
        assert visible_edges(0) == [(1, 0)]
        assert visible_edges(9, "in", 3) == []
        graph.delete_nodes([2], "n")
        graph.build(timeout_s=HANG_S)
        assert visible_edges(9) == [(1, 0)]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda g: g.sample_neighbors([1], "z", 2, times=[1]),
            "times with edge types n:z:n: expected edge types with a time",
        ),
        (
            lambda g: g.sample_neighbors([1], ["e", "f"], 2, times=[1]),
            "times of n:e:n, n:f:n are integers and floats",
        ),
        (lambda g: g.sample_neighbors([1], "e", 2, times=[1, 2]), "times of length 2: expected 1"),
        (lambda g: g.sample_neighbors([1], "e", 2, times=[np.nan]), r"times\[0\]=nan"),
        (lambda g: g.sample_neighbors([1], "e", 2, times=["now"]), "expected 1 numbers"),
        (
            lambda g: g.sample_neighbors([1], "e", 2, times=[1], strategy="last"),
            "the last neighbors with replacement",
        ),
        (
            lambda g: g.sample_neighbors([1], "e", 2, times=[1], strategy="newest"),
            "strategy='newest': expected 'uniform' or 'last'",
        ),
        (
            lambda g: g.sample_neighbors([1], "e", 2, times=[1], probabilities=True),
            "temporal filters do not support probabilities of neighbors",
        ),
        (
            lambda g: g.sample_fanout([1], ["e", "z"], [2, 2], times=[1], probabilities=True),
            "temporal filters do not support probabilities of neighbors",
        ),
        (
            lambda g: g.sample_fanout([1], ["e", ["e", "z"]], [2, 2], times=[1]),
            "times with edge types n:z:n: expected edge types with a time",
        ),
        (
            lambda g: g.sample_fanout([1], ["z", "z"], [2, 2], times=[1]),
            "times with edge types n:z:n: expected edge types with a time",
        ),
        (
            lambda g: g.sample_fanout([1], ["z", "z"], [2, 2], strategy="last"),
            "times=None with .*strategy='last'",
        ),
        (
            lambda g: g.sample_fanout([1], ["e"], [2], times=[1, 2]),
            "times of length 2: expected 1",
        ),
        (lambda g: g.sample_neighbors([1], "e", 2, strict=True), "times=None with strict=True"),
        (lambda g: g.sample_subgraph([1], [2], "e", times=[1]), "use disjoint=True"),
        (
            lambda g: g.sample_subgraph([1], [2], "z", times=[1], disjoint=True),
            "none of them has times",
        ),
        (
            lambda g: g.sample_subgraph([1], [2], "e", edge_times=True),
            "times=None with .*edge_times=True",
        ),
        (
            lambda g: g.replay(g.sample_neighbors([1], "e", 2, times=[1]).token, [1]),
            "times=None: expected the times of the call",
        ),
        (
            lambda g: g.replay(g.sample_neighbors([1], "e", 2).token, [1], times=[1]),
            "times: expected None",
        ),
        (
            lambda g: g.replay(g.sample_neighbors([1], "e", 2, times=[1]).token, [1], times=[2]),
            "expected those of the call that the token belongs to",
        ),
        (
            lambda g: g.upsert_edges([1], [2], "f", features={"when": [np.nan]}),
            "nan: expected a number",
        ),
    ],
)
def test_unsupported_or_invalid_times_are_refused(
    graph: Graph, call: Callable[[Graph], Any], said: str
) -> None:
    with pytest.raises(asterism.InvalidRequest, match=said):
        call(graph)


def test_explain_with_times_has_no_shares(graph: Graph) -> None:
    explanation = graph.explain.sample_neighbors([1, 2], "e", 3, times=[4, 5])
    assert explanation.shares == ()
    assert [request.method for request in explanation.storage_requests] == ["draw_neighbors"]

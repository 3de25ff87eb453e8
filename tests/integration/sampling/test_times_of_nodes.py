"""Neighborhoods of nodes with times, through the client, compared with the written data.

Tests cover changes of the graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.kit.waiting import HANG_S

import asterism
from asterism import Graph

USERS, ITEMS, EDGES = 40, 30, 700
RNG = np.random.default_rng(14)
SRC, DST = RNG.integers(0, USERS, EDGES), RNG.integers(0, ITEMS, EDGES)
WHEN = RNG.integers(0, 9, EDGES)
JOINED, LISTED = RNG.integers(-3, 12, USERS), RNG.integers(-3, 12, ITEMS)
SCHEMA: dict[str, Any] = {
    "parts": 3,
    "direction": "both",
    "nodes": {
        "user": {"features": {"joined": "int32"}, "time": "joined"},
        "item": {"features": {"name": "bytes", "listed": "int8"}, "time": "listed"},
    },
    "edges": {
        "user:buys:item": {"weighted": True, "features": {"when": "int64"}, "time": "when"},
        "user:sees:item": {},
        "item:by:user": {"missing": "create"},
    },
}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    with asterism.open(tmp_path_factory.mktemp("times")) as client:
        client.create_space("s", SCHEMA)
        graph = client.graph("s")
        graph.upsert_nodes(np.arange(USERS), "user", features={"joined": JOINED})
        graph.upsert_nodes(np.arange(ITEMS), "item", features={"listed": LISTED})
        graph.upsert_edges(SRC, DST, "buys", weights=RNG.random(EDGES), features={"when": WHEN})
        graph.upsert_edges(SRC, DST, "sees")
        graph.build(timeout_s=HANG_S)
        yield graph


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("direction", ["out", "in"])
@pytest.mark.parametrize("etype", ["buys", "sees"])
def test_neighbors_and_edges_exist_by_the_given_time(
    graph: Graph, etype: str, direction: str, strict: bool
) -> None:
    sources, targets, node_times = (SRC, DST, LISTED) if direction == "out" else (DST, SRC, JOINED)
    exists_from = np.maximum(node_times[targets], WHEN) if etype == "buys" else node_times[targets]
    nodes = np.arange(sources.max() + 1)
    times = nodes % 14 - 2
    arguments: dict[str, Any] = {
        "times": times,
        "strict": strict,
        "direction": direction,
        "edge_times": True,
        "edge_ids": True,
        "replace": False,
    }
    for options in (
        {"weighted": False},
        {"strategy": "last"},
        {"weighted": etype == "buys", "n": 3},
    ):
        sample = graph.sample_neighbors(nodes, etype, **{"n": 60} | arguments | options)
        assert sample.edge_ids is not None
        assert sample.times is not None
        for node, time in zip(nodes.tolist(), times.tolist(), strict=True):
            eligible = np.flatnonzero(
                (sources == node) & ((exists_from < time) if strict else (exists_from <= time))
            )
            edges = sample.edge_ids[node][sample.mask[node]]
            assert set(edges) <= set(eligible)
            assert len(edges) == min(len(eligible), sample.nodes.shape[1])
            assert sample.times[node][sample.mask[node]].tolist() == exists_from[edges].tolist()
            if "strategy" in options:
                assert exists_from[edges].tolist() == sorted(exists_from[eligible])[::-1]


def test_trees_and_paths_exclude_later_nodes(graph: Graph) -> None:
    times = np.arange(USERS) % 14 - 2
    trees = graph.sample_subgraph(
        np.arange(USERS), [-1, -1], ["buys", "by"], ntype="user", times=times, disjoint=True
    )
    assert trees.batch is not None
    tree_index = trees.batch["item"]
    assert (LISTED[trees.nodes["item"]] <= times[tree_index]).all()
    assert len(trees.nodes["item"]) == sum(
        len(set(DST[(node == SRC) & (np.maximum(LISTED[DST], WHEN) <= time)].tolist()))
        for node, time in enumerate(times.tolist())
    )
    paths = graph.sample_fanout(
        np.arange(ITEMS), ["by", "sees"], [3, 2], times=np.zeros(ITEMS, np.int64), edge_times=True
    )
    assert paths.hops[1].nodes.size == 6 * ITEMS


def test_last_written_time_applies_after_next_build(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with asterism.open(tmp_path_factory.mktemp("changed")) as client:
        client.create_space("s", SCHEMA)
        graph = client.graph("s")
        graph.upsert_nodes([1], "user", features={"joined": [4]})
        graph.upsert_nodes([5, 6, 7], "item", features={"listed": [5, 6, 7]})
        graph.upsert_edges([1, 1, 1], [5, 6, 7], "sees")
        graph.upsert_edges([5], [9], "by")  # creates user 9, which has no time
        graph.build(timeout_s=HANG_S)

        def visible_nodes(
            time: int, node: int = 1, etype: str = "sees", direction: str = "out"
        ) -> list[int]:
            sample = graph.sample_neighbors(
                [node], etype, 9, times=[time], replace=False, weighted=False, direction=direction
            )
            return sorted(sample.nodes[sample.mask].tolist())

        assert [visible_nodes(time) for time in (4, 5, 6, 7)] == [[], [5], [5, 6], [5, 6, 7]]
        assert (visible_nodes(0, 5, "by"), visible_nodes(-1, 5, "by")) == ([9], [])
        assert (visible_nodes(3, 6, direction="in"), visible_nodes(4, 6, direction="in")) == (
            [],
            [1],
        )
        graph.upsert_nodes([6], "item", features={"listed": [2]})
        graph.upsert_nodes([5], "item", features={"name": ["five"]})  # its time stays
        graph.delete_nodes([7], "item")
        graph.build(timeout_s=HANG_S)
        assert [visible_nodes(time) for time in (1, 2, 4, 5, 9)] == [[], [6], [6], [5, 6], [5, 6]]
        graph.upsert_nodes([7], "item")  # comes back without a time
        graph.upsert_edges([1], [7], "sees")
        graph.build(timeout_s=HANG_S)
        assert visible_nodes(0) == [7]


def test_invalid_node_times_are_refused(tmp_path_factory: pytest.TempPathFactory) -> None:
    with asterism.open(tmp_path_factory.mktemp("kinds")) as client:
        kinds = {"user": {"features": {"joined": "float32"}, "time": "joined"}, "item": {}}
        client.create_space(
            "s", {"nodes": kinds, "edges": {"user:sees:item": {}, "item:by:user": {}}}
        )
        graph = client.graph("s")
        with pytest.raises(
            asterism.InvalidRequest, match=r"time 'joined'\[1\] ?= ?nan: expected a number"
        ):
            graph.upsert_nodes([1, 2], "user", features={"joined": [0, np.nan]})
        graph.upsert_nodes([1, 2], "user", features={"joined": [0, 0.5]})
        graph.build(timeout_s=HANG_S)
        with pytest.raises(
            asterism.InvalidRequest,
            match="times with edge types user:sees:item: expected edge types with a time",
        ):
            graph.sample_neighbors(
                [1], "sees", 2, times=[1]
            )  # users have times; the items at the remote end have none
        with pytest.raises(asterism.InvalidRequest, match="the last neighbors with replacement"):
            graph.sample_neighbors([1], "by", 2, times=[1], strategy="last")
        with pytest.raises(
            asterism.InvalidRequest,
            match="its time 'when' is int64, that of node type 'user' float32",
        ):
            client.create_space(
                "t",
                {"nodes": kinds, "edges": {"user:buys:item": SCHEMA["edges"]["user:buys:item"]}},
            )

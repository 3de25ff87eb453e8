"""Sampled subgraphs: node indices, hops, trees, and the sampling distribution."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.kit import cases
from tests.kit.cases_clusters import cases_cluster
from tests.kit.waiting import HANG_S

import asterism
from asterism import Graph
from asterism.records.samples import Subgraph

ALPHA = 1e-4
WRITES, CITES, BY = "person:writes:paper", "paper:cites:paper", "paper:by:person"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[asterism.Client]:
    with asterism.open(cases.copy_built_graph(tmp_path_factory.mktemp("subgraphs"))) as opened:
        yield opened


@pytest.fixture(scope="module")
def graph(client: asterism.Client) -> Graph:
    return client.graph("cases")


def edges_of(sub: Subgraph, name: str) -> list[tuple[int, int, int]]:
    """Return (source id, destination id, edge id) of each edge of a type."""
    src, _, dst = name.split(":")
    assert sub.edge_ids is not None
    rows, cols = sub.nodes[src][sub.row[name]], sub.nodes[dst][sub.col[name]]
    return list(zip(rows.tolist(), cols.tolist(), sub.edge_ids[name].tolist(), strict=True))


def assert_matches_definition(
    graph: Graph,
    sub: Subgraph,
    fanouts: dict[str, list[int]],
    *,
    direction: str,
    replace: bool,
    expand: str,
    weighted: bool,
) -> None:
    """Assert that a subgraph matches the definition.

    Checked are when each node is expanded, its number of edges, and the order of visited nodes.
    """
    edges = cases.edges()
    visited: dict[str, list[tuple[int, int]]] = {name: [] for name in sub.nodes}
    nodes = {
        name: [
            (int(b), int(i))
            for b, i in zip(sub.batch[name] if sub.batch else np.zeros(len(ids)), ids, strict=True)
        ]
        for name, ids in sub.nodes.items()
    }
    offsets = dict.fromkeys(fanouts, 0)
    for name in nodes:
        visited[name] = nodes[name][: sub.num_sampled_nodes[name][0]]
    frontier = {name: list(entries) for name, entries in visited.items()}
    for hop in range(len(next(iter(fanouts.values())))):
        before = {name: list(entries) for name, entries in visited.items()}
        for etype, counts in fanouts.items():
            src, relation, dst = etype.split(":")
            from_type, to_type = (src, dst) if direction == "out" else (dst, src)
            from_index, to_index = (sub.row, sub.col) if direction == "out" else (sub.col, sub.row)
            real_src, real_dst, real_weight = edges[relation]
            hop_slice = slice(offsets[etype], offsets[etype] + sub.num_sampled_edges[etype][hop])
            offsets[etype] = hop_slice.stop
            expected: list[tuple[int, int]] = []
            assert sub.edge_ids is not None
            eids = sub.edge_ids[etype][hop_slice]
            if len(eids):
                ends = (real_src, real_dst) if direction == "out" else (real_dst, real_src)
                assert np.array_equal(
                    ends[0][eids], sub.nodes[from_type][from_index[etype][hop_slice]]
                )
                assert np.array_equal(ends[1][eids], sub.nodes[to_type][to_index[etype][hop_slice]])
            observed = [nodes[from_type][i] for i in from_index[etype][hop_slice].tolist()]
            for tree, node in before[from_type] if expand == "every" else frontier[from_type]:
                ends = real_src if direction == "out" else real_dst
                slots = np.flatnonzero(
                    (ends == node) & ((real_weight > 0) | (not weighted) | (counts[hop] == -1))
                )
                n = (
                    len(slots)
                    if counts[hop] == -1
                    else min(counts[hop], len(slots))
                    if not replace
                    else counts[hop] * bool(len(slots))
                )
                expected += [(tree, node)] * n
                node_eids = eids[[i for i, one in enumerate(observed) if one == (tree, node)]]
                assert set(node_eids.tolist()) <= set(slots.tolist())
                assert replace or len(set(node_eids.tolist())) == len(node_eids) == n
            assert observed == expected
            for i in to_index[etype][hop_slice].tolist():
                if nodes[to_type][i] not in visited[to_type]:
                    visited[to_type].append(nodes[to_type][i])
        frontier = {name: visited[name][len(before[name]) :] for name in visited}
        for name, entries in frontier.items():
            assert sub.num_sampled_nodes[name][hop + 1] == len(entries)
    assert visited == nodes


@pytest.mark.parametrize("direction", ["out", "in"])
@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("expand", ["first", "every"])
@pytest.mark.parametrize("disjoint", [True, False])
def test_a_subgraph_is_what_its_definition_says(
    graph: Graph, direction: str, replace: bool, expand: str, disjoint: bool
) -> None:
    papers = np.array([3, 40, 3, 7, 88, -1])
    fanouts = {CITES: [3, 2, -1], BY: [2, 0, 1], WRITES: [1, 2, 2]}
    for weighted in (True, False):
        sub = graph.sample_subgraph(
            papers,
            fanouts,
            ntype="paper",
            weighted=weighted,
            replace=replace,
            direction=direction,
            disjoint=disjoint,
            expand=expand,
            seed=5,
        )
        assert_matches_definition(
            graph,
            sub,
            fanouts,
            direction=direction,
            replace=replace,
            expand=expand,
            weighted=weighted,
        )
        assert sub.seeds.tolist() == ([0, 1, 2, 3, 4, -1] if disjoint else [0, 1, 0, 2, 3, -1])
        assert sub.nodes["paper"][sub.seeds[:5]].tolist() == papers[:5].tolist()


def test_samples_of_a_node_do_not_depend_on_its_batch(graph: Graph) -> None:
    alone = graph.sample_subgraph([7], [4, 3], "cites", seed=9)
    batched = graph.sample_subgraph([50, 7, 20], [4, 3], "cites", seed=9)
    assert set(edges_of(alone, CITES)) <= set(edges_of(batched, CITES))
    trees = graph.sample_subgraph([50, 7, 20], [4, 3], "cites", disjoint=True, seed=9)
    assert trees.batch is not None
    other_trees = graph.sample_subgraph([11, 7], [4, 3], "cites", disjoint=True, seed=9)
    assert other_trees.batch is not None
    second = [one.batch["paper"][one.row[CITES]] == 1 for one in (trees, other_trees)]
    assert [e for e, is_own in zip(edges_of(trees, CITES), second[0], strict=True) if is_own] == [
        e for e, is_own in zip(edges_of(other_trees, CITES), second[1], strict=True) if is_own
    ]


def test_edge_types_sample_from_independent_streams(client: asterism.Client) -> None:
    client.create_space("twins", {"nodes": {"n": {}}, "edges": {"n:a:n": {}, "n:b:n": {}}})
    graph = client.graph("twins")
    graph.upsert_nodes(np.arange(2000), "n")
    src = np.repeat(np.arange(1000), 2)
    dst = np.tile([1000, 1001], 1000)
    for etype in ("a", "b"):
        graph.upsert_edges(src, dst, etype)
    graph.build()
    sub = graph.sample_subgraph(np.arange(1000), [1], ["a", "b"], weighted=False, seed=1)
    picks = [sub.nodes["n"][sub.col[f"n:{etype}:n"]] - 1000 for etype in ("a", "b")]
    assert stats.binomtest(int((picks[0] == picks[1]).sum()), 1000, 0.5).pvalue > ALPHA


def test_disjoint_trees_are_independent_weighted_samples(client: asterism.Client) -> None:
    client.create_space(
        "star", {"parts": 2, "nodes": {"n": {}}, "edges": {"n:to:n": {"weighted": True}}}
    )
    graph = client.graph("star")
    graph.upsert_nodes(np.arange(5), "n")
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    graph.upsert_edges([0] * 4, [1, 2, 3, 4], "to", weights=weights)
    graph.build()
    n = 30_000
    sub = graph.sample_subgraph(np.zeros(n, np.int64), [2], "to", disjoint=True, seed=3)
    pairs = sub.nodes["n"][sub.col["n:to:n"]].reshape(n, 2)
    p = weights / weights.sum()
    shares = {(a, b): p[a - 1] * p[b - 1] / (1 - p[a - 1]) for a, b in permutations(range(1, 5), 2)}
    counts = [int(((pairs[:, 0] == a) & (pairs[:, 1] == b)).sum()) for a, b in shares]
    assert sum(counts) == n
    assert stats.chisquare(counts, np.array(list(shares.values())) * n).pvalue > ALPHA
    first = pairs[:, 0]
    table = np.array(
        [[((first[:-1] == a) & (first[1:] == b)).sum() for b in range(1, 5)] for a in range(1, 5)]
    )
    assert stats.chisquare(table.ravel(), np.outer(p, p).ravel() * (n - 1)).pvalue > ALPHA


def test_invalid_arguments_are_refused_with_their_value(graph: Graph) -> None:
    for call, error, message in (
        (lambda: graph.sample_subgraph([1], [], "cites"), asterism.InvalidRequest, r"fanouts=\[\]"),
        (
            lambda: graph.sample_subgraph([1], [-2], "cites"),
            asterism.InvalidRequest,
            r"fanouts\[0\]=-2",
        ),
        (
            lambda: graph.sample_subgraph([1], {"cites": [1], "by": [1, 2]}),
            asterism.InvalidRequest,
            "equally many for each type",
        ),
        (
            lambda: graph.sample_subgraph([1], {"cites": [1]}, ["cites", "by"]),
            asterism.InvalidRequest,
            "expected a list of counts for each",
        ),
        (
            lambda: graph.sample_subgraph([1], [2], "cites", expand="all"),
            asterism.InvalidRequest,
            "expand='all'",
        ),
        (lambda: graph.sample_subgraph([1], [2], "eats"), asterism.NotFound, "'eats'"),
        (lambda: graph.sample_subgraph([1], [2]), asterism.InvalidRequest, "pass ntype"),
    ):
        with pytest.raises(error, match=message):
            call()  # type: ignore[no-untyped-call]
    assert graph.sample_subgraph([], [2], "cites").nodes["paper"].size == 0


def test_global_ids_need_no_node_types_for_seeds(client: asterism.Client) -> None:
    client.create_space(
        "global",
        {
            "ids": "global",
            "parts": 3,
            "nodes": {"a": {}, "b": {}},
            "edges": {"a:to:b": {}, "b:to:a": {}},
        },
    )
    graph = client.graph("global")
    graph.upsert_nodes([0, 2, 4], "a")
    graph.upsert_nodes([1, 3], "b")
    graph.upsert_edges([0, 2, 4], [1, 3, 1], "a:to:b")
    graph.upsert_edges([1, 3], [4, 0], "b:to:a")
    graph.build()
    sub = graph.sample_subgraph([3, 0, 99, 1, -1], [-1, -1], seed=1)
    assert sub.seeds.tolist() == [0, 0, -1, 1, -1]
    assert {name: ids.tolist() for name, ids in sub.nodes.items()} == {"a": [0, 4], "b": [3, 1]}
    assert sub.num_sampled_nodes == {"a": (1, 1, 0), "b": (2, 0, 0)}
    assert sorted(edges_of(sub, "b:to:a")) == [(1, 4, 0), (3, 0, 1)]
    assert sorted(edges_of(sub, "a:to:b")) == [(0, 1, 0), (4, 1, 2)]


@pytest.mark.parametrize(("storageds", "rounds"), [(1, 1), (3, 3)])
def test_hop_rounds_collapse_on_a_single_storaged(
    graph: Graph, storageds: int, rounds: int
) -> None:
    fanouts = {CITES: [3, 2, 2], BY: [2, 0, 1], WRITES: [1, 2, 2]}
    arguments: dict[str, Any] = {"ntype": "paper", "weights": True, "seed": 5}
    with cases_cluster(storageds, fast=False) as cluster:
        remote_graph = cluster.client().graph("cases")
        remote_graph.sample_subgraph([3], fanouts, **arguments)  # opens the version on every host

        def read_counters() -> dict[str, float]:
            with urllib.request.urlopen(
                f"http://{cluster['graphd-0'].http_address}/metrics", timeout=HANG_S
            ) as reply:
                lines = reply.read().decode().splitlines()
            counters = [
                line
                for line in lines
                if line.startswith(("asterism_storaged_rounds_total", "asterism_peer_bytes_total"))
            ]
            return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in counters}

        for disjoint in (False, True):
            before = read_counters()
            sample = remote_graph.sample_subgraph(
                [3, 40, 3, 7, 88, -1], fanouts, disjoint=disjoint, **arguments
            )
            after = read_counters()
            increases = {
                name: after[name] - before.get(name, 0.0)
                for name in after
                if after[name] != before.get(name)
            }
            assert sum(value for name, value in increases.items() if "rounds" in name) == rounds
            traffic = [
                value
                for name, value in increases.items()
                if "bytes" in name and "FindBinaryEndpoint" not in name
            ]
            assert len(traffic) == 2
            assert min(traffic) > 100
            assert cases.digest(sample) == cases.digest(
                graph.sample_subgraph(
                    [3, 40, 3, 7, 88, -1], fanouts, disjoint=disjoint, **arguments
                )
            )

"""Sampled subgraphs: numbers, hops, trees, and the law of what is drawn."""

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
from asterism.records import Subgraph

ALPHA = 1e-4
WRITES, CITES, BY = "person:writes:paper", "paper:cites:paper", "paper:by:person"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[asterism.Client]:
    with asterism.open(cases.built_in(tmp_path_factory.mktemp("subgraphs"))) as opened:
        yield opened


@pytest.fixture(scope="module")
def graph(client: asterism.Client) -> Graph:
    return client.graph("cases")


def edges_of(sub: Subgraph, name: str) -> list[tuple[int, int, int]]:
    """(source id, destination id, edge id) of each edge of a type."""
    src, _, dst = name.split(":")
    assert sub.edge_ids is not None
    rows, cols = sub.nodes[src][sub.row[name]], sub.nodes[dst][sub.col[name]]
    return list(zip(rows.tolist(), cols.tolist(), sub.edge_ids[name].tolist(), strict=True))


def check(graph: Graph, sub: Subgraph, fanouts: dict[str, list[int]], *, direction: str, replace: bool, expand: str, weighted: bool) -> None:
    """Hold a subgraph against the definition: who is expanded when, how many edges each gives, in which order nodes are met."""
    known = cases.edges()
    met: dict[str, list[tuple[int, int]]] = {name: [] for name in sub.nodes}
    nodes = {
        name: [(int(b), int(i)) for b, i in zip(sub.batch[name] if sub.batch else np.zeros(len(ids)), ids, strict=True)]
        for name, ids in sub.nodes.items()
    }
    at = dict.fromkeys(fanouts, 0)
    for name in nodes:
        met[name] = nodes[name][: sub.num_sampled_nodes[name][0]]
    fresh = {name: list(found) for name, found in met.items()}
    for hop in range(len(next(iter(fanouts.values())))):
        before = {name: list(found) for name, found in met.items()}
        for etype, counts in fanouts.items():
            src, relation, dst = etype.split(":")
            near, far = (src, dst) if direction == "out" else (dst, src)
            near_ids, far_ids = (sub.row, sub.col) if direction == "out" else (sub.col, sub.row)
            real_src, real_dst, real_weight = known[relation]
            mine = slice(at[etype], at[etype] + sub.num_sampled_edges[etype][hop])
            at[etype] = mine.stop
            expected: list[tuple[int, int]] = []
            assert sub.edge_ids is not None
            eids = sub.edge_ids[etype][mine]
            if len(eids):
                ends = (real_src, real_dst) if direction == "out" else (real_dst, real_src)
                assert np.array_equal(ends[0][eids], sub.nodes[near][near_ids[etype][mine]])
                assert np.array_equal(ends[1][eids], sub.nodes[far][far_ids[etype][mine]])
            drawn = [nodes[near][i] for i in near_ids[etype][mine].tolist()]
            for tree, node in before[near] if expand == "every" else fresh[near]:
                ends = real_src if direction == "out" else real_dst
                slots = np.flatnonzero((ends == node) & ((real_weight > 0) | (not weighted) | (counts[hop] == -1)))
                n = len(slots) if counts[hop] == -1 else min(counts[hop], len(slots)) if not replace else counts[hop] * bool(len(slots))
                expected += [(tree, node)] * n
                own = eids[[i for i, one in enumerate(drawn) if one == (tree, node)]]
                assert set(own.tolist()) <= set(slots.tolist())
                assert replace or len(set(own.tolist())) == len(own) == n
            assert drawn == expected
            for i in far_ids[etype][mine].tolist():
                if nodes[far][i] not in met[far]:
                    met[far].append(nodes[far][i])
        fresh = {name: met[name][len(before[name]) :] for name in met}
        for name, found in fresh.items():
            assert sub.num_sampled_nodes[name][hop + 1] == len(found)
    assert met == nodes


@pytest.mark.parametrize("direction", ["out", "in"])
@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("expand", ["first", "every"])
@pytest.mark.parametrize("disjoint", [True, False])
def test_a_subgraph_is_what_its_definition_says(graph: Graph, direction: str, replace: bool, expand: str, disjoint: bool) -> None:
    papers = np.array([3, 40, 3, 7, 88, -1])
    fanouts = {CITES: [3, 2, -1], BY: [2, 0, 1], WRITES: [1, 2, 2]}
    for weighted in (True, False):
        sub = graph.sample_subgraph(
            papers, fanouts, ntype="paper", weighted=weighted, replace=replace, direction=direction, disjoint=disjoint, expand=expand, seed=5
        )
        check(graph, sub, fanouts, direction=direction, replace=replace, expand=expand, weighted=weighted)
        assert sub.seeds.tolist() == ([0, 1, 2, 3, 4, -1] if disjoint else [0, 1, 0, 2, 3, -1])
        assert sub.nodes["paper"][sub.seeds[:5]].tolist() == papers[:5].tolist()


def test_the_draws_of_a_node_do_not_depend_on_the_rest_of_the_batch(graph: Graph) -> None:
    alone = graph.sample_subgraph([7], [4, 3], "cites", seed=9)
    beside = graph.sample_subgraph([50, 7, 20], [4, 3], "cites", seed=9)
    assert set(edges_of(alone, CITES)) <= set(edges_of(beside, CITES))
    trees = graph.sample_subgraph([50, 7, 20], [4, 3], "cites", disjoint=True, seed=9)
    assert trees.batch is not None
    again = graph.sample_subgraph([11, 7], [4, 3], "cites", disjoint=True, seed=9)
    assert again.batch is not None
    second = [one.batch["paper"][one.row[CITES]] == 1 for one in (trees, again)]
    assert [e for e, own in zip(edges_of(trees, CITES), second[0], strict=True) if own] == [
        e for e, own in zip(edges_of(again, CITES), second[1], strict=True) if own
    ]


def test_two_edge_types_and_two_hops_draw_from_streams_of_their_own(client: asterism.Client) -> None:
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


def test_disjoint_trees_draw_by_weight_without_replacement_each_by_itself(client: asterism.Client) -> None:
    client.create_space("star", {"parts": 2, "nodes": {"n": {}}, "edges": {"n:to:n": {"weighted": True}}})
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
    table = np.array([[((first[:-1] == a) & (first[1:] == b)).sum() for b in range(1, 5)] for a in range(1, 5)])
    assert stats.chisquare(table.ravel(), np.outer(p, p).ravel() * (n - 1)).pvalue > ALPHA


def test_what_can_not_be_grown_is_refused_with_its_value(graph: Graph) -> None:
    for call, error, said in (
        (lambda: graph.sample_subgraph([1], [], "cites"), asterism.InvalidRequest, r"fanouts \[\]"),
        (lambda: graph.sample_subgraph([1], [-2], "cites"), asterism.InvalidRequest, r"fanouts\[0\] -2"),
        (lambda: graph.sample_subgraph([1], {"cites": [1], "by": [1, 2]}), asterism.InvalidRequest, "as many for every edge type"),
        (lambda: graph.sample_subgraph([1], {"cites": [1]}, ["cites", "by"]), asterism.InvalidRequest, "expected a list of counts for each"),
        (lambda: graph.sample_subgraph([1], [2], "cites", expand="all"), asterism.InvalidRequest, "expand 'all'"),
        (lambda: graph.sample_subgraph([1], [2], "eats"), asterism.NotFound, "'eats'"),
        (lambda: graph.sample_subgraph([1], [2]), asterism.InvalidRequest, "say ntype"),
    ):
        with pytest.raises(error, match=said):
            call()  # type: ignore[no-untyped-call]
    assert graph.sample_subgraph([], [2], "cites").nodes["paper"].size == 0


def test_in_a_space_of_global_ids_the_service_knows_the_types_of_seeds(client: asterism.Client) -> None:
    client.create_space("global", {"ids": "global", "parts": 3, "nodes": {"a": {}, "b": {}}, "edges": {"a:to:b": {}, "b:to:a": {}}})
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
def test_hops_are_rounds_of_calls_unless_one_storaged_has_all_parts_and_the_bytes_are_the_same(graph: Graph, storageds: int, rounds: int) -> None:
    fanouts = {CITES: [3, 2, 2], BY: [2, 0, 1], WRITES: [1, 2, 2]}
    asked: dict[str, Any] = {"ntype": "paper", "weights": True, "seed": 5}
    with cases_cluster(storageds) as cluster:
        far = cluster.client().graph("cases")
        far.sample_subgraph([3], fanouts, **asked)  # by now the version is open everywhere

        def counted() -> dict[str, float]:
            with urllib.request.urlopen(f"http://{cluster['graphd-0'].http_address}/metrics", timeout=HANG_S) as reply:
                lines = reply.read().decode().splitlines()
            own = [line for line in lines if line.startswith(("asterism_rounds_total", "asterism_bytes_total"))]
            return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in own}

        for disjoint in (False, True):
            before = counted()
            mine = far.sample_subgraph([3, 40, 3, 7, 88, -1], fanouts, disjoint=disjoint, **asked)
            after = counted()
            more = {name: after[name] - before.get(name, 0.0) for name in after if after[name] != before.get(name)}
            assert sum(value for name, value in more.items() if "rounds" in name) == rounds
            carried = [value for name, value in more.items() if "bytes" in name and "FindStream" not in name]
            assert len(carried) == 2
            assert min(carried) > 100
            assert cases.digest(mine) == cases.digest(graph.sample_subgraph([3, 40, 3, 7, 88, -1], fanouts, disjoint=disjoint, **asked))

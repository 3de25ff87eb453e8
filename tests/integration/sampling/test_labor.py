"""LABOR sampling through the client: edges kept by variates that a whole hop shares.

It visits fewer nodes than independent sampling.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.distributions.checks.labor import reference
from tests.kit import cases

import asterism
from asterism import Graph
from asterism.records.samples import Subgraph
from asterism.training.batches import NodeEpochBatches

WRITES, CITES, BY = "person:writes:paper", "paper:cites:paper", "paper:by:person"
FANOUTS = {CITES: [3, 2], BY: [2, 1], WRITES: [1, 2]}
PAPERS = np.concatenate([[3, 40, 3, 7, 88, -1], np.arange(10, 40)])


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[asterism.Client]:
    with asterism.open(cases.copy_built_graph(tmp_path_factory.mktemp("labor"))) as opened:
        yield opened


@pytest.fixture(scope="module")
def graph(client: asterism.Client) -> Graph:
    return client.graph("cases")


cached_edges = cache(cases.edges)


def rows_of(
    relation: str, direction: str, nodes: list[int], *, uniform: bool
) -> dict[int, dict[int, float]]:
    """Return edge weights of nodes in the form that the distribution code takes.

    Keys are edge ids instead of neighbors, because there are parallel edges.
    """
    src, dst, weights = cached_edges()[relation]
    local_ends = src if direction == "out" else dst
    return {
        node: {
            int(e): float(weights[e])
            for e in np.flatnonzero(local_ends == node)
            if uniform or weights[e] > 0
        }
        for node in nodes
    }


def hop_edges(sub: Subgraph, name: str, hop: int) -> slice:
    ends = np.concatenate([[0], np.cumsum(sub.num_sampled_edges[name])]).tolist()
    return slice(*list(pairwise(ends))[hop])


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("expand", ["first", "every"])
@pytest.mark.parametrize(("direction", "layer_dependency"), [("out", True), ("in", False)])
def test_edges_are_kept_by_variates_of_their_neighbors(
    graph: Graph, direction: str, expand: str, weighted: bool, layer_dependency: bool
) -> None:
    """Derive bounds of every remote node's variate from its edges; they must be consistent.

    A kept edge bounds the variate from above, any other edge from below, over all hops and types.
    """
    sub = graph.sample_labor(
        PAPERS,
        FANOUTS,
        ntype="paper",
        weighted=weighted,
        direction=direction,
        expand=expand,
        layer_dependency=layer_dependency,
        seed=5,
    )
    assert sub.edge_ids is not None
    assert sub.weights is not None
    assert sub.batch is None
    assert sub.seeds.tolist() == [0, 1, 0, 2, 3, -1, *range(4, 34)]
    bounds: dict[Any, tuple[float, float]] = {}
    for hop in range(2):
        for name, counts in FANOUTS.items():
            src, relation, dst = name.split(":")
            local_type, remote_type = (src, dst) if direction == "out" else (dst, src)
            begin = 0 if expand == "every" else sum(sub.num_sampled_nodes[local_type][:hop])
            frontier = sub.nodes[local_type][
                begin : sum(sub.num_sampled_nodes[local_type][: hop + 1])
            ].tolist()
            edge_slice = hop_edges(sub, name, hop)
            eids, local_index = (
                sub.edge_ids[name][edge_slice].tolist(),
                sub.row if direction == "out" else sub.col,
            )
            kept_eids, rows = (
                set(eids),
                rows_of(relation, direction, frontier, uniform=not weighted),
            )
            assert sub.nodes[local_type][local_index[name][edge_slice]].tolist() == [
                node
                for node, row in rows.items()
                for e in _sorted_edges(relation, direction, row)
                if e in kept_eids
            ]
            assert eids == [
                e
                for row in rows.values()
                for e in _sorted_edges(relation, direction, row)
                if e in kept_eids
            ]
            remote_ends = cached_edges()[relation][1 if direction == "out" else 0]
            for node, row in rows.items():
                shares = reference({node: row}, counts[hop], 0, uniform=not weighted)[0]
                inverse = {
                    e: (row[e] if weighted else 1.0) / shares[node, e]
                    for e in row
                    if e in kept_eids
                }
                kept_weights = [
                    float(w)
                    for w, e in zip(sub.weights[name][edge_slice], eids, strict=True)
                    if e in row
                ]
                assert np.allclose(
                    kept_weights,
                    [
                        x * len(inverse) / sum(inverse.values())
                        for e, x in _select_in_order(inverse, eids)
                    ],
                    rtol=1e-5,
                )
                for e in row:
                    key = (remote_type, int(remote_ends[e]), 0 if layer_dependency else hop)
                    low, high = bounds.get(key, (0.0, 1.0))
                    bounds[key] = (
                        (low, min(high, shares[node, e]))
                        if e in kept_eids
                        else (max(low, shares[node, e]), high)
                    )
    assert all(low < high for low, high in bounds.values())
    assert (
        sum(low > 0 and high < 1 for low, high in bounds.values()) > 3
    )  # nodes with several edges, only some of them kept


def _sorted_edges(relation: str, direction: str, row: dict[int, float]) -> list[int]:
    """Return a node's edges in stored order: by neighbor, then edge id."""
    remote_ends = cached_edges()[relation][1 if direction == "out" else 0]
    return sorted(row, key=lambda e: (int(remote_ends[e]), e))


def _select_in_order(inverse: dict[int, float], eids: list[int]) -> list[tuple[int, float]]:
    return [(e, inverse[e]) for e in eids if e in inverse]


def test_all_neighbors_and_none(graph: Graph) -> None:
    unlimited = graph.sample_labor([3, 40], {CITES: [-1], BY: [0]}, seed=1)
    all_eids = {e for row in rows_of("cites", "out", [3, 40], uniform=False).values() for e in row}
    assert unlimited.edge_ids is not None
    assert set(unlimited.edge_ids[CITES].tolist()) == all_eids
    assert unlimited.num_sampled_edges == {CITES: (len(all_eids),), BY: (0,)}
    over_degree = graph.sample_labor([3, 40], [10_000], "cites", importance=2, seed=2)
    assert over_degree.edge_ids is not None
    assert set(over_degree.edge_ids[CITES].tolist()) == all_eids


def test_kept_edges_do_not_depend_on_other_seeds(graph: Graph) -> None:
    alone, in_batch = (
        graph.sample_labor(nodes, [4], "cites", seed=9) for nodes in ([7], [50, 7, 20])
    )
    assert alone.edge_ids is not None
    assert in_batch.edge_ids is not None
    own_edges = in_batch.nodes["paper"][in_batch.row[CITES]] == 7
    assert alone.edge_ids[CITES].tolist() == in_batch.edge_ids[CITES][own_edges].tolist()


@pytest.fixture(scope="module")
def crowd(client: asterism.Client) -> Graph:
    """Return a graph of forty nodes with thirty neighbors each, among a hundred."""
    client.create_space(
        "crowd", {"direction": "both", "nodes": {"n": {}}, "edges": {"n:to:n": {"weighted": True}}}
    )
    graph, rng = client.graph("crowd"), np.random.default_rng(4)
    graph.upsert_nodes(np.arange(140), "n")
    dst = np.concatenate([rng.choice(100, 30, replace=False) for _ in range(40)])
    graph.upsert_edges(
        np.repeat(np.arange(100, 140), 30), dst, "to", weights=rng.lognormal(0, 1, 1200)
    )
    graph.build()
    return graph


def test_importance_rounds_reduce_visited_nodes(crowd: Graph) -> None:
    """Compare the mean number of visited nodes in 200 batches with its expectation.

    The tolerance is five standard errors. Independent sampling visits many more nodes.
    """
    src, dst, weights = (
        np.concatenate(column)
        for column in zip(*((b.src, b.dst, b.weights) for b in crowd.scan_edges("to")), strict=True)
    )
    rows: dict[int, dict[int, float]] = {int(s): {} for s in np.unique(src)}
    for s, d, w in zip(src.tolist(), dst.tolist(), weights.tolist(), strict=True):
        rows[s][d] = w
    seeds = np.arange(100, 140)
    independent_mean = np.mean(
        [len(crowd.sample_subgraph(seeds, [3], seed=s).nodes["n"]) for s in range(20)]
    )
    means = []
    for importance in (0, 1, -1):
        shares, _ = reference(rows, 3, importance, uniform=False)
        visit_probabilities = {
            d: max(p for (_, t), p in shares.items() if t == d) for d in range(100)
        }
        visited = [
            len(crowd.sample_labor(seeds, [3], importance=importance, seed=s).nodes["n"]) - 40
            for s in range(200)
        ]
        assert abs(np.mean(visited) - sum(visit_probabilities.values())) < 5 * np.sqrt(
            sum(p * (1 - p) for p in visit_probabilities.values()) / 200
        )
        means.append(np.mean(visited))
    assert means[2] <= means[1] < means[0] < independent_mean - 40


@pytest.mark.parametrize("weighted", [True, False])
def test_variates_are_uniform_where_weights_span_many_decades(
    client: asterism.Client, weighted: bool
) -> None:
    """Infer an interval for each node's variate and pick a random point in it.

    Kept edges bound the interval from above, others from below. The points must be uniform in (0,
    1).
    """
    space, rng, k = f"wide {weighted}".replace(" ", "_"), np.random.default_rng(8), 3
    client.create_space(space, {"nodes": {"n": {}}, "edges": {"n:to:n": {"weighted": True}}})
    graph = client.graph(space)
    graph.upsert_nodes(np.arange(12_000), "n")
    src = np.sort(rng.integers(0, 2000, 30_000))
    w = (
        np.exp(3 * rng.normal(size=30_000)).astype(np.float32).astype(np.float64)
        if weighted
        else np.ones(30_000)
    )
    dst = 2000 + (rng.random(30_000) ** 2 * 10_000).astype(np.int64)
    graph.upsert_edges(src, dst, "to", weights=w)
    graph.build()
    starts = np.flatnonzero(np.diff(src, prepend=-1))
    degrees = np.diff(np.append(starts, len(src)))
    total, squares = np.add.reduceat(w, starts), np.add.reduceat(w * w, starts)
    target = total**2 * (1 / np.minimum(k, degrees) - 1 / degrees) + squares
    low, high = np.full(len(starts), 1e-30), 1 / np.minimum.reduceat(w, starts)
    for _ in range(90):  # solve for c of every node by bisection
        c = np.sqrt(low * high)
        more = np.add.reduceat(
            w * w / np.minimum(1, np.repeat(c, degrees) * w), starts
        ) > target * (1 + 1e-13)
        low, high = np.where(more, c, low), np.where(more, high, c)
    shares = np.minimum(1, np.repeat(high, degrees) * w)
    edge_ids = graph.sample_labor(np.arange(2000), [k], weighted=weighted, seed=12).edge_ids
    assert edge_ids is not None
    is_kept = np.isin(np.arange(len(src)), edge_ids["n:to:n"])
    assert is_kept[np.repeat(degrees <= k, degrees)].all()
    lower, upper = np.zeros(12_000), np.ones(12_000)
    np.maximum.at(lower, dst[~is_kept], shares[~is_kept])
    np.minimum.at(upper, dst[is_kept], shares[is_kept])
    assert (lower < upper).all()
    neighbor_ids = np.unique(dst)
    u = lower[neighbor_ids] + rng.random(len(neighbor_ids)) * (upper - lower)[neighbor_ids]
    assert stats.chisquare(np.bincount((u * 40).astype(np.int64), minlength=40)).pvalue > 1e-5


def test_weighted_means_over_kept_edges_estimate_full_means(crowd: Graph) -> None:
    """Compare weighted means over kept edges with the weighted means over all edges."""
    values = np.random.default_rng(6).random(140)
    neighborhood = crowd.neighbors([100], "to")
    assert neighborhood.weights is not None
    expected = np.average(values[neighborhood.nodes], weights=neighborhood.weights)
    for importance in (0, 1):
        estimates = []
        for seed in range(400):
            sub = crowd.sample_labor(np.arange(100, 140), [10], importance=importance, seed=seed)
            assert sub.weights is not None
            own_edges = sub.nodes["n"][sub.row["n:to:n"]] == 100
            kept_weights, neighbor_ids = (
                sub.weights["n:to:n"][own_edges],
                sub.nodes["n"][sub.col["n:to:n"][own_edges]],
            )
            assert abs(kept_weights.sum() - own_edges.sum()) < 1e-4
            estimates.append(np.average(values[neighbor_ids], weights=kept_weights))
        assert abs(np.mean(estimates) - expected) < 0.02


def test_epoch_batches_are_sampled_by_labor(crowd: Graph) -> None:
    pinned = crowd.at(crowd.manifest().version)

    def epoch() -> list[Subgraph]:
        def make(graph: Graph, nodes: np.ndarray, seed: int) -> Subgraph:
            return graph.sample_labor(nodes, [4, 2], direction="in", importance=1, seed=seed)

        return list(NodeEpochBatches(pinned, "n", 50, make, seed=3))

    batches = epoch()
    assert [len(batch.seeds) for batch in batches] == [50, 50, 40]
    assert sorted(
        node for batch in batches for node in batch.nodes["n"][batch.seeds].tolist()
    ) == list(range(140))
    assert [cases.digest(batch) for batch in batches] == [cases.digest(batch) for batch in epoch()]


def test_hops_with_too_many_edges_are_refused(
    crowd: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storaged.sampling.subgraphs.labor.MAX_EDGES", 1199)
    with pytest.raises(
        asterism.InvalidRequest,
        match=r"the 40 nodes of the hop have 1200 edges .* start from fewer seeds",
    ):
        crowd.sample_labor(np.arange(100, 140), [3], importance=1, seed=1)
    monkeypatch.setattr("storaged.sampling.subgraphs.labor.MAX_EDGES", 1200)
    monkeypatch.setattr("graphd.operators.subgraphs.REPLY_BYTES", 1000)
    with pytest.raises(asterism.InvalidRequest, match="the subgraph has more than the 1000 bytes"):
        crowd.sample_labor(np.arange(100, 140), [3], importance=1, seed=1)


def test_explain_reports_expansion_on_one_host(crowd: Graph) -> None:
    for importance in (0, 1):
        explanation = crowd.explain.sample_labor([100, 101], [3, 2], importance=importance, seed=2)
        assert [request.method for request in explanation.storage_requests] == ["sample_k_hop"]

"""Distributions of every sampler on a larger graph, through the client.

The graph has hundreds of thousands of rows, and its weights span many decades.

Each draw is mapped to a number between 0 and 1: its position in the distribution function of its
exact distribution, conditional on all earlier draws, and random within its step (Rosenblatt 1952,
*Remarks on a multivariate transformation*, Ann. Math. Stat. 23, p. 470). These numbers are uniform
and independent if and only if the draws follow their distributions, whatever these are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from tests.kit import cases
from tests.kit.waiting import HANG_S

import asterism
from asterism import Graph

PAGES, ITEMS, LINKS, HAS, LABELS = 120_000, 30_000, 500_000, 150_000, 4000
ALPHA = 1e-5
"""Probability that one statistic fails on correct code.

There are about sixty statistics, with fixed seeds.
"""
CELLS = 40

F64, I64 = NDArray[np.float64], NDArray[np.int64]


@dataclass
class ReferenceGraph:
    """A graph and the arrays that it was loaded from."""

    graph: Graph
    pages: I64
    """Sparse ids, ascending."""
    labels: list[bytes]
    """All labels, ascending."""
    page_weights: F64
    item_weights: F64
    src: I64
    """Source of every edge as an index into `pages`.

    Edges are ordered by (source, type, destination, edge id).
    """
    types: I64
    dst: I64
    """Destination ids."""
    eids: I64
    weights: F64

    @cached_property
    def indptr(self) -> I64:
        return np.searchsorted(self.src, np.arange(PAGES + 1))

    @cached_property
    def slots(self) -> tuple[I64, I64]:
        """Index of each edge in this order, by type and edge id."""
        out = (np.empty(LINKS, np.int64), np.empty(HAS, np.int64))
        for t in (0, 1):
            edge_rows = np.flatnonzero(self.types == t)
            out[t][self.eids[edge_rows]] = edge_rows
        return out

    def slots_of_edges(self, types: NDArray[np.int32], eids: I64) -> I64:
        """Return the indices of sampled edges."""
        return np.where(
            types == 0,
            self.slots[0][np.where(types == 0, eids, 0)],
            self.slots[1][np.where(types == 1, eids, 0)],
        )

    def rows_of_pages(self, ids: I64) -> I64:
        """Return the indices of pages in `pages`."""
        return np.searchsorted(self.pages, ids)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReferenceGraph]:
    rng = np.random.default_rng(77)
    pages = np.sort(rng.choice(10**12, PAGES, replace=False))
    page_weights = np.exp(3 * rng.normal(size=PAGES)).astype(np.float32) * (rng.random(PAGES) > 0.1)
    item_weights = (rng.random(ITEMS) ** 9).astype(np.float32)
    # The first page has a tenth of all links; the other degrees are skewed.
    heads = np.where(rng.random(LINKS) < 0.1, 0, (rng.random(LINKS) ** 2 * PAGES).astype(np.int64))
    tails = (rng.random(LINKS) ** 2 * PAGES).astype(np.int64)
    link_weights = np.exp(2 * rng.normal(size=LINKS)).astype(np.float32) * (
        rng.random(LINKS) > 0.05
    )
    owners, owned = rng.integers(0, PAGES, HAS), rng.integers(0, ITEMS, HAS)
    schema = {
        "parts": 8,
        "placement": "mix64",
        "direction": "out",
        "nodes": {
            "page": {
                "weighted": True,
                "features": {"of": "bytes"},
                "graph_label": "of",
                "tables": {"turned": "1 / (0.1 + weight)"},
            },
            "item": {"weighted": True},
        },
        "edges": {"page:links:page": {"weighted": True}, "page:has:item": {}},
    }
    with asterism.open(tmp_path_factory.mktemp("scale")) as client:
        client.create_space("scale", schema)
        load = client.begin_load("scale", source="scale")
        # Low labels are common, high labels are rare.
        text = [b"graph %d" % int(x * x * LABELS) for x in rng.random(PAGES)]
        load.write_nodes(0, "page", pages, weights=page_weights, features={"of": text})
        load.write_nodes(1, "item", np.arange(ITEMS), weights=item_weights)
        load.write_edges(2, "links", pages[heads], pages[tails], weights=link_weights)
        load.write_edges(3, "has", pages[owners], owned)
        load.commit()
        graph = client.graph("scale")
        graph.build(timeout_s=HANG_S)
        src, types = np.concatenate([heads, owners]), np.repeat([0, 1], [LINKS, HAS])
        dst, eids = (
            np.concatenate([pages[tails], owned]),
            np.concatenate([np.arange(LINKS), np.arange(HAS)]),
        )
        weights = np.concatenate([link_weights.astype(np.float64), np.ones(HAS)])
        order = np.lexsort((eids, dst, types, src))
        columns = {
            "src": src[order],
            "types": types[order],
            "dst": dst[order],
            "eids": eids[order],
            "weights": weights[order],
        }
        yield ReferenceGraph(
            graph=graph,
            pages=pages,
            labels=sorted(set(text)),
            page_weights=page_weights.astype(np.float64),
            item_weights=item_weights.astype(np.float64),
            **columns,
        )


def assert_uniform(mass_below: F64, probability: F64, what: str) -> None:
    """Assert that draws follow their distribution and that successive draws are independent.

    `mass_below` is the probability mass below each draw, `probability` the mass of the draw.
    """
    assert (probability > 0).all(), f"{what}: something impossible was drawn"
    u = np.clip(
        mass_below + np.random.default_rng(5).random(len(mass_below)) * probability, 0, 1 - 1e-12
    )
    counts = np.bincount((u * CELLS).astype(np.int64), minlength=CELLS)
    assert stats.chisquare(counts).pvalue > ALPHA, f"{what}: {counts.tolist()}"
    pairs = np.bincount(
        (u[:-1] * 8).astype(np.int64) * 8 + (u[1:] * 8).astype(np.int64), minlength=64
    )
    assert stats.chisquare(pairs).pvalue > ALPHA, f"{what}, one after the other: {pairs.tolist()}"


def test_slightly_biased_samples_are_detected() -> None:
    rng, weights = np.random.default_rng(1), np.arange(1.0, 101.0)
    cumulative = np.concatenate([[0.0], np.cumsum(weights)])
    for exponent, fair in ((1.0, True), (0.9, False)):
        rows = rng.choice(100, 30_000, p=weights**exponent / (weights**exponent).sum())
        arguments = (cumulative[rows] / cumulative[-1], weights[rows] / cumulative[-1], "by weight")
        if fair:
            assert_uniform(*arguments)
            with pytest.raises(AssertionError, match="one after the other"):
                assert_uniform(
                    *(np.repeat(column[:15_000], 2) for column in arguments[:2]), "twice each"
                )
        else:
            with pytest.raises(AssertionError, match="by weight"):
                assert_uniform(*arguments)


def assert_edges_follow_weights(
    reference: ReferenceGraph, rows: I64, slots: I64, weights: F64, what: str
) -> None:
    """Assert that each edge was sampled by weight from the edges of its page.

    `weights` are 0 for edges that cannot be sampled.
    """
    cumulative = np.concatenate([[0.0], np.cumsum(weights)])
    low, high = cumulative[reference.indptr[rows]], cumulative[reference.indptr[rows + 1]]
    assert (reference.src[slots] == rows).all(), f"{what}: an edge of another node"
    assert_uniform((cumulative[slots] - low) / (high - low), weights[slots] / (high - low), what)


def weights_of(reference: ReferenceGraph, types: tuple[int, ...], weighted: bool) -> F64:
    """Return the sampling weight of every edge for draws along some types."""
    return np.where(np.isin(reference.types, types), reference.weights if weighted else 1.0, 0.0)


@pytest.mark.parametrize("weight", ["", "turned", None])
@pytest.mark.parametrize("replace", [True, False])
def test_nodes(reference: ReferenceGraph, weight: str | None, replace: bool) -> None:
    exact = (
        {
            "": reference.page_weights,
            "turned": 1 / (0.1 + reference.page_weights),
            None: np.ones(PAGES),
        }[weight]
        .astype(np.float32)
        .astype(np.float64)
    )
    sampled = reference.graph.sample_nodes(
        30_000, "page", weighted=weight is not None, weight=weight or "", replace=replace, seed=1
    )
    rows = reference.rows_of_pages(sampled.nodes)
    assert np.array_equal(reference.pages[rows], sampled.nodes)
    cumulative = np.concatenate([[0.0], np.cumsum(exact)])
    if replace:
        assert_uniform(
            cumulative[rows] / cumulative[-1], exact[rows] / cumulative[-1], f"nodes by {weight}"
        )
        return
    assert len(np.unique(rows)) == len(rows)
    # Draw k follows the distribution of the remaining nodes: without the earlier draws, some of
    # which lie below it.
    earlier = np.concatenate([[0.0], np.cumsum(exact[rows])[:-1]])
    removed, remaining = _sums_below(rows, exact[rows]), cumulative[-1] - earlier
    assert_uniform(
        (cumulative[rows] - removed) / remaining,
        exact[rows] / remaining,
        f"different nodes by {weight}",
    )


def _sums_below(rows: I64, weights: F64) -> F64:
    """Return, for each draw, the total weight of earlier draws of lower rows.

    It uses a Fenwick tree over their ranks.
    """
    rank = np.argsort(np.argsort(rows)) + 1
    tree, out = np.zeros(len(rows) + 1), np.zeros(len(rows))
    for k, (position, weight) in enumerate(zip(rank.tolist(), weights.tolist(), strict=True)):
        low = position - 1
        while low > 0:
            out[k] += tree[low]
            low -= low & -low
        while position <= len(rows):
            tree[position] += weight
            position += position & -position
    return out


@pytest.mark.parametrize("weighted", [True, False])
def test_edges_of_all_types(reference: ReferenceGraph, weighted: bool) -> None:
    sampled = reference.graph.sample_edges(40_000, weighted=weighted, seed=2)
    exact = reference.weights if weighted else np.ones(LINKS + HAS)
    slots, cumulative = (
        reference.slots_of_edges(sampled.types, sampled.edge_ids),
        np.concatenate([[0.0], np.cumsum(exact)]),
    )
    assert np.array_equal(reference.dst[slots], sampled.dst)
    assert_uniform(cumulative[slots] / cumulative[-1], exact[slots] / cumulative[-1], "edges")


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("etypes", [["links"], ["links", "has"]])
def test_neighbors_and_fanouts(
    reference: ReferenceGraph, weighted: bool, etypes: list[str]
) -> None:
    exact = weights_of(reference, (0, 1) if len(etypes) == 2 else (0,), weighted)
    page_rows = np.concatenate(
        [np.zeros(4000, np.int64), np.random.default_rng(3).integers(0, PAGES, 12_000)]
    )
    neighbors = reference.graph.sample_neighbors(
        reference.pages[page_rows], etypes, 3, weighted=weighted, edge_ids=True, seed=3
    )
    assert neighbors.edge_ids is not None
    hit = neighbors.mask
    assert_edges_follow_weights(
        reference,
        np.repeat(page_rows, 3)[hit.ravel()],
        reference.slots_of_edges(neighbors.types[hit], neighbors.edge_ids[hit]),
        exact,
        "neighbors",
    )
    fanout = reference.graph.sample_fanout(
        reference.pages[page_rows[3000:8000]],
        ["links", etypes],
        [2, 2],
        weighted=weighted,
        edge_ids=True,
        seed=4,
    )
    first, second = fanout.hops
    assert second.edge_ids is not None
    hit = second.nodes >= 0
    rows = reference.rows_of_pages(np.repeat(first.nodes, 2)[hit])
    assert_edges_follow_weights(
        reference,
        rows,
        reference.slots_of_edges(second.types[hit], second.edge_ids[hit]),
        exact,
        "the second hop of a fanout",
    )


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("etypes", [["links"], ["links", "has"]])
def test_distinct_neighbors(reference: ReferenceGraph, weighted: bool, etypes: list[str]) -> None:
    exact = weights_of(reference, (0, 1) if len(etypes) == 2 else (0,), weighted)
    cumulative = np.concatenate([[0.0], np.cumsum(exact)])
    count = 4
    degrees = np.bincount(
        reference.src[np.isin(reference.types, (0, 1) if len(etypes) == 2 else (0,))],
        minlength=PAGES,
    )
    wide = np.flatnonzero(
        (degrees > count)
        & (np.add.reduceat(exact > 0, np.minimum(reference.indptr[:-1], len(exact) - 1)) > count)
    )
    page_rows = np.concatenate(
        [np.zeros(2000, np.int64), np.random.default_rng(4).choice(wide, 8000)]
    )
    neighbors = reference.graph.sample_neighbors(
        reference.pages[page_rows],
        etypes,
        count,
        weighted=weighted,
        replace=False,
        edge_ids=True,
        seed=5,
    )
    assert neighbors.edge_ids is not None
    assert neighbors.mask.all()
    slots = reference.slots_of_edges(neighbors.types, neighbors.edge_ids)
    assert (reference.src[slots] == page_rows[:, None]).all()
    low, high = cumulative[reference.indptr[page_rows]], cumulative[reference.indptr[page_rows + 1]]
    for k in range(count):
        current, earlier = slots[:, k], slots[:, :k]
        assert (earlier != current[:, None]).all()
        remaining = high - low - exact[earlier].sum(axis=1)
        below = (
            cumulative[current]
            - low
            - np.where(earlier < current[:, None], exact[earlier], 0).sum(axis=1)
        )
        significant = remaining > 1e-6 * (high - low)  # less is rounding in this test
        assert_uniform(
            (below / remaining)[significant],
            (exact[current] / remaining)[significant],
            f"draw {k} without replacement",
        )


@pytest.mark.parametrize("weighted", [True, False])
def test_walks_with_restarts(reference: ReferenceGraph, weighted: bool) -> None:
    exact, restart = weights_of(reference, (0,), weighted), 0.2
    starts = reference.pages[np.random.default_rng(6).integers(0, PAGES, 8000)]
    walks = reference.graph.random_walk(
        starts, ["links"], 6, restart=restart, weighted=weighted, edge_ids=True, seed=6
    )
    assert walks.edge_ids is not None
    stepped = walks.types >= 0
    rows = reference.rows_of_pages(walks.nodes[:, :-1][stepped])
    assert_edges_follow_weights(
        reference,
        rows,
        reference.slots_of_edges(walks.types[stepped], walks.edge_ids[stepped]),
        exact,
        "steps of walks",
    )
    restarted = (walks.types < 0) & (walks.nodes[:, 1:] >= 0)
    assert (walks.nodes[:, 1:][restarted] == np.repeat(starts, 6).reshape(-1, 6)[restarted]).all()
    out_weights = np.add.reduceat(exact, np.minimum(reference.indptr[:-1], len(exact) - 1)) * (
        np.diff(reference.indptr) > 0
    )
    can_step = (walks.nodes[:, :-1] >= 0) & (
        out_weights[np.minimum(reference.rows_of_pages(walks.nodes[:, :-1]), PAGES - 1)] > 0
    )
    assert (
        stats.binomtest(int(restarted[can_step].sum()), int(can_step.sum()), restart).pvalue > ALPHA
    )


@pytest.mark.parametrize(("p", "q"), [(0.2, 3.0), (4.0, 0.25)])
def test_walks_with_p_and_q(reference: ReferenceGraph, p: float, q: float) -> None:
    exact = weights_of(reference, (0,), True)
    starts = reference.pages[np.random.default_rng(7).integers(0, PAGES, 2500)]
    walks = reference.graph.random_walk(starts, ["links"], 4, p=p, q=q, edge_ids=True, seed=7)
    assert walks.edge_ids is not None
    below, shares = [], []
    for walk_nodes, walk_eids in zip(walks.nodes, walks.edge_ids, strict=True):
        for s in range(1, 4):
            if walk_nodes[s + 1] < 0:
                break
            previous, current = reference.rows_of_pages(walk_nodes[s - 1 : s + 1])
            row = slice(reference.indptr[current], reference.indptr[current + 1])
            previous_neighbors = reference.dst[
                reference.indptr[previous] : reference.indptr[previous + 1]
            ][reference.types[reference.indptr[previous] : reference.indptr[previous + 1]] == 0]
            bias = np.where(
                reference.dst[row] == walk_nodes[s - 1],
                1 / p,
                np.where(np.isin(reference.dst[row], previous_neighbors), 1.0, 1 / q),
            )
            biased = exact[row] * bias
            position = reference.slots[0][walk_eids[s]] - row.start
            below.append(biased[:position].sum() / biased.sum())
            shares.append(biased[position] / biased.sum())
    assert len(below) > 3000
    assert_uniform(np.array(below), np.array(shares), "steps with p and q")


def test_walks_over_distinct_neighbors(reference: ReferenceGraph) -> None:
    wide = np.flatnonzero(np.diff(reference.indptr) >= 6)
    page_rows, n = (
        np.concatenate([np.zeros(300, np.int64), np.random.default_rng(8).choice(wide, 3000)]),
        3,
    )
    for etypes, types in ((["links"], (0,)), (["links", "has"], (0, 1))):
        exact = weights_of(reference, types, True)
        walks = reference.graph.random_walk(
            reference.pages[page_rows],
            [etypes],
            1,
            walks=n,
            ntype="page",
            first_step="distinct",
            edge_ids=True,
            seed=8,
        )
        assert walks.edge_ids is not None
        assert walks.starts is not None
        slots = reference.slots_of_edges(walks.types[:, 0], walks.edge_ids[:, 0])
        below, shares = [], []
        for start in range(len(page_rows)):
            row = slice(reference.indptr[page_rows[start]], reference.indptr[page_rows[start] + 1])
            remaining, neighbors = exact[row].copy(), reference.dst[row] * 2 + reference.types[row]
            for slot in slots[
                np.searchsorted(walks.starts, start) : np.searchsorted(walks.starts, start + 1)
            ]:
                position = slot - row.start
                total = remaining.sum()
                if total < 1e-6 * exact[row].sum():
                    break
                below.append(remaining[:position].sum() / total)
                shares.append(remaining[position] / total)
                remaining[neighbors == neighbors[position]] = 0
        assert_uniform(np.array(below), np.array(shares), f"different neighbors along {etypes}")


@pytest.mark.parametrize("disjoint", [True, False])
def test_subgraphs(reference: ReferenceGraph, disjoint: bool) -> None:
    seeds = reference.pages[np.random.default_rng(9).choice(PAGES, 5000, replace=False)]
    sub = reference.graph.sample_subgraph(
        seeds, [2, 2], ["links", "has"], ntype="page", replace=True, disjoint=disjoint, seed=9
    )
    assert sub.edge_ids is not None
    for t, name in enumerate(("page:links:page", "page:has:item")):
        rows = reference.rows_of_pages(sub.nodes["page"][sub.row[name]])
        assert_edges_follow_weights(
            reference,
            rows,
            reference.slots[t][sub.edge_ids[name]],
            weights_of(reference, (t,), True),
            f"edges {name} of subgraphs",
        )


@pytest.mark.parametrize("measure", ["sum", "sqrt", "squares"])
@pytest.mark.parametrize("replace", [True, False])
def test_layers(reference: ReferenceGraph, measure: str, replace: bool) -> None:
    nodes = np.random.default_rng(10).choice(PAGES, 3000, replace=False)
    sampled = reference.graph.sample_layer(
        reference.pages[nodes], ["links", "has"], 2500, measure=measure, replace=replace, seed=10
    )
    selected = np.flatnonzero(np.isin(reference.src, nodes))
    key = (
        reference.dst[selected] * 2 + reference.types[selected]
    )  # the edge type determines the remote type
    candidates, candidate_index = np.unique(key, return_inverse=True)
    if measure == "squares":
        pairs, pair_index = np.unique(
            reference.src[selected] * len(candidates) + candidate_index, return_inverse=True
        )
        measures = np.bincount(
            pairs % len(candidates),
            np.bincount(pair_index, reference.weights[selected]) ** 2,
            len(candidates),
        )
    else:
        measures = np.bincount(candidate_index, reference.weights[selected], len(candidates))
        measures = np.sqrt(measures) if measure == "sqrt" else measures
    positions = np.searchsorted(candidates, sampled.nodes * 2 + sampled.types)
    cumulative = np.concatenate([[0.0], np.cumsum(measures)])
    removed, earlier = (np.zeros(len(positions)),) * 2
    if not replace:
        removed, earlier = (
            _sums_below(positions, measures[positions]),
            np.concatenate([[0.0], np.cumsum(measures[positions])[:-1]]),
        )
    remaining = cumulative[-1] - earlier
    assert_uniform(
        (cumulative[positions] - removed) / remaining,
        measures[positions] / remaining,
        f"layers by {measure}",
    )
    assert np.allclose(sampled.probabilities, measures[positions] / remaining, rtol=1e-9)


def test_layer_with_edges_in_several_replies(
    reference: ReferenceGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = np.tile(reference.pages, 10)  # 6.5 million edges take 104 MB, and a reply holds 60
    sampled = reference.graph.sample_layer(nodes, ["links", "has"], 3000, seed=16)
    candidates, candidate_index = np.unique(
        reference.dst * 2 + reference.types, return_inverse=True
    )
    measures = np.bincount(candidate_index, reference.weights)
    positions, cumulative = (
        np.searchsorted(candidates, sampled.nodes * 2 + sampled.types),
        np.concatenate([[0.0], np.cumsum(measures)]),
    )
    assert_uniform(
        cumulative[positions] / cumulative[-1],
        measures[positions] / cumulative[-1],
        "a layer of many edges",
    )
    assert np.allclose(sampled.probabilities, measures[positions] / cumulative[-1], rtol=1e-9)
    small_layer = reference.graph.sample_layer(
        reference.pages[:5000], None, 300, ntype="page", measure="squares", edge_ids=True, seed=17
    )
    monkeypatch.setattr("graphd.operators.full_neighborhood._PIECE_BYTES", 50_000)
    for module in (
        "graphd.operators.reads",
        "graphd.operators.layers",
        "graphd.operators.full_neighborhood",
    ):
        monkeypatch.setattr(f"{module}.REPLY_BYTES", 1_000_000)
    with pytest.raises(
        asterism.InvalidRequest, match=r"nodes\[0\] = \d+ has \d+ edges .* remove the node"
    ):
        reference.graph.sample_layer(
            reference.pages[:5000],
            None,
            300,
            ntype="page",
            measure="squares",
            edge_ids=True,
            seed=17,
        )
    for module in (
        "graphd.operators.reads",
        "graphd.operators.layers",
        "graphd.operators.full_neighborhood",
    ):
        monkeypatch.setattr(f"{module}.REPLY_BYTES", 2_000_000)
    repeated = reference.graph.sample_layer(
        reference.pages[:5000], None, 300, ntype="page", measure="squares", edge_ids=True, seed=17
    )
    assert cases.digest(repeated) == cases.digest(small_layer)
    monkeypatch.setattr("graphd.operators.full_neighborhood._MAX_BYTES", 1_000_000)
    with pytest.raises(
        asterism.InvalidRequest,
        match=r"the 5000 nodes of the layer have \d+ edges .* layers of fewer nodes",
    ):
        reference.graph.sample_layer(
            reference.pages[:5000],
            None,
            300,
            ntype="page",
            measure="squares",
            edge_ids=True,
            seed=17,
        )


@pytest.mark.parametrize("weighted", [True, False])
def test_negatives_and_similar_nodes(reference: ReferenceGraph, weighted: bool) -> None:
    exact = reference.page_weights if weighted else np.ones(PAGES)
    cumulative = np.concatenate([[0.0], np.cumsum(exact)])
    heaviest = np.argsort(-reference.page_weights)[
        :200
    ]  # excluding these leaves out much of the weight
    rng = np.random.default_rng(11)
    excluded = np.stack([rng.choice(heaviest, 30, replace=False) for _ in range(600)])
    sampled = reference.graph.sample_negatives(
        reference.pages[:600],
        20,
        "page",
        weighted=weighted,
        exclude=reference.pages[excluded],
        probabilities=True,
        seed=11,
    )
    rows = reference.rows_of_pages(sampled.nodes)
    remaining = cumulative[-1] - exact[excluded].sum(axis=1)
    lower = np.stack(
        [
            np.where(row[:, None] > excluded_rows, exact[excluded_rows], 0).sum(axis=1)
            for row, excluded_rows in zip(rows, excluded, strict=True)
        ]
    )
    shares = exact[rows] / remaining[:, None]
    assert_uniform(
        ((cumulative[rows] - lower) / remaining[:, None]).ravel(), shares.ravel(), "negatives"
    )
    assert np.allclose(sampled.probabilities, shares, rtol=1e-9)
    assert not (rows[:, :, None] == excluded[:, None, :]).any()
    types = np.tile(np.array([0, 1], np.int32), 1500)
    similar = reference.graph.sample_nodes_like(
        np.zeros(3000, np.int64), 8, ntype=types, weighted=weighted, seed=12
    )
    for t, type_weights in enumerate(
        (exact, reference.item_weights if weighted else np.ones(ITEMS))
    ):
        nodes = similar.nodes[types == t].ravel()
        positions, total = (
            (reference.rows_of_pages(nodes), type_weights.sum())
            if t == 0
            else (nodes, type_weights.sum())
        )
        assert_uniform(
            np.concatenate([[0.0], np.cumsum(type_weights)])[positions] / total,
            type_weights[positions] / total,
            f"nodes like those of type {t}",
        )


def test_labels_of_graphs(reference: ReferenceGraph) -> None:
    sampled = reference.graph.sample_graph_labels(40_000, seed=14).labels
    positions = np.searchsorted(np.array(reference.labels), np.array(sampled))
    assert [reference.labels[i] for i in positions] == list(sampled)
    assert_uniform(
        positions / len(reference.labels),
        np.full(len(positions), 1 / len(reference.labels)),
        "labels",
    )


def test_top_k_neighbors_are_exact(reference: ReferenceGraph) -> None:
    page_rows = np.concatenate([[0], np.random.default_rng(15).integers(0, PAGES, 3000)])
    top = reference.graph.top_k_neighbors(
        reference.pages[page_rows], ["links", "has"], 5, edge_ids=True
    )
    order = np.lexsort(
        (reference.eids, reference.types, reference.dst, -reference.weights, reference.src)
    )
    first = reference.indptr[page_rows]
    present = np.arange(5) < np.diff(reference.indptr)[page_rows][:, None]
    expected = order[np.where(present, first[:, None] + np.arange(5), 0)]
    assert np.array_equal(top.nodes, np.where(present, reference.dst[expected], -1))
    # The edge ids were requested.
    assert np.array_equal(top.edge_ids, np.where(present, reference.eids[expected], -1))  # type: ignore[arg-type]

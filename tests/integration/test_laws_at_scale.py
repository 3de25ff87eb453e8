"""Every sampler's law on a graph of some size, through the client: hundreds of thousands of rows whose weights span many decades.

What a draw gives is turned into a number in 0 .. 1: where it lies in the distribution function of its exact law, given all that
came before it, and by chance within its step (Rosenblatt 1952, *Remarks on a multivariate transformation*, Ann. Math. Stat. 23,
p. 470). Such numbers are uniform and independent if, and only if, the draws follow their laws, whatever these are.
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
"""Chance that one statistic fails on right code; there are about sixty, and their seeds are fixed."""
CELLS = 40

F64, I64 = NDArray[np.float64], NDArray[np.int64]


@dataclass
class World:
    """The graph, and what it was made of."""

    graph: Graph
    pages: I64
    """Sparse ids, ascending."""
    labels: list[bytes]
    """All of them, ascending."""
    page_weights: F64
    item_weights: F64
    src: I64
    """Of all edges in order of (source, type, destination, edge id): places among ``pages``."""
    types: I64
    dst: I64
    """Ids."""
    eids: I64
    weights: F64

    @cached_property
    def indptr(self) -> I64:
        return np.searchsorted(self.src, np.arange(PAGES + 1))

    @cached_property
    def slots(self) -> tuple[I64, I64]:
        """Where each edge is, by type and edge id."""
        out = (np.empty(LINKS, np.int64), np.empty(HAS, np.int64))
        for t in (0, 1):
            mine = np.flatnonzero(self.types == t)
            out[t][self.eids[mine]] = mine
        return out

    def slot_of(self, types: NDArray[np.int32], eids: I64) -> I64:
        """The places of drawn edges."""
        return np.where(types == 0, self.slots[0][np.where(types == 0, eids, 0)], self.slots[1][np.where(types == 1, eids, 0)])

    def row_of(self, ids: I64) -> I64:
        """The places of pages."""
        return np.searchsorted(self.pages, ids)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    rng = np.random.default_rng(77)
    pages = np.sort(rng.choice(10**12, PAGES, replace=False))
    page_weights = np.exp(3 * rng.normal(size=PAGES)).astype(np.float32) * (rng.random(PAGES) > 0.1)
    item_weights = (rng.random(ITEMS) ** 9).astype(np.float32)
    # The first page has a tenth of all links, and the degrees of the others are skewed.
    heads = np.where(rng.random(LINKS) < 0.1, 0, (rng.random(LINKS) ** 2 * PAGES).astype(np.int64))
    tails = (rng.random(LINKS) ** 2 * PAGES).astype(np.int64)
    link_weights = np.exp(2 * rng.normal(size=LINKS)).astype(np.float32) * (rng.random(LINKS) > 0.05)
    owners, owned = rng.integers(0, PAGES, HAS), rng.integers(0, ITEMS, HAS)
    schema = {
        "parts": 8,
        "placement": "mix64",
        "direction": "out",
        "nodes": {
            "page": {"weighted": True, "features": {"of": "bytes"}, "graph_label": "of", "tables": {"turned": "1 / (0.1 + weight)"}},
            "item": {"weighted": True},
        },
        "edges": {"page:links:page": {"weighted": True}, "page:has:item": {}},
    }
    with asterism.open(tmp_path_factory.mktemp("scale")) as client:
        client.create_space("scale", schema)
        load = client.begin_load("scale", source="scale")
        # Label i has as many pages as its square root: some are rare, most are not.
        text = [b"graph %d" % int(x * x * LABELS) for x in rng.random(PAGES)]
        load.write_nodes(0, "page", pages, weights=page_weights, features={"of": text})
        load.write_nodes(1, "item", np.arange(ITEMS), weights=item_weights)
        load.write_edges(2, "links", pages[heads], pages[tails], weights=link_weights)
        load.write_edges(3, "has", pages[owners], owned)
        load.commit()
        graph = client.graph("scale")
        graph.build(timeout_s=HANG_S)
        src, types = np.concatenate([heads, owners]), np.repeat([0, 1], [LINKS, HAS])
        dst, eids = np.concatenate([pages[tails], owned]), np.concatenate([np.arange(LINKS), np.arange(HAS)])
        weights = np.concatenate([link_weights.astype(np.float64), np.ones(HAS)])
        order = np.lexsort((eids, dst, types, src))
        columns = {"src": src[order], "types": types[order], "dst": dst[order], "eids": eids[order], "weights": weights[order]}
        yield World(
            graph=graph,
            pages=pages,
            labels=sorted(set(text)),
            page_weights=page_weights.astype(np.float64),
            item_weights=item_weights.astype(np.float64),
            **columns,
        )


def require_uniform(below: F64, share: F64, what: str) -> None:
    """Draws with so much of their law's mass below them, and so much their own; one after the other they are independent too."""
    assert (share > 0).all(), f"{what}: something impossible was drawn"
    u = np.clip(below + np.random.default_rng(5).random(len(below)) * share, 0, 1 - 1e-12)
    seen = np.bincount((u * CELLS).astype(np.int64), minlength=CELLS)
    assert stats.chisquare(seen).pvalue > ALPHA, f"{what}: {seen.tolist()}"
    pairs = np.bincount((u[:-1] * 8).astype(np.int64) * 8 + (u[1:] * 8).astype(np.int64), minlength=64)
    assert stats.chisquare(pairs).pvalue > ALPHA, f"{what}, one after the other: {pairs.tolist()}"


def test_draws_that_are_a_little_off_are_seen() -> None:
    rng, weights = np.random.default_rng(1), np.arange(1.0, 101.0)
    before = np.concatenate([[0.0], np.cumsum(weights)])
    for exponent, fair in ((1.0, True), (0.9, False)):
        at = rng.choice(100, 30_000, p=weights**exponent / (weights**exponent).sum())
        law = (before[at] / before[-1], weights[at] / before[-1], "by weight")
        if fair:
            require_uniform(*law)
            with pytest.raises(AssertionError, match="one after the other"):
                require_uniform(*(np.repeat(column[:15_000], 2) for column in law[:2]), "twice each")
        else:
            with pytest.raises(AssertionError, match="by weight"):
                require_uniform(*law)


def require_rows(world: World, rows: I64, slots: I64, weights: F64, what: str) -> None:
    """Edges that were each drawn from all edges of a page, or from those of positive weight among some types."""
    before = np.concatenate([[0.0], np.cumsum(weights)])
    low, high = before[world.indptr[rows]], before[world.indptr[rows + 1]]
    assert (world.src[slots] == rows).all(), f"{what}: an edge of another node"
    require_uniform((before[slots] - low) / (high - low), weights[slots] / (high - low), what)


def weights_of(world: World, types: tuple[int, ...], weighted: bool) -> F64:
    """What edges count in draws along some types."""
    return np.where(np.isin(world.types, types), world.weights if weighted else 1.0, 0.0)


@pytest.mark.parametrize("weight", ["", "turned", None])
@pytest.mark.parametrize("replace", [True, False])
def test_nodes(world: World, weight: str | None, replace: bool) -> None:
    exact = {"": world.page_weights, "turned": 1 / (0.1 + world.page_weights), None: np.ones(PAGES)}[weight].astype(np.float32).astype(np.float64)
    drawn = world.graph.sample_nodes(30_000, "page", weighted=weight is not None, weight=weight or "", replace=replace, seed=1)
    rows = world.row_of(drawn.nodes)
    assert np.array_equal(world.pages[rows], drawn.nodes)
    before = np.concatenate([[0.0], np.cumsum(exact)])
    if replace:
        require_uniform(before[rows] / before[-1], exact[rows] / before[-1], f"nodes by {weight}")
        return
    assert len(np.unique(rows)) == len(rows)
    # Of draw k the law is that of what is left: less the earlier ones, of which some lie below.
    earlier = np.concatenate([[0.0], np.cumsum(exact[rows])[:-1]])
    gone, left = _sums_below(rows, exact[rows]), before[-1] - earlier
    require_uniform((before[rows] - gone) / left, exact[rows] / left, f"different nodes by {weight}")


def _sums_below(rows: I64, weights: F64) -> F64:
    """Of each draw the weight of the earlier draws of lower rows: a Fenwick tree over their ranks."""
    rank = np.argsort(np.argsort(rows)) + 1
    tree, out = np.zeros(len(rows) + 1), np.zeros(len(rows))
    for k, (at, weight) in enumerate(zip(rank.tolist(), weights.tolist(), strict=True)):
        low = at - 1
        while low > 0:
            out[k] += tree[low]
            low -= low & -low
        while at <= len(rows):
            tree[at] += weight
            at += at & -at
    return out


@pytest.mark.parametrize("weighted", [True, False])
def test_edges_of_all_types(world: World, weighted: bool) -> None:
    drawn = world.graph.sample_edges(40_000, weighted=weighted, seed=2)
    exact = world.weights if weighted else np.ones(LINKS + HAS)
    slots, before = world.slot_of(drawn.types, drawn.edge_ids), np.concatenate([[0.0], np.cumsum(exact)])
    assert np.array_equal(world.dst[slots], drawn.dst)
    require_uniform(before[slots] / before[-1], exact[slots] / before[-1], "edges")


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("etypes", [["links"], ["links", "has"]])
def test_neighbors_and_fanouts(world: World, weighted: bool, etypes: list[str]) -> None:
    exact = weights_of(world, (0, 1) if len(etypes) == 2 else (0,), weighted)
    asked = np.concatenate([np.zeros(4000, np.int64), np.random.default_rng(3).integers(0, PAGES, 12_000)])
    near = world.graph.sample_neighbors(world.pages[asked], etypes, 3, weighted=weighted, edge_ids=True, seed=3)
    assert near.edge_ids is not None
    hit = near.mask
    require_rows(world, np.repeat(asked, 3)[hit.ravel()], world.slot_of(near.types[hit], near.edge_ids[hit]), exact, "neighbors")
    far = world.graph.sample_fanout(world.pages[asked[3000:8000]], ["links", etypes], [2, 2], weighted=weighted, edge_ids=True, seed=4)
    first, second = far.hops
    assert second.edge_ids is not None
    hit = second.nodes >= 0
    rows = world.row_of(np.repeat(first.nodes, 2)[hit])
    require_rows(world, rows, world.slot_of(second.types[hit], second.edge_ids[hit]), exact, "the second hop of a fanout")


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("etypes", [["links"], ["links", "has"]])
def test_distinct_neighbors(world: World, weighted: bool, etypes: list[str]) -> None:
    exact = weights_of(world, (0, 1) if len(etypes) == 2 else (0,), weighted)
    before = np.concatenate([[0.0], np.cumsum(exact)])
    count = 4
    degrees = np.bincount(world.src[np.isin(world.types, (0, 1) if len(etypes) == 2 else (0,))], minlength=PAGES)
    wide = np.flatnonzero((degrees > count) & (np.add.reduceat(exact > 0, np.minimum(world.indptr[:-1], len(exact) - 1)) > count))
    asked = np.concatenate([np.zeros(2000, np.int64), np.random.default_rng(4).choice(wide, 8000)])
    near = world.graph.sample_neighbors(world.pages[asked], etypes, count, weighted=weighted, replace=False, edge_ids=True, seed=5)
    assert near.edge_ids is not None
    assert near.mask.all()
    slots = world.slot_of(near.types, near.edge_ids)
    assert (world.src[slots] == asked[:, None]).all()
    low, high = before[world.indptr[asked]], before[world.indptr[asked + 1]]
    for k in range(count):
        mine, earlier = slots[:, k], slots[:, :k]
        assert (earlier != mine[:, None]).all()
        left = high - low - exact[earlier].sum(axis=1)
        below = before[mine] - low - np.where(earlier < mine[:, None], exact[earlier], 0).sum(axis=1)
        rest = left > 1e-6 * (high - low)  # what is less is rounding here, not there
        require_uniform((below / left)[rest], (exact[mine] / left)[rest], f"draw {k} without replacement")


@pytest.mark.parametrize("weighted", [True, False])
def test_walks_with_restarts(world: World, weighted: bool) -> None:
    exact, restart = weights_of(world, (0,), weighted), 0.2
    starts = world.pages[np.random.default_rng(6).integers(0, PAGES, 8000)]
    walks = world.graph.random_walk(starts, ["links"], 6, restart=restart, weighted=weighted, edge_ids=True, seed=6)
    assert walks.edge_ids is not None
    stepped = walks.types >= 0
    here = world.row_of(walks.nodes[:, :-1][stepped])
    require_rows(world, here, world.slot_of(walks.types[stepped], walks.edge_ids[stepped]), exact, "steps of walks")
    back = (walks.types < 0) & (walks.nodes[:, 1:] >= 0)
    assert (walks.nodes[:, 1:][back] == np.repeat(starts, 6).reshape(-1, 6)[back]).all()
    led = np.add.reduceat(exact, np.minimum(world.indptr[:-1], len(exact) - 1)) * (np.diff(world.indptr) > 0)
    open_ = (walks.nodes[:, :-1] >= 0) & (led[np.minimum(world.row_of(walks.nodes[:, :-1]), PAGES - 1)] > 0)
    assert stats.binomtest(int(back[open_].sum()), int(open_.sum()), restart).pvalue > ALPHA


@pytest.mark.parametrize(("p", "q"), [(0.2, 3.0), (4.0, 0.25)])
def test_walks_with_p_and_q(world: World, p: float, q: float) -> None:
    exact = weights_of(world, (0,), True)
    starts = world.pages[np.random.default_rng(7).integers(0, PAGES, 2500)]
    walks = world.graph.random_walk(starts, ["links"], 4, p=p, q=q, edge_ids=True, seed=7)
    assert walks.edge_ids is not None
    below, shares = [], []
    for walked, took in zip(walks.nodes, walks.edge_ids, strict=True):
        for s in range(1, 4):
            if walked[s + 1] < 0:
                break
            was, here = world.row_of(walked[s - 1 : s + 1])
            row = slice(world.indptr[here], world.indptr[here + 1])
            joined = world.dst[world.indptr[was] : world.indptr[was + 1]][world.types[world.indptr[was] : world.indptr[was + 1]] == 0]
            bias = np.where(world.dst[row] == walked[s - 1], 1 / p, np.where(np.isin(world.dst[row], joined), 1.0, 1 / q))
            biased = exact[row] * bias
            at = world.slots[0][took[s]] - row.start
            below.append(biased[:at].sum() / biased.sum())
            shares.append(biased[at] / biased.sum())
    assert len(below) > 3000
    require_uniform(np.array(below), np.array(shares), "steps with p and q")


def test_walks_over_different_neighbors(world: World) -> None:
    wide = np.flatnonzero(np.diff(world.indptr) >= 6)
    asked, n = np.concatenate([np.zeros(300, np.int64), np.random.default_rng(8).choice(wide, 3000)]), 3
    for etypes, types in ((["links"], (0,)), (["links", "has"], (0, 1))):
        exact = weights_of(world, types, True)
        walks = world.graph.random_walk(world.pages[asked], [etypes], 1, walks=n, ntype="page", first_step="distinct", edge_ids=True, seed=8)
        assert walks.edge_ids is not None
        assert walks.starts is not None
        slots = world.slot_of(walks.types[:, 0], walks.edge_ids[:, 0])
        below, shares = [], []
        for start in range(len(asked)):
            row = slice(world.indptr[asked[start]], world.indptr[asked[start] + 1])
            left, neighbors = exact[row].copy(), world.dst[row] * 2 + world.types[row]
            for slot in slots[np.searchsorted(walks.starts, start) : np.searchsorted(walks.starts, start + 1)]:
                at = slot - row.start
                total = left.sum()
                if total < 1e-6 * exact[row].sum():
                    break
                below.append(left[:at].sum() / total)
                shares.append(left[at] / total)
                left[neighbors == neighbors[at]] = 0
        require_uniform(np.array(below), np.array(shares), f"different neighbors along {etypes}")


@pytest.mark.parametrize("disjoint", [True, False])
def test_subgraphs(world: World, disjoint: bool) -> None:
    seeds = world.pages[np.random.default_rng(9).choice(PAGES, 5000, replace=False)]
    sub = world.graph.sample_subgraph(seeds, [2, 2], ["links", "has"], ntype="page", replace=True, disjoint=disjoint, seed=9)
    assert sub.edge_ids is not None
    for t, name in enumerate(("page:links:page", "page:has:item")):
        rows = world.row_of(sub.nodes["page"][sub.row[name]])
        require_rows(world, rows, world.slots[t][sub.edge_ids[name]], weights_of(world, (t,), True), f"edges {name} of subgraphs")


@pytest.mark.parametrize("measure", ["sum", "sqrt", "squares"])
@pytest.mark.parametrize("replace", [True, False])
def test_layers(world: World, measure: str, replace: bool) -> None:
    nodes = np.random.default_rng(10).choice(PAGES, 3000, replace=False)
    drawn = world.graph.sample_layer(world.pages[nodes], ["links", "has"], 2500, measure=measure, replace=replace, seed=10)
    mine = np.flatnonzero(np.isin(world.src, nodes))
    key = world.dst[mine] * 2 + world.types[mine]  # the far type follows from the edge's
    known, number = np.unique(key, return_inverse=True)
    if measure == "squares":
        pairs, of_pair = np.unique(world.src[mine] * len(known) + number, return_inverse=True)
        counted = np.bincount(pairs % len(known), np.bincount(of_pair, world.weights[mine]) ** 2, len(known))
    else:
        counted = np.bincount(number, world.weights[mine], len(known))
        counted = np.sqrt(counted) if measure == "sqrt" else counted
    at = np.searchsorted(known, drawn.nodes * 2 + drawn.types)
    before = np.concatenate([[0.0], np.cumsum(counted)])
    gone, earlier = (np.zeros(len(at)),) * 2
    if not replace:
        gone, earlier = _sums_below(at, counted[at]), np.concatenate([[0.0], np.cumsum(counted[at])[:-1]])
    left = before[-1] - earlier
    require_uniform((before[at] - gone) / left, counted[at] / left, f"layers by {measure}")
    assert np.allclose(drawn.probabilities, counted[at] / left, rtol=1e-9)


def test_a_layer_whose_edges_take_several_replies(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = np.tile(world.pages, 10)  # 6.5 million edges: 104 MB, and a reply has 60
    drawn = world.graph.sample_layer(nodes, ["links", "has"], 3000, seed=16)
    known, number = np.unique(world.dst * 2 + world.types, return_inverse=True)
    counted = np.bincount(number, world.weights)
    at, before = np.searchsorted(known, drawn.nodes * 2 + drawn.types), np.concatenate([[0.0], np.cumsum(counted)])
    require_uniform(before[at] / before[-1], counted[at] / before[-1], "a layer of many edges")
    assert np.allclose(drawn.probabilities, counted[at] / before[-1], rtol=1e-9)
    few = world.graph.sample_layer(world.pages[:5000], None, 300, ntype="page", measure="squares", edge_ids=True, seed=17)
    monkeypatch.setattr("graphd.whole._PIECE_BYTES", 50_000)
    for room in ("graphd.read", "graphd.layer", "graphd.whole"):
        monkeypatch.setattr(f"{room}.REPLY_BYTES", 1_000_000)
    with pytest.raises(asterism.InvalidRequest, match=r"nodes\[0\] = \d+ has \d+ edges .* leave it out"):
        world.graph.sample_layer(world.pages[:5000], None, 300, ntype="page", measure="squares", edge_ids=True, seed=17)
    for room in ("graphd.read", "graphd.layer", "graphd.whole"):
        monkeypatch.setattr(f"{room}.REPLY_BYTES", 2_000_000)
    again = world.graph.sample_layer(world.pages[:5000], None, 300, ntype="page", measure="squares", edge_ids=True, seed=17)
    assert cases.digest(again) == cases.digest(few)
    monkeypatch.setattr("graphd.whole._MOST_BYTES", 1_000_000)
    with pytest.raises(asterism.InvalidRequest, match=r"the 5000 nodes of the layer have \d+ edges .* layers of fewer nodes"):
        world.graph.sample_layer(world.pages[:5000], None, 300, ntype="page", measure="squares", edge_ids=True, seed=17)


@pytest.mark.parametrize("weighted", [True, False])
def test_negatives_and_nodes_like_others(world: World, weighted: bool) -> None:
    exact = world.page_weights if weighted else np.ones(PAGES)
    before = np.concatenate([[0.0], np.cumsum(exact)])
    heaviest = np.argsort(-world.page_weights)[:200]  # of which rows leave out much
    rng = np.random.default_rng(11)
    out = np.stack([rng.choice(heaviest, 30, replace=False) for _ in range(600)])
    drawn = world.graph.sample_negatives(world.pages[:600], 20, "page", weighted=weighted, exclude=world.pages[out], probabilities=True, seed=11)
    rows = world.row_of(drawn.nodes)
    left = before[-1] - exact[out].sum(axis=1)
    lower = np.stack([np.where(row[:, None] > some, exact[some], 0).sum(axis=1) for row, some in zip(rows, out, strict=True)])
    shares = exact[rows] / left[:, None]
    require_uniform(((before[rows] - lower) / left[:, None]).ravel(), shares.ravel(), "negatives")
    assert np.allclose(drawn.probabilities, shares, rtol=1e-9)
    assert not (rows[:, :, None] == out[:, None, :]).any()
    types = np.tile(np.array([0, 1], np.int32), 1500)
    like = world.graph.sample_nodes_like(np.zeros(3000, np.int64), 8, ntype=types, weighted=weighted, seed=12)
    for t, own in enumerate((exact, world.item_weights if weighted else np.ones(ITEMS))):
        nodes = like.nodes[types == t].ravel()
        at, total = (world.row_of(nodes), own.sum()) if t == 0 else (nodes, own.sum())
        require_uniform(np.concatenate([[0.0], np.cumsum(own)])[at] / total, own[at] / total, f"nodes like those of type {t}")


def test_labels_of_graphs(world: World) -> None:
    drawn = world.graph.sample_graph_labels(40_000, seed=14).labels
    at = np.searchsorted(np.array(world.labels), np.array(drawn))
    assert [world.labels[i] for i in at] == list(drawn)
    require_uniform(at / len(world.labels), np.full(len(at), 1 / len(world.labels)), "labels")


def test_the_heaviest_neighbors_are_no_draw(world: World) -> None:
    asked = np.concatenate([[0], np.random.default_rng(15).integers(0, PAGES, 3000)])
    top = world.graph.top_k_neighbors(world.pages[asked], ["links", "has"], 5, edge_ids=True)
    order = np.lexsort((world.eids, world.types, world.dst, -world.weights, world.src))
    first = world.indptr[asked]
    there = np.arange(5) < np.diff(world.indptr)[asked][:, None]
    expected = order[np.where(there, first[:, None] + np.arange(5), 0)]
    assert np.array_equal(top.nodes, np.where(there, world.dst[expected], -1))
    assert np.array_equal(top.edge_ids, np.where(there, world.eids[expected], -1))  # type: ignore[arg-type]  # they were asked for

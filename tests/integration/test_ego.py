"""Ego subgraphs: the law of their nodes by enumeration, DGL's own sampler by the same law, and the edges among them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise, permutations
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from tests.kit import cases, dgl_env

import asterism
from asterism import Graph
from asterism.records import Subgraph

ALPHA = 1e-4
FANOUTS = [2, 2]
NODES = 7
WEIGHTS = {
    (0, 1): 1.0,
    (0, 2): 3.0,
    (0, 3): 0.5,
    (1, 0): 1.0,
    (1, 4): 2.0,
    (2, 0): 1.0,
    (2, 4): 1.0,
    (2, 5): 4.0,
    (3, 6): 1.0,
    (4, 0): 2.0,
    (5, 1): 1.0,
    (6, 0): 1.0,
    (4, 5): 1.0,
    (5, 6): 2.0,
}
"""By (source, destination); nodes are met along the edges."""
Law = dict[tuple[int, ...], float]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[asterism.Client]:
    with asterism.open(cases.built_in(tmp_path_factory.mktemp("ego"))) as opened:
        yield opened


@pytest.fixture(scope="module")
def graph(client: asterism.Client) -> Graph:
    client.create_space("small", {"parts": 3, "direction": "both", "nodes": {"n": {}}, "edges": {"n:to:n": {"weighted": True}, "n:beside:n": {}}})
    opened = client.graph("small")
    opened.upsert_nodes(np.arange(NODES), "n")
    src, dst = zip(*WEIGHTS, strict=True)
    opened.upsert_edges(src, dst, "to", weights=list(WEIGHTS.values()))
    opened.upsert_edges([0, 1, 2, 2], [5, 5, 3, 2], "beside")
    opened.build()
    return opened


@pytest.fixture(scope="module")
def typed(client: asterism.Client) -> Graph:
    return client.graph("cases")


def chosen(node: int, count: int, *, weighted: bool, replace: bool) -> dict[frozenset[int], float]:
    """The probability of every set of neighbors that a node's draws are of: successive draws by weight, each in every order."""
    own = {b: (w if weighted else 1.0) for (a, b), w in WEIGHTS.items() if a == node}
    law: dict[frozenset[int], float] = {}
    if replace:
        orders: list[tuple[tuple[int, ...], float]] = [((), 1.0)]
        for _ in range(count):
            orders = [((*order, b), p * w / sum(own.values())) for order, p in orders for b, w in own.items()]
    else:
        orders = []
        for order in permutations(own, min(count, len(own))):
            p, left = 1.0, sum(own.values())
            for b in order:
                p, left = p * own[b] / left, left - own[b]
            orders.append((order, p))
    for order, p in orders:
        law[frozenset(order)] = law.get(frozenset(order), 0.0) + p
    return law


def law_of(seed: int, fanouts: list[int], *, every: bool, weighted: bool, replace: bool) -> Law:
    """The probability of every set of nodes around a seed."""
    states = {(frozenset({seed}), frozenset({seed})): 1.0}
    for count in fanouts:
        after: dict[tuple[frozenset[int], frozenset[int]], float] = {}
        for (met, fresh), p in states.items():
            reached = {frozenset[int](): p}
            for node in sorted(met if every else fresh):
                found: dict[frozenset[int], float] = {}
                for some, q in reached.items():
                    for more, r in chosen(node, count, weighted=weighted, replace=replace).items():
                        found[some | more] = found.get(some | more, 0.0) + q * r
                reached = found
            for some, q in reached.items():
                state = (met | some, some - met)
                after[state] = after.get(state, 0.0) + q
        states = after
    law: Law = {}
    for (met, _), p in states.items():
        law[tuple(sorted(met))] = law.get(tuple(sorted(met)), 0.0) + p
    return law


def follows(counts: Mapping[tuple[int, ...], int], law: Law) -> float:
    """The p-value of counts by a law; cells that expect fewer than 5 are one."""
    assert set(counts) <= set(law)
    n, rare = sum(counts.values()), [0.0, 0.0]
    cells = []
    for outcome, p in law.items():
        if p * n < 5:
            rare = [rare[0] + counts.get(outcome, 0), rare[1] + p * n]
        else:
            cells.append((counts.get(outcome, 0), p * n))
    if rare[1] >= 5:
        cells.append((rare[0], rare[1]))
    elif rare[1]:
        cells[0] = (cells[0][0] + rare[0], cells[0][1] + rare[1])
    observed, expected = np.array(cells).T
    return float(stats.chisquare(observed, expected).pvalue)


def sets_of(sub: Subgraph, seeds: int) -> list[tuple[int, ...]]:
    """The nodes of each component."""
    assert sub.batch is not None
    bounds = np.searchsorted(sub.batch["n"], np.arange(seeds + 1))
    return [tuple(sorted(sub.nodes["n"][a:b].tolist())) for a, b in pairwise(bounds)]


@pytest.mark.parametrize("expand", ["first", "every"])
@pytest.mark.parametrize(("weighted", "replace"), [(False, False), (True, False), (True, True)])
def test_every_set_of_nodes_comes_as_often_as_its_draws_say(graph: Graph, expand: str, weighted: bool, replace: bool) -> None:
    n = 4000
    sub = graph.sample_ego_subgraphs(np.zeros(n, np.int64), FANOUTS, "to", weighted=weighted, replace=replace, expand=expand, seed=17)
    law = law_of(0, FANOUTS, every=expand == "every", weighted=weighted, replace=replace)
    assert abs(sum(law.values()) - 1) < 1e-12
    assert len(law) > 5
    found = sets_of(sub, n)
    assert follows(Counter(found), law) > ALPHA
    # Of two seeds side by side: whether each has the likeliest set.
    likeliest = max(law, key=lambda outcome: law[outcome])
    has, p = np.array([outcome == likeliest for outcome in found]), law[likeliest]
    pairs = [int((has[:-1] & has[1:]).sum()), int((has[:-1] ^ has[1:]).sum()), int((~has[:-1] & ~has[1:]).sum())]
    assert stats.chisquare(pairs, np.array([p * p, 2 * p * (1 - p), (1 - p) ** 2]) * (n - 1)).pvalue > ALPHA


@pytest.mark.dgl
def test_dgls_own_sampler_follows_the_law_of_every_node_expanded_in_every_hop(graph: Graph, dgl_python: Path, tmp_path: Path) -> None:
    n, fanouts = 500, [2, 1]
    backwards = [(b, a) for a, b in WEIGHTS]  # DGL goes against the edges
    asked = {"nodes": NODES, "edges": backwards, "fanouts": fanouts, "seed": 0, "times": n}
    out = dgl_env.run(dgl_python, dgl_env.SCRIPTS / "shadow.py", json.dumps(asked), home=tmp_path, more={"OMP_NUM_THREADS": "1"})
    theirs = {tuple(map(int, name.split(","))): count for name, count in json.loads(out.splitlines()[-1]).items()}
    law = law_of(0, fanouts, every=True, weighted=False, replace=False)
    assert follows(theirs, law) > ALPHA
    mine = Counter[tuple[int, ...]]()
    for seed in range(200):
        sub = graph.sample_ego_subgraphs([0], fanouts, "to", weighted=False, disjoint=False, expand="every", seed=seed)
        assert sub.batch is None
        mine[tuple(sorted(sub.nodes["n"].tolist()))] += 1
    assert follows(mine, law) > ALPHA


@pytest.mark.parametrize("disjoint", [True, False])
def test_nodes_are_those_of_the_sampled_subgraph_and_edges_all_those_among_them(typed: Graph, disjoint: bool) -> None:
    seeds = np.array([3, 40, 3, 7, -1, 88, 10**9])
    asked = {"ntype": "paper", "disjoint": disjoint, "direction": "in", "seed": 4, "weights": True}
    sub = typed.sample_ego_subgraphs(seeds, [3, 2], ["cites", "writes"], among=["writes", "cites", "by"], **asked)
    grown = typed.sample_subgraph(seeds, [3, 2], ["cites", "writes"], **asked)
    assert list(sub.row) == ["person:writes:paper", "paper:cites:paper", "paper:by:person"]
    assert (sub.batch is None) == (not disjoint)
    none = {name: np.zeros(len(ids), np.int64) for name, ids in sub.nodes.items()}
    batch, trees = sub.batch or none, grown.batch or none
    for name in sub.nodes:
        order = np.argsort(trees[name], kind="stable")
        assert np.array_equal(sub.nodes[name], grown.nodes[name][order])
        assert np.array_equal(batch[name], trees[name][order])
        assert sub.num_sampled_nodes[name] == (len(order),)
    there = seeds >= 0
    assert np.array_equal(sub.nodes["paper"][sub.seeds[there]], seeds[there])
    assert (sub.seeds[~there] == -1).all()
    if disjoint:
        assert np.array_equal(sub.seeds[there], np.searchsorted(sub.batch["paper"], np.flatnonzero(there)))  # type: ignore[index]
    assert sub.edge_ids is not None
    total = 0
    for name, (src, dst, _) in ((name, cases.edges()[name.split(":")[1]]) for name in sub.row):
        near, _, far = name.split(":")
        at = {(b, node): i for i, (b, node) in enumerate(zip(batch[near].tolist(), sub.nodes[near].tolist(), strict=True))}
        to = {(b, node): i for i, (b, node) in enumerate(zip(batch[far].tolist(), sub.nodes[far].tolist(), strict=True))}
        expected = {
            (at[b, s], to[b, d], eid)
            for eid, (s, d) in enumerate(zip(src.tolist(), dst.tolist(), strict=True))
            for b in range(7)
            if (b, s) in at and (b, d) in to
        }
        found = list(zip(sub.row[name].tolist(), sub.col[name].tolist(), sub.edge_ids[name].tolist(), strict=True))
        assert len(found) == len(expected)
        assert set(found) == expected
        total += len(found)
    assert total > sum(map(len, grown.row.values())) / 2


def test_edges_of_other_types_and_conditions(graph: Graph) -> None:
    sub = graph.sample_ego_subgraphs([0], [-1], "to", among=["to", "beside"], where="type == 'beside' or weight >= 1")
    assert sub.nodes["n"].tolist() == [0, 1, 2]
    assert sorted(zip(sub.row["n:to:n"].tolist(), sub.col["n:to:n"].tolist(), strict=True)) == [(0, 1), (0, 2), (1, 0), (2, 0)]
    assert (sub.row["n:beside:n"].tolist(), sub.col["n:beside:n"].tolist()) == ([2], [2])
    none = graph.sample_ego_subgraphs([], [2], "to")
    assert none.nodes["n"].size == none.row["n:to:n"].size == 0


def test_what_can_not_be_drawn_is_refused_with_its_value(graph: Graph) -> None:
    for asked, error, said in (
        ({"fanouts": []}, asterism.InvalidRequest, r"fanouts \[\]"),
        ({"fanouts": [-2]}, asterism.InvalidRequest, r"fanouts\[0\] -2"),
        ({"fanouts": [2], "expand": "all"}, asterism.InvalidRequest, "expand 'all'"),
        ({"fanouts": [2], "among": "eats"}, asterism.NotFound, "'eats'"),
        ({"fanouts": [2], "direction": "up"}, asterism.InvalidRequest, "direction 'up'"),
        ({"fanouts": [2], "weight": "new"}, asterism.NotFound, "'new'"),
    ):
        with pytest.raises(error, match=said):
            graph.sample_ego_subgraphs([0], etypes="to", **asked)  # type: ignore[arg-type]

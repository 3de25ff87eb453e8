"""The probability of each draw, as a trainer gets it: against exact fractions of the weights that were written."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

import asterism
from asterism import Graph
from asterism.records import NeighborSample

ALPHA = 1e-6
"""Chance that a test of counts or means fails on right code."""
SIGMAS = 4.9
"""How far a mean may be off at this chance, in its standard errors."""
PRECISION = 1e-14
"""Largest relative error of a probability."""

USERS = {7_000_000_019: 90.0, 3: 3.0, 50: 2.0, 11: 1.0, 12: 0.5, 13: 0.0}
ITEMS = {0: 4.0, 2: 1.0, 3: 1e-3}
"""Item 1 was deleted: a hole."""
BUYS = [(3, 0, 5.0), (3, 0, 2.0), (3, 2, 1.0), (3, 3, 0.0), (50, 0, 1e9), (50, 2, 0.25), (50, 3, 0.5), (11, 2, 3.0), (12, 0, 0.0), (12, 3, 0.0)]
"""(user, item, weight) by edge id: 3 has bought 0 twice, 11 only once, 12 nothing that weighs anything, 13 nothing."""
SEES = [(3, 3), (50, 0), (50, 2), (50, 3)]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    schema = {
        "parts": 3,
        "direction": "both",
        "nodes": {"user": {"weighted": True}, "item": {"weighted": True}},
        "edges": {"user:buys:item": {"weighted": True}, "user:sees:item": {}},
    }
    with asterism.open(tmp_path_factory.mktemp("probabilities")) as client:
        client.create_space("shop", schema)
        shop = client.graph("shop")
        shop.upsert_nodes(list(USERS), "user", weights=list(USERS.values()))
        shop.upsert_nodes([0, 1, 2, 3], "item", weights=[4.0, 8.0, 1.0, 1e-3])
        shop.delete_nodes([1], "item")
        src, dst, weights = zip(*BUYS, strict=True)
        shop.upsert_edges(src, dst, "buys", weights=weights)
        shop.upsert_edges(*zip(*SEES, strict=True), "sees")
        shop.build()
        yield shop


def given_earlier(weights: Mapping[object, float], order: Sequence[object]) -> list[Fraction]:
    """The probability of each of some successive draws, given those before it."""
    left, out = sum((Fraction(np.float32(w).item()) for w in weights.values()), Fraction(0)), []
    for drawn in order:
        weight = Fraction(np.float32(weights[drawn]).item())
        out.append(weight / left)
        left -= weight
    return out


def assert_close(found: np.ndarray, expected: Sequence[Fraction]) -> None:
    assert found.dtype == np.float64
    assert len(found) == len(expected)
    assert all(abs(Fraction(p) - q) <= q * Fraction(PRECISION) for p, q in zip(found.tolist(), expected, strict=True)), (found, expected)


def nodes_of(*types: Mapping[int, float], weighted: bool = True) -> dict[object, float]:
    return {(t, i): w if weighted else 1.0 for t, nodes in enumerate(types) for i, w in nodes.items()}


@pytest.mark.parametrize("weighted", [True, False])
def test_drawn_nodes_carry_their_shares_and_distinct_ones_what_the_earlier_left(graph: Graph, weighted: bool) -> None:
    weights = nodes_of(USERS, ITEMS, weighted=weighted)
    able = sum(w > 0 for w in weights.values())
    for seed in range(100):
        drawn = graph.sample_nodes(5, weighted=weighted, probabilities=True, seed=seed)
        rows = list(zip(drawn.types.tolist(), drawn.nodes.tolist(), strict=True))
        assert drawn.probabilities is not None
        assert_close(drawn.probabilities, [given_earlier(weights, [row])[0] for row in rows])
        for n in (1, 3, able):
            distinct = graph.sample_nodes(n, weighted=weighted, replace=False, probabilities=True, seed=seed)
            rows = list(zip(distinct.types.tolist(), distinct.nodes.tolist(), strict=True))
            assert distinct.probabilities is not None
            assert_close(distinct.probabilities, given_earlier(weights, rows))
        assert distinct.probabilities[-1] == 1.0


def test_the_products_are_how_often_each_order_is_drawn(graph: Graph) -> None:
    weights = nodes_of(USERS)
    trials, found, seen = 3000, Counter[tuple[int, ...]](), {}
    for seed in range(trials):
        drawn = graph.sample_nodes(3, "user", replace=False, probabilities=True, seed=seed)
        assert drawn.probabilities is not None
        order = tuple(drawn.nodes.tolist())
        found[order] += 1
        seen[order] = float(drawn.probabilities.prod())
    able = [i for i, w in USERS.items() if w > 0]
    law = {order: float(math.prod(given_earlier(weights, [(0, i) for i in order]))) for order in itertools.permutations(able, 3)}
    assert math.isclose(sum(law.values()), 1.0, rel_tol=1e-12)
    assert all(math.isclose(p, law[order], rel_tol=1e-13) for order, p in seen.items())
    common = [order for order, p in law.items() if p * trials >= 5]
    assert len(common) >= 10
    rest = 1 - sum(law[order] for order in common)
    counts = [*(found[order] for order in common), trials - sum(found[order] for order in common)]
    assert chisquare(counts, np.array([*(law[order] for order in common), rest]) * trials).pvalue > ALPHA


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("replace", [True, False])
def test_drawn_edges_carry_theirs_one_for_each_of_parallel_edges(graph: Graph, weighted: bool, replace: bool) -> None:
    weights: dict[object, float] = {(0, e): w if weighted else 1.0 for e, (_, _, w) in enumerate(BUYS)} | {(1, e): 1.0 for e in range(len(SEES))}
    for seed in range(30):
        drawn = graph.sample_edges(7, weighted=weighted, replace=replace, probabilities=True, seed=seed)
        rows = list(zip(drawn.types.tolist(), drawn.edge_ids.tolist(), strict=True))
        assert drawn.probabilities is not None
        assert_close(drawn.probabilities, [given_earlier(weights, [row])[0] for row in rows] if replace else given_earlier(weights, rows))


def at_node(node: int, types: Sequence[str], *, weighted: bool) -> dict[object, float]:
    """The weights of a user's edges by (edge type, edge id)."""
    out: dict[object, float] = {}
    if "buys" in types:
        out |= {(0, e): w if weighted else 1.0 for e, (user, _, w) in enumerate(BUYS) if user == node}
    if "sees" in types:
        out |= {(1, e): 1.0 for e, (user, _) in enumerate(SEES) if user == node}
    return out


@pytest.mark.parametrize("types", [["buys"], ["sees"], ["buys", "sees"]])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("replace", [True, False])
def test_drawn_neighbors_carry_theirs_and_places_without_one_a_zero(graph: Graph, types: list[str], weighted: bool, replace: bool) -> None:
    users = [3, 50, 11, 12, 13, -1, 999, 3] * 20
    for n in (1, 2, 3, 6, 9):
        asked = {"weighted": weighted, "replace": replace, "edge_ids": True, "seed": n}
        plain = graph.sample_neighbors(users, types, n, **asked)  # type: ignore[arg-type]  # a plain dict of the common arguments
        drawn: NeighborSample = graph.sample_neighbors(users, types, n, probabilities=True, **asked)  # type: ignore[arg-type]
        assert plain.probabilities is None
        assert np.array_equal(plain.nodes, drawn.nodes)
        assert drawn.probabilities is not None
        assert drawn.edge_ids is not None
        assert drawn.probabilities.shape == (len(users), n)
        assert (drawn.probabilities[~drawn.mask] == 0).all()
        for row, user in enumerate(users):
            weights = at_node(user, types, weighted=weighted)
            edges = list(zip(drawn.types[row].tolist(), drawn.edge_ids[row].tolist(), strict=True))[: int(drawn.mask[row].sum())]
            whole = not replace and len(weights) <= n
            once = [given_earlier(weights, [edge])[0] for edge in edges]
            assert_close(
                drawn.probabilities[row, : len(edges)], [Fraction(1)] * len(edges) if whole else once if replace else given_earlier(weights, edges)
            )


def test_a_fanouts_probabilities_are_of_each_step_and_0_where_it_leads_nowhere(graph: Graph) -> None:
    items = [0, 2, 3, -1]
    forth = graph.sample_fanout(items, [["buys"]], [4], direction="in", edge_ids=True, probabilities=True, seed=5)
    back = graph.sample_neighbors(items, ["buys"], 4, ntype="item", direction="in", probabilities=True, seed=5)
    assert forth[0].probabilities is not None
    assert back.probabilities is not None
    assert np.array_equal(forth[0].probabilities.reshape(4, 4), back.probabilities)
    assert not forth[0].probabilities[12:].any()
    assert graph.sample_fanout(items, [["buys"]], [4], direction="in", seed=5)[0].probabilities is None
    empty = graph.sample_neighbors([], "buys", 3, probabilities=True)
    assert empty.probabilities is not None
    assert empty.probabilities.shape == (0, 3)


def assert_mean(estimates: np.ndarray, known: float) -> None:
    error = abs(estimates.mean() - known)
    assert error <= SIGMAS * estimates.std(ddof=1) / math.sqrt(estimates.size), (estimates.mean(), known)


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("shared", [True, False])
def test_negatives_carry_their_share_of_what_their_row_does_not_leave_out(graph: Graph, weighted: bool, shared: bool) -> None:
    rows = [[], [3, 3, 777], [7_000_000_019], [7_000_000_019, 3, 50, 11], list(USERS)]  # of the last two little is left, and nothing
    if shared:
        rows = [rows[2], [3], []]
    indptr = np.cumsum([0, *map(len, rows)])
    pairs = np.stack([np.arange(len(rows)), np.full(len(rows), 50)], axis=1)
    asked = {"weighted": weighted, "shared": shared, "exclude": (indptr, np.concatenate([np.array(row, np.int64) for row in rows])), "seed": 11}
    drawn = graph.sample_negatives(pairs, 60, "user", probabilities=True, **asked)  # type: ignore[arg-type]  # a mapping of all kinds
    assert np.array_equal(drawn.nodes, graph.sample_negatives(pairs, 60, "user", **asked).nodes)  # type: ignore[arg-type]  # the same
    assert drawn.probabilities is not None
    for row, left_out in enumerate([[i for some in rows for i in some]] if shared else rows):
        left = {i: w if weighted else 1.0 for i, w in USERS.items() if i not in [*left_out, 50] and (w or not weighted)}
        if not left:
            assert (drawn.nodes[row] == -1).all()
            assert not drawn.probabilities[row].any()
            continue
        assert set(drawn.nodes[row].tolist()) <= set(left)
        assert_close(drawn.probabilities[row], [given_earlier(left, [node])[0] for node in drawn.nodes[row].tolist()])
    plain = graph.sample_negatives(pairs[:, 0], 60, weighted=weighted, probabilities=True, seed=11)
    nodes = graph.sample_nodes(60 * len(rows), weighted=weighted, probabilities=True, seed=11)
    assert np.array_equal(plain.probabilities, np.reshape(nodes.probabilities, plain.nodes.shape))  # type: ignore[arg-type]  # they are there


def test_inverse_probabilities_estimate_a_sum_over_what_was_not_drawn(graph: Graph) -> None:
    """With replacement by the mean of y / p; without by Raj's: what came before, and y / p; whole rows begin with 1."""
    values = dict(zip(USERS, [10.0, 7.0, 5.0, 3.0, 1.0, 8.0], strict=True))
    nodes = graph.sample_nodes(40_000, "user", probabilities=True, seed=1)
    assert nodes.probabilities is not None
    assert_mean(np.array([values[i] for i in nodes.nodes.tolist()]) / nodes.probabilities, sum(values[i] for i, w in USERS.items() if w > 0))
    of_edge = np.array([[10.0, 7.0, 5.0, 3.0, 1.0, 2.0, 8.0, 4.0, 6.0, 9.0], [20.0, 0.0, 0.0, 0.0, 0, 0, 0, 0, 0, 0]])
    n = 20_000
    near = graph.sample_neighbors(np.repeat([3, 11], n), ["buys", "sees"], 2, replace=False, edge_ids=True, probabilities=True, seed=2)
    assert near.edge_ids is not None
    assert near.probabilities is not None
    y = np.where(near.mask, of_edge[near.types, near.edge_ids], 0.0)
    drawn, whole = near.probabilities[:n], near.probabilities[n:]
    assert (whole == [1.0, 0.0]).all()
    assert (y[n:].sum(axis=1) == 4.0).all()
    assert (drawn < 1).all()
    for estimates in (y[:n, 0] / drawn[:, 0], y[:n, 0] + y[:n, 1] / drawn[:, 1]):
        assert_mean(estimates, 10.0 + 7.0 + 5.0 + 20.0)

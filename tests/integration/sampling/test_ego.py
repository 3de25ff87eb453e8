"""Ego subgraphs: node distributions by enumeration, and the edges among the nodes.

DGL's own sampler is tested against the same distribution.
"""

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
from asterism.records.samples import Subgraph

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
"""Weights by (source, destination); expansion follows the edges."""
Distribution = dict[tuple[int, ...], float]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[asterism.Client]:
    with asterism.open(cases.copy_built_graph(tmp_path_factory.mktemp("ego"))) as opened:
        yield opened


@pytest.fixture(scope="module")
def graph(client: asterism.Client) -> Graph:
    client.create_space(
        "small",
        {
            "parts": 3,
            "direction": "both",
            "nodes": {"n": {}},
            "edges": {"n:to:n": {"weighted": True}, "n:beside:n": {}},
        },
    )
    opened = client.graph("small")
    opened.upsert_nodes(np.arange(NODES), "n")
    src, dst = zip(*WEIGHTS, strict=True)
    opened.upsert_edges(src, dst, "to", weights=list(WEIGHTS.values()))
    opened.upsert_edges([0, 1, 2, 2], [5, 5, 3, 2], "beside")
    opened.build()
    return opened


@pytest.fixture(scope="module")
def cases_graph(client: asterism.Client) -> Graph:
    return client.graph("cases")


def neighbor_set_probabilities(
    node: int, count: int, *, weighted: bool, replace: bool
) -> dict[frozenset[int], float]:
    """Return the probability of every set of neighbors that a node's draws can give.

    Draws are successive by weight, and every order is enumerated.
    """
    weights = {b: (w if weighted else 1.0) for (a, b), w in WEIGHTS.items() if a == node}
    probabilities: dict[frozenset[int], float] = {}
    if replace:
        orders: list[tuple[tuple[int, ...], float]] = [((), 1.0)]
        for _ in range(count):
            orders = [
                ((*order, b), p * w / sum(weights.values()))
                for order, p in orders
                for b, w in weights.items()
            ]
    else:
        orders = []
        for order in permutations(weights, min(count, len(weights))):
            p, remaining = 1.0, sum(weights.values())
            for b in order:
                p, remaining = p * weights[b] / remaining, remaining - weights[b]
            orders.append((order, p))
    for order, p in orders:
        probabilities[frozenset(order)] = probabilities.get(frozenset(order), 0.0) + p
    return probabilities


def node_set_distribution(
    seed: int, fanouts: list[int], *, expand_all: bool, weighted: bool, replace: bool
) -> Distribution:
    """Return the probability of every set of nodes around a seed."""
    states = {(frozenset({seed}), frozenset({seed})): 1.0}
    for count in fanouts:
        next_states: dict[tuple[frozenset[int], frozenset[int]], float] = {}
        for (visited, frontier), p in states.items():
            reached = {frozenset[int](): p}
            for node in sorted(visited if expand_all else frontier):
                extended: dict[frozenset[int], float] = {}
                for nodes, q in reached.items():
                    for added, r in neighbor_set_probabilities(
                        node, count, weighted=weighted, replace=replace
                    ).items():
                        extended[nodes | added] = extended.get(nodes | added, 0.0) + q * r
                reached = extended
            for nodes, q in reached.items():
                state = (visited | nodes, nodes - visited)
                next_states[state] = next_states.get(state, 0.0) + q
        states = next_states
    distribution: Distribution = {}
    for (visited, _), p in states.items():
        distribution[tuple(sorted(visited))] = distribution.get(tuple(sorted(visited)), 0.0) + p
    return distribution


def p_value(counts: Mapping[tuple[int, ...], int], distribution: Distribution) -> float:
    """Return the p-value of counts; cells that expect fewer than 5 are merged into one."""
    assert set(counts) <= set(distribution)
    n, rare = sum(counts.values()), [0.0, 0.0]
    cells = []
    for outcome, p in distribution.items():
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


def node_sets(sub: Subgraph, seeds: int) -> list[tuple[int, ...]]:
    """Return the nodes of each component."""
    assert sub.batch is not None
    bounds = np.searchsorted(sub.batch["n"], np.arange(seeds + 1))
    return [tuple(sorted(sub.nodes["n"][a:b].tolist())) for a, b in pairwise(bounds)]


@pytest.mark.parametrize("expand", ["first", "every"])
@pytest.mark.parametrize(("weighted", "replace"), [(False, False), (True, False), (True, True)])
def test_node_sets_follow_the_enumerated_distribution(
    graph: Graph, expand: str, weighted: bool, replace: bool
) -> None:
    n = 4000
    sub = graph.sample_ego_subgraphs(
        np.zeros(n, np.int64),
        FANOUTS,
        "to",
        weighted=weighted,
        replace=replace,
        expand=expand,
        seed=17,
    )
    distribution = node_set_distribution(
        0, FANOUTS, expand_all=expand == "every", weighted=weighted, replace=replace
    )
    assert abs(sum(distribution.values()) - 1) < 1e-12
    assert len(distribution) > 5
    outcomes = node_sets(sub, n)
    assert p_value(Counter(outcomes), distribution) > ALPHA
    # Count, for adjacent seeds, how many of the two have the likeliest set.
    likeliest = max(distribution, key=lambda outcome: distribution[outcome])
    has, p = np.array([outcome == likeliest for outcome in outcomes]), distribution[likeliest]
    pairs = [
        int((has[:-1] & has[1:]).sum()),
        int((has[:-1] ^ has[1:]).sum()),
        int((~has[:-1] & ~has[1:]).sum()),
    ]
    assert (
        stats.chisquare(pairs, np.array([p * p, 2 * p * (1 - p), (1 - p) ** 2]) * (n - 1)).pvalue
        > ALPHA
    )


@pytest.mark.dgl
def test_dgl_sampler_follows_the_same_distribution(
    graph: Graph, dgl_python: Path, tmp_path: Path
) -> None:
    n, fanouts = 500, [2, 1]
    backwards = [(b, a) for a, b in WEIGHTS]  # DGL samples against the edges
    request = {"nodes": NODES, "edges": backwards, "fanouts": fanouts, "seed": 0, "times": n}
    out = dgl_env.run(
        dgl_python,
        dgl_env.SCRIPTS / "shadow.py",
        json.dumps(request),
        home=tmp_path,
        extra_environment={"OMP_NUM_THREADS": "1"},
    )
    dgl_counts = {
        tuple(map(int, name.split(","))): count
        for name, count in json.loads(out.splitlines()[-1]).items()
    }
    distribution = node_set_distribution(0, fanouts, expand_all=True, weighted=False, replace=False)
    assert p_value(dgl_counts, distribution) > ALPHA
    counts = Counter[tuple[int, ...]]()
    for seed in range(200):
        sub = graph.sample_ego_subgraphs(
            [0], fanouts, "to", weighted=False, disjoint=False, expand="every", seed=seed
        )
        assert sub.batch is None
        counts[tuple(sorted(sub.nodes["n"].tolist()))] += 1
    assert p_value(counts, distribution) > ALPHA


@pytest.mark.parametrize("disjoint", [True, False])
def test_nodes_are_those_of_the_subgraph_with_all_edges_between(
    cases_graph: Graph, disjoint: bool
) -> None:
    seeds = np.array([3, 40, 3, 7, -1, 88, 10**9])
    options = {
        "ntype": "paper",
        "disjoint": disjoint,
        "direction": "in",
        "seed": 4,
        "weights": True,
    }
    sub = cases_graph.sample_ego_subgraphs(
        seeds, [3, 2], ["cites", "writes"], among=["writes", "cites", "by"], **options
    )
    subgraph = cases_graph.sample_subgraph(seeds, [3, 2], ["cites", "writes"], **options)
    assert list(sub.row) == ["person:writes:paper", "paper:cites:paper", "paper:by:person"]
    assert (sub.batch is None) == (not disjoint)
    zeros = {name: np.zeros(len(ids), np.int64) for name, ids in sub.nodes.items()}
    batch, trees = sub.batch or zeros, subgraph.batch or zeros
    for name in sub.nodes:
        order = np.argsort(trees[name], kind="stable")
        assert np.array_equal(sub.nodes[name], subgraph.nodes[name][order])
        assert np.array_equal(batch[name], trees[name][order])
        assert sub.num_sampled_nodes[name] == (len(order),)
    valid = seeds >= 0
    assert np.array_equal(sub.nodes["paper"][sub.seeds[valid]], seeds[valid])
    assert (sub.seeds[~valid] == -1).all()
    if disjoint:
        assert np.array_equal(
            sub.seeds[valid], np.searchsorted(sub.batch["paper"], np.flatnonzero(valid))
        )  # type: ignore[index]
    assert sub.edge_ids is not None
    total = 0
    for name, (src, dst, _) in ((name, cases.edges()[name.split(":")[1]]) for name in sub.row):
        src_type, _, dst_type = name.split(":")
        src_index = {
            (b, node): i
            for i, (b, node) in enumerate(
                zip(batch[src_type].tolist(), sub.nodes[src_type].tolist(), strict=True)
            )
        }
        dst_index = {
            (b, node): i
            for i, (b, node) in enumerate(
                zip(batch[dst_type].tolist(), sub.nodes[dst_type].tolist(), strict=True)
            )
        }
        expected = {
            (src_index[b, s], dst_index[b, d], eid)
            for eid, (s, d) in enumerate(zip(src.tolist(), dst.tolist(), strict=True))
            for b in range(7)
            if (b, s) in src_index and (b, d) in dst_index
        }
        found = list(
            zip(
                sub.row[name].tolist(),
                sub.col[name].tolist(),
                sub.edge_ids[name].tolist(),
                strict=True,
            )
        )
        assert len(found) == len(expected)
        assert set(found) == expected
        total += len(found)
    assert total > sum(map(len, subgraph.row.values())) / 2


def test_edges_of_other_types_and_filters(graph: Graph) -> None:
    sub = graph.sample_ego_subgraphs(
        [0], [-1], "to", among=["to", "beside"], where="type == 'beside' or weight >= 1"
    )
    assert sub.nodes["n"].tolist() == [0, 1, 2]
    assert sorted(zip(sub.row["n:to:n"].tolist(), sub.col["n:to:n"].tolist(), strict=True)) == [
        (0, 1),
        (0, 2),
        (1, 0),
        (2, 0),
    ]
    assert (sub.row["n:beside:n"].tolist(), sub.col["n:beside:n"].tolist()) == ([2], [2])
    none = graph.sample_ego_subgraphs([], [2], "to")
    assert none.nodes["n"].size == none.row["n:to:n"].size == 0


def test_invalid_requests_are_refused_with_their_value(graph: Graph) -> None:
    for options, error, message in (
        ({"fanouts": []}, asterism.InvalidRequest, r"fanouts=\[\]"),
        ({"fanouts": [-2]}, asterism.InvalidRequest, r"fanouts\[0\]=-2"),
        ({"fanouts": [2], "expand": "all"}, asterism.InvalidRequest, "expand='all'"),
        ({"fanouts": [2], "among": "eats"}, asterism.NotFound, "'eats'"),
        ({"fanouts": [2], "direction": "up"}, asterism.InvalidRequest, "direction='up'"),
        ({"fanouts": [2], "weight": "new"}, asterism.NotFound, "'new'"),
    ):
        with pytest.raises(error, match=message):
            graph.sample_ego_subgraphs([0], etypes="to", **options)  # type: ignore[arg-type]

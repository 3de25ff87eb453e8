"""Calls that are equal on purpose: the lines of that table in docs/sampling.md.

The line about Euler's operators is in `tests/integration/frameworks/test_euler_facade.py`.

That any other two calls with one seed are independent is a check of `tests.distributions`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tests.kit import cases

import asterism
from asterism import Graph

SEED = 7
PEOPLE = cases.person_ids()[:40]
PAPERS = np.r_[np.arange(30), 3, 3]
FEW = [3, 8, 5, 0]
METAPATH = ["writes", "cites", "by"]
Pair = Callable[[Graph], tuple[Any, Any]]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    with asterism.open(cases.copy_built_graph(tmp_path_factory.mktemp("equal"))) as client:
        yield client.graph("cases")


def walks(graph: Graph, length: int, **arguments: Any) -> Any:
    return graph.random_walk(PEOPLE, METAPATH, length, seed=SEED, **arguments).nodes


def fanout(graph: Graph, hops: int, **arguments: Any) -> Any:
    return graph.sample_fanout(PEOPLE, METAPATH[:hops], [3, 2, 2][:hops], seed=SEED, **arguments)


def cited(subgraph: Any) -> dict[int, list[int]]:
    """Return the papers that a subgraph has as cited by each paper, in their order."""
    ids, edge = subgraph.nodes["paper"].tolist(), "paper:cites:paper"
    cited_by: dict[int, list[int]] = {node: [] for node in ids}
    for row, col in zip(subgraph.row[edge].tolist(), subgraph.col[edge].tolist(), strict=True):
        cited_by[ids[row]].append(ids[col])
    return cited_by


def prefixes(graph: Graph) -> tuple[Any, Any]:
    calls: list[Callable[[int], Any]] = [
        lambda n: graph.sample_nodes(n, "person", seed=SEED).nodes,
        lambda n: graph.sample_edges(n, "writes", seed=SEED).edge_ids,
        lambda n: graph.sample_neighbors(PEOPLE, "writes", n, seed=SEED).nodes.T,
        lambda n: graph.sample_layer(PEOPLE, "writes", n, seed=SEED).nodes.reshape(-1),
        lambda n: np.array(graph.sample_graph_labels(n, seed=SEED).labels),
    ]
    return [call(9)[:4].tolist() for call in calls], [call(4).tolist() for call in calls]


def probabilities(graph: Graph) -> tuple[Any, Any]:
    both = [
        graph.sample_neighbors(PEOPLE, "writes", 5, seed=SEED, probabilities=wanted).nodes.tolist()
        for wanted in (True, False)
    ]
    return both[0], both[1]


def first_hop(graph: Graph) -> tuple[Any, Any]:
    return (
        fanout(graph, 3).hops[0].nodes.tolist(),
        graph.sample_neighbors(PEOPLE, "writes", 3, seed=SEED).nodes.reshape(-1).tolist(),
    )


def fewer_hops_and_steps(graph: Graph) -> tuple[Any, Any]:
    longer, shorter = fanout(graph, 3), fanout(graph, 2)
    return (
        [hop.nodes.tolist() for hop in longer.hops[:2]]
        + [walks(graph, 3, **how)[:, :3].tolist() for how in ({}, {"p": 0.5}, {"restart": 0.3})],
        [hop.nodes.tolist() for hop in shorter.hops]
        + [walks(graph, 2, **how).tolist() for how in ({}, {"p": 0.5}, {"restart": 0.3})],
    )


def pinsage(graph: Graph) -> tuple[Any, Any]:
    visits = graph.sample_pinsage(
        PAPERS, ["cites"], 1, walks=1, traversals=1, termination=0.0, seed=SEED
    )
    steps = graph.random_walk(PAPERS, ["cites"], 1, walks=1, seed=SEED)
    return visits.nodes[:, 0].tolist(), steps.nodes[:, 1].tolist()


def ego(graph: Graph) -> tuple[Any, Any]:
    arguments: dict[str, Any] = {"ntype": "paper", "seed": SEED}
    ego_sample = graph.sample_ego_subgraphs(PAPERS, [3, 2], ["cites", "by"], **arguments)
    subgraph = graph.sample_subgraph(PAPERS, [3, 2], ["cites", "by"], disjoint=True, **arguments)

    def trees(sample: Any) -> dict[str, list[tuple[int, int]]]:
        return {
            name: sorted(zip(sample.batch[name].tolist(), ids.tolist(), strict=True))
            for name, ids in sample.nodes.items()
        }

    return trees(ego_sample), trees(subgraph)


def subgraphs_of_other_batches(graph: Graph) -> tuple[Any, Any]:
    arguments: dict[str, Any] = {"ntype": "paper", "seed": SEED}
    alone = cited(graph.sample_subgraph(FEW, {"cites": [3]}, **arguments))
    among = cited(graph.sample_subgraph(PAPERS[::-1], {"by": [2], "cites": [3]}, **arguments))
    return [alone[node] for node in FEW], [among[node] for node in FEW]


def labor_of_other_batches(graph: Graph) -> tuple[Any, Any]:
    alone, among = (
        cited(graph.sample_labor(papers, {"cites": [2]}, ntype="paper", seed=SEED))
        for papers in (FEW, PAPERS[::-1])
    )
    return [alone[node] for node in FEW], [among[node] for node in FEW]


def nodes_like(graph: Graph) -> tuple[Any, Any]:
    types = np.array([0, 1, 0, 1])
    mixed = graph.sample_nodes_like(
        [int(PEOPLE[0]), 1, int(PEOPLE[1]), 2], 3, ntype=types, seed=SEED
    )
    people = graph.sample_nodes_like(PEOPLE[:4], 3, ntype="person", seed=SEED)
    return mixed.nodes[[0, 2]].tolist(), people.nodes[[0, 2]].tolist()


def negatives(graph: Graph) -> tuple[Any, Any]:
    excluded = graph.sample_negatives(
        np.stack([PAPERS, PAPERS], axis=1), 9, "paper", seed=SEED
    ).nodes
    plain = graph.sample_negatives(PAPERS, 9, "paper", seed=SEED).nodes
    is_allowed = plain != PAPERS[:, None]
    assert 0 < is_allowed.sum() < is_allowed.size
    return excluded[is_allowed].tolist(), plain[is_allowed].tolist()


def features(graph: Graph) -> tuple[Any, Any]:
    joined = fanout(graph, 2, node_features=["age", "vec"])
    return (
        [hop.nodes.tolist() for hop in joined.hops],
        [hop.nodes.tolist() for hop in fanout(graph, 2).hops],
    )


def statement(graph: Graph) -> tuple[Any, Any]:
    table = graph.query(f"SAMPLE 20 VERTICES ON person SEED {SEED} YIELD id")
    return table["id"].tolist(), graph.sample_nodes(20, "person", seed=SEED).nodes.tolist()


def replayed(graph: Graph) -> tuple[Any, Any]:
    sample = graph.sample_neighbors(PEOPLE, "writes", 3)
    again = graph.replay(sample.token, PEOPLE)
    return again.nodes.tolist(), sample.nodes.tolist()


def spellings_of_a_filter(graph: Graph) -> tuple[Any, Any]:
    """An index serves the filter of edges."""

    def drawn(people: str, edges: str) -> list[Any]:
        how: dict[str, Any] = {"where": edges, "seed": SEED}
        return [
            graph.sample_nodes(20, "person", where=people, seed=SEED).nodes.tolist(),
            graph.sample_edges(20, "writes", **how).edge_ids.tolist(),
            graph.sample_neighbors(PEOPLE, "writes", 3, **how).nodes.tolist(),
            graph.sample_neighbors(PEOPLE, "writes", 2, replace=False, **how).nodes.tolist(),
            graph.random_walk(PEOPLE, ["writes"], 1, **how).nodes.tolist(),
            graph.sample_layer(PEOPLE, "writes", 9, **how).nodes.tolist(),
        ]

    first = drawn("3 < age", "when >= 500 and 2000 > when")
    others = drawn("3 <= age", "when >= 501 and 2000 > when")
    assert all(one != other for one, other in zip(first, others, strict=True))
    return first, drawn("(age>3)", "(500 <= when) AND (when < 2000)")


def all_types(graph: Graph) -> tuple[Any, Any]:
    return (
        [
            graph.sample_nodes(20, seed=SEED).nodes.tolist(),
            graph.sample_edges(20, seed=SEED).edge_ids.tolist(),
        ],
        [
            graph.sample_nodes(20, ["paper", "person"], seed=SEED).nodes.tolist(),
            graph.sample_edges(20, ["by", "cites", "writes"], seed=SEED).edge_ids.tolist(),
        ],
    )


@pytest.mark.parametrize(
    "pair",
    [
        prefixes,
        probabilities,
        first_hop,
        fewer_hops_and_steps,
        pinsage,
        ego,
        subgraphs_of_other_batches,
        labor_of_other_batches,
        nodes_like,
        negatives,
        features,
        statement,
        replayed,
        spellings_of_a_filter,
        all_types,
    ],
    ids=lambda pair: pair.__name__,
)
def test_calls_of_the_table_are_equal(graph: Graph, pair: Pair) -> None:
    one, other = pair(graph)
    assert one == other


def test_calls_beyond_the_table_differ(graph: Graph) -> None:
    drawn = [
        graph.sample_nodes(50, "paper", seed=SEED).nodes,
        graph.sample_nodes(50, "paper", weighted=False, seed=SEED).nodes,
        graph.sample_negatives(np.zeros(50, np.int64), 1, "paper", seed=SEED).nodes[:, 0],
        graph.sample_nodes_like(np.zeros(50, np.int64), 1, ntype="paper", seed=SEED).nodes[:, 0],
        graph.sample_fanout(np.full(50, 3), ["cites"], [1], seed=SEED).hops[0].nodes,
        graph.random_walk(np.full(50, 3), ["cites"], 1, seed=SEED).nodes[:, 1],
    ]
    for i, nodes in enumerate(drawn):
        for others in drawn[:i]:
            assert np.count_nonzero(nodes != others) > 10

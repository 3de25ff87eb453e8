"""PinSAGE neighbors.

Visit counts equal those of walks, in a documented order, for any node type. Their distribution
equals that of DGL.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.kit import cases, dgl_env

import asterism
from asterism import Graph
from asterism.records.samples import VisitSample

USERS, ITEMS = 12, 9


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[asterism.Client]:
    with asterism.open(cases.copy_built_graph(tmp_path_factory.mktemp("pinsage"))) as opened:
        yield opened


@pytest.fixture(scope="module")
def graph(client: asterism.Client) -> Graph:
    return client.graph("cases")


@pytest.fixture(scope="module")
def shop(client: asterism.Client) -> Graph:
    """Return a graph of users and their purchases, in both directions.

    Item 8 has no buyer, and user 11 bought nothing.
    """
    client.create_space(
        "shop",
        {
            "parts": 3,
            "nodes": {"user": {}, "item": {}},
            "edges": {"user:buys:item": {}, "item:bought:user": {}},
        },
    )
    graph = client.graph("shop")
    graph.upsert_nodes(np.arange(USERS), "user")
    graph.upsert_nodes(np.arange(ITEMS), "item")
    users, items = purchases()
    graph.upsert_edges(users, items, "buys")
    graph.upsert_edges(items, users, "bought")
    graph.build()
    return graph


def purchases() -> tuple[np.ndarray, np.ndarray]:
    pairs = np.unique(np.random.default_rng(5).integers(0, (USERS - 1, ITEMS - 1), (40, 2)), axis=0)
    return pairs[:, 0], pairs[:, 1]


def top_counts(ends: np.ndarray, n: int) -> list[list[tuple[int, int]]]:
    """Return the n most common ids of each row except -1, ties by id."""
    rows = [Counter(row[row >= 0].tolist()) for row in ends]
    return [sorted(row.items(), key=lambda pair: (-pair[1], pair[0]))[:n] for row in rows]


def visit_counts(sample: VisitSample) -> list[list[tuple[int, int]]]:
    return [
        [pair for pair in zip(nodes, counts, strict=True) if pair[1]]
        for nodes, counts in zip(sample.nodes.tolist(), sample.counts.tolist(), strict=True)
    ]


@pytest.mark.parametrize("weighted", [True, False])
def test_visits_are_where_the_traversals_of_walks_end(graph: Graph, weighted: bool) -> None:
    papers = np.concatenate([np.arange(cases.PAPERS), [-1, 10**9, 3, 3]])
    sample = graph.sample_pinsage(
        papers,
        ["cites", "cites"],
        6,
        walks=25,
        traversals=3,
        termination=0.0,
        weighted=weighted,
        seed=4,
    )
    walks = graph.random_walk(papers, ["cites", "cites"], 6, walks=25, weighted=weighted, seed=4)
    assert visit_counts(sample) == top_counts(walks.nodes[:, 2::2].reshape(len(papers), -1), 6)
    assert (sample.nodes[cases.PAPERS : cases.PAPERS + 2] == -1).all()
    assert (sample.types == np.where(sample.mask, graph.schema.node_type_id("paper"), -1)).all()
    assert graph.sample_pinsage([], ["cites"], 6, walks=2).nodes.shape == (0, 6)
    assert graph.sample_pinsage([3], ["cites"], 0, walks=2).counts.shape == (1, 0)
    assert sample.nodes[-1].tolist() != sample.nodes[-2].tolist(), "each place walks by itself"
    single_traversal = graph.sample_pinsage(
        papers,
        ["cites", "cites"],
        6,
        walks=25,
        traversals=3,
        termination=1.0,
        weighted=weighted,
        seed=4,
    )
    assert visit_counts(single_traversal) == top_counts(
        walks.nodes[:, 2].reshape(len(papers), -1), 6
    )


def test_equal_ids_of_two_types_are_two_nodes(graph: Graph) -> None:
    papers = np.arange(cases.PAPERS)
    sample = graph.sample_pinsage(papers, [["cites", "by"]], 9, walks=30, traversals=1, seed=5)
    walks = graph.random_walk(papers, [["cites", "by"]], 1, walks=30, seed=5)
    person = graph.schema.node_type_id("person")
    via = [graph.schema.edge_types[e].dst_type for e in range(len(graph.schema.edge_types))]
    kinds = np.array([*(graph.schema.node_type_id(name) for name in via), -1])[walks.types[:, 0]]
    expected = top_counts((walks.nodes[:, 1] * 2 + kinds).reshape(len(papers), -1), 9)
    assert [
        [(node * 2 + kind, n) for node, kind, n in zip(*row, strict=True) if n]
        for row in zip(sample.nodes, sample.types, sample.counts, strict=True)
    ] == expected
    assert {person, graph.schema.node_type_id("paper")} < set(sample.types.reshape(-1).tolist()) | {
        -2
    }


def test_walks_split_into_chunks_give_same_visits(shop: Graph) -> None:
    items = np.tile(np.arange(ITEMS), 40)
    full = shop.sample_pinsage(items, ["bought", "buys"], 4, walks=2000, traversals=2, seed=6)
    walks = shop.random_walk(items[-1:], ["bought", "buys"], 4, walks=2000, seed=6)
    assert len(walks) == 2000
    partial = shop.sample_pinsage(
        items[:300], ["bought", "buys"], 4, walks=2000, traversals=2, seed=6
    )
    assert np.array_equal(full.nodes[:300], partial.nodes)
    assert np.array_equal(full.counts[:300], partial.counts)
    assert len(items) * 2000 * 5 * 8 > 15 << 20, "more than one piece"


def test_single_traversal_may_end_at_another_type(shop: Graph) -> None:
    sample = shop.sample_pinsage(np.arange(ITEMS), ["bought"], 20, walks=400, traversals=1, seed=7)
    users, items = purchases()
    assert [sorted(node for node, _ in row) for row in visit_counts(sample)] == [
        sorted(users[items == item].tolist()) for item in range(ITEMS)
    ]
    assert set(sample.types[sample.mask].tolist()) == {shop.schema.node_type_id("user")}


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (
            lambda g: g.sample_pinsage([1], ["bought"], 3, walks=2),
            asterism.InvalidRequest,
            "begins at item and ends at user",
        ),
        (
            lambda g: g.sample_pinsage([1], ["bought", "buys"], 3, walks=0),
            asterism.InvalidRequest,
            "walks=0",
        ),
        (
            lambda g: g.sample_pinsage([1], ["bought", "buys"], 3, walks=2, traversals=0),
            asterism.InvalidRequest,
            "traversals=0",
        ),
        (
            lambda g: g.sample_pinsage([1], ["bought", "buys"], -3, walks=2),
            asterism.InvalidRequest,
            "n=-3",
        ),
        (
            lambda g: g.sample_pinsage([1], ["bought", "buys"], 3, walks=2, termination=1.5),
            asterism.InvalidRequest,
            "termination=1.5",
        ),
        (
            lambda g: g.sample_pinsage([1], ["bought", "buys"], 3, walks=1 << 21),
            asterism.InvalidRequest,
            "walks 2097152: expected 1 to 1048576",
        ),
        (
            lambda g: g.sample_pinsage([1], ["bought", "buys"], 3, walks=1 << 20, traversals=4),
            asterism.InvalidRequest,
            "use fewer walks",
        ),
        (
            lambda g: g.sample_pinsage([1] * 1000, ["bought", "buys"], 10_000, walks=2),
            asterism.InvalidRequest,
            "do not fit into one reply",
        ),
        (lambda g: g.sample_pinsage([1], ["eats"], 3, walks=2), asterism.NotFound, "eats"),
        (
            lambda g: g.sample_pinsage([1], "bought", 3, walks=2),
            asterism.InvalidRequest,
            "metapath='bought'",
        ),
        (
            lambda g: g.sample_pinsage([1], ["bought", "buys"], 3, walks=2, where="nope > 1"),
            asterism.AsterismError,
            "nope",
        ),
    ],
)
def test_invalid_arguments_are_refused(
    shop: Graph, call: Callable[[Graph], object], kind: type[asterism.AsterismError], said: str
) -> None:
    with pytest.raises(kind, match=said):
        call(shop)


@pytest.mark.dgl
def test_visit_distribution_matches_dgl(
    shop: Graph, dgl_python: Path, root: Path, tmp_path: Path
) -> None:
    """Visits per walk agree within five standard errors for every node.

    The top list is long enough that it cuts off no visited node.
    """
    users, items = purchases()
    np.savez(tmp_path / "bought.npz", users=users, items=items)
    rounds, walks = 200, 100
    out = tmp_path / "visits.npy"
    # dgl_shim makes the wheels of DGL importable with a current setuptools and torch.
    dgl_env.run(
        dgl_python,
        dgl_env.SCRIPTS / "pinsage.py",
        *(tmp_path / "bought.npz", USERS, ITEMS, rounds, walks, out),
        home=tmp_path,
        extra_environment={"PYTHONPATH": os.pathsep.join(map(str, (root,)))},
    )
    theirs = np.load(out)
    ours = np.zeros_like(theirs)
    seeds = np.arange(ITEMS - 1)
    for index, (traversals, termination) in enumerate(((2, 0.5), (4, 0.25))):
        sample = shop.sample_pinsage(
            np.tile(seeds, rounds),
            ["bought", "buys"],
            ITEMS,
            walks=walks,
            traversals=traversals,
            termination=termination,
            weighted=False,
            seed=31 + index,
        )
        np.add.at(
            ours[index],
            (np.repeat(np.tile(seeds, rounds), ITEMS), sample.nodes.reshape(-1)),
            sample.counts.reshape(-1),
        )
    walk_count = rounds * walks
    # A walk visits a node at most 4 times, so the variance of a count is at most 4 times its mean.
    error = np.sqrt(4 * (ours + theirs) + 1)
    assert (np.abs(ours - theirs) <= 5 * error).all(), np.abs(ours - theirs).max()
    assert ours[0].sum() / len(seeds) / walk_count == pytest.approx(1.5, abs=0.02)
    assert theirs[0].sum() / len(seeds) / walk_count == pytest.approx(1.5, abs=0.02)

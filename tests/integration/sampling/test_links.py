"""Edges by position, epochs of edges, and links with negatives.

Tests cover the distribution of non-edges, and nodes for which none exist.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.kit import cases
from tests.kit.waiting import HANG_S

import asterism
from asterism import Graph
from asterism.records.samples import EdgeRows

ALPHA = 1e-4
USERS, ITEMS = 4, 6
ENDS = [
    (0, 0),
    (0, 1),
    (0, 1),
    (1, 2),
    (2, 0),
    (2, 1),
    (2, 2),
    (2, 3),
    (2, 4),
    (3, 0),
    (3, 1),
    (3, 2),
    (3, 3),
    (3, 4),
    (3, 5),
]
"""Edges by (user, item); the last user has an edge to every item."""
ITEM_WEIGHTS = np.array([1.0, 2.0, 4.0, 0.0, 1.0, 8.0])
"""Weights of items."""
USER_WEIGHTS = np.array([1.0, 2.0, 3.0, 4.0])
"""Weights of users."""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[asterism.Client]:
    with asterism.open(cases.copy_built_graph(tmp_path_factory.mktemp("links"))) as opened:
        yield opened


@pytest.fixture(scope="module")
def graph(client: asterism.Client) -> Graph:
    return client.graph("cases")


@pytest.fixture(scope="module")
def small(client: asterism.Client) -> Graph:
    nodes: dict[str, Any] = {
        "user": {"weighted": True},
        "item": {
            "weighted": True,
            "features": {"degree": "int64"},
            "tables": {"noise": "pow(degree, 0.75)", "liked": "pow(in_degree, 0.75)"},
        },
    }
    client.create_space(
        "links", {"parts": 2, "direction": "both", "nodes": nodes, "edges": {"user:buys:item": {}}}
    )
    opened = client.graph("links")
    src, dst = np.array(ENDS).T
    opened.upsert_nodes(np.arange(USERS), "user", weights=USER_WEIGHTS)
    opened.upsert_nodes(
        np.arange(ITEMS),
        "item",
        weights=ITEM_WEIGHTS,
        features={"degree": np.bincount(dst, minlength=ITEMS)},
    )
    opened.upsert_edges(src, dst, "buys")
    opened.build()
    return opened


def negative_probabilities(
    source: int, weights: np.ndarray, *, exclude: bool, positive: int = -1
) -> np.ndarray:
    """Return the probability of each item as a negative of a source."""
    remaining = weights.copy()
    if exclude:
        remaining[[item for user, item in ENDS if user == source]] = 0
    if positive >= 0:
        remaining[positive] = 0
    return remaining / remaining.sum() if remaining.sum() else remaining


def test_edge_positions_match_scan_order(graph: Graph) -> None:
    for etype, weight in (("writes", "recent"), ("cites", ""), ("by", "")):
        scanned = list(graph.scan_edges(etype, rows=37, weight=weight))
        count = graph.count_edges(etype)
        assert count == sum(map(len, scanned))
        for positions in (np.arange(count), np.array([5, 0, 5, count - 1])):
            edges = graph.edges_at(etype, positions, weight=weight)
            for name in ("src", "dst", "edge_ids", "weights"):
                assert np.array_equal(
                    getattr(edges, name),
                    np.concatenate([getattr(batch, name) for batch in scanned])[positions],
                ), (etype, name)
    assert len(graph.edges_at("cites", [])) == 0
    for positions, message in (
        ([3, 900], r"places\[1\] = 900: there are 900 edges of type 'paper:cites:paper'"),
        ([-1], r"places\[0\]=-1"),
    ):
        with pytest.raises(asterism.InvalidRequest, match=message):
            graph.edges_at("cites", positions)
    with pytest.raises(asterism.NotFound, match="'new'"):
        graph.edges_at("cites", [0], weight="new")


def test_filtered_positions_count_matching_edges_only(graph: Graph) -> None:
    src, _, weight = cases.edges()["writes"]
    count = graph.count_edges("writes", where="weight > 1")
    assert count == int((weight > 1).sum())
    edges = graph.edges_at("writes", np.arange(count), where="weight > 1")
    assert np.array_equal(np.sort(edges.edge_ids), np.flatnonzero(weight > 1))
    assert np.array_equal(src[edges.edge_ids], edges.src)
    assert np.array_equal(weight[edges.edge_ids], edges.weights)


def ids(batches: Any) -> list[int]:
    return [edge for batch in batches for edge in batch.edge_ids.tolist()]


def test_epoch_over_ranks_visits_every_edge_once(graph: Graph) -> None:
    shares = [graph.edge_batches("writes", 128, seed=3, rank=rank, world=3) for rank in range(3)]
    orders = []
    for epoch in range(2):
        assert {share.epoch for share in shares} == {epoch}
        parts = [list(share) for share in shares]
        assert all(
            isinstance(batch, EdgeRows) and len(batch) <= 128 for part in parts for batch in part
        )
        orders.append([edge for part in parts for edge in ids(part)])
        assert Counter(orders[-1]) == Counter(range(cases.WRITES))
    assert orders[0] != orders[1]


def test_edge_epochs_resume_and_reshard(graph: Graph) -> None:
    where = "weight > 1"
    matching = np.flatnonzero(cases.edges()["writes"][2] > 1).tolist()

    def batches(rank: int, world: int) -> Any:
        return graph.edge_batches("writes", 50, where=where, seed=5, rank=rank, world=world)

    first = [batches(rank, 2) for rank in range(2)]
    visited = ids([*islice(first[0], 3), *islice(first[1], 1)])
    states = json.loads(json.dumps([share.state_dict() for share in first]))
    resumed = batches(0, 2)
    resumed.load_state_dict(states[0])
    assert ids(resumed) == ids(batches(0, 2))[150:]
    resharded = [batches(rank, 3) for rank in range(3)]
    for share in resharded:
        share.reshard(states)
    assert Counter(visited + [edge for share in resharded for edge in ids(share)]) == Counter(
        matching
    )
    with pytest.raises(asterism.InvalidRequest, match="'paper:cites:paper'"):
        graph.edge_batches("cites", 5).load_state_dict(states[0])
    with pytest.raises(asterism.InvalidRequest, match="weight > 1"):
        graph.edge_batches("writes", 5).load_state_dict(states[0])


def test_invalid_epochs_are_refused(graph: Graph) -> None:
    for message, arguments in (
        ("batch_size=0", {"batch_size": 0}),
        ("rank=2, world=2", {"rank": 2, "world": 2}),
        ("seed=None with world", {"world": 2, "seed": None}),
    ):
        with pytest.raises(asterism.InvalidRequest, match=message):
            graph.edge_batches("cites", **{"batch_size": 5, "seed": 1, **arguments})


@pytest.mark.parametrize("exclude", [True, False])
@pytest.mark.parametrize("weight", [None, "", "noise", "liked"])
def test_triplet_negatives_follow_the_weights_of_non_edges(
    small: Graph, weight: str | None, exclude: bool
) -> None:
    n, amount = 1500, 2
    degrees = np.bincount(np.array(ENDS)[:, 1], minlength=ITEMS)
    weights = np.ones(ITEMS) if weight is None else ITEM_WEIGHTS if weight == "" else degrees**0.75
    pairs = np.tile([(0, 0), (1, 2), (2, 4), (3, 5)], (n, 1))
    links = small.link_seeds(
        pairs, "buys", mode="triplet", amount=amount, weight=weight, exclude=exclude, seed=3
    )
    assert links.labels is None
    assert links.negatives is not None
    assert links.negatives.shape == (4 * n, amount)
    assert np.array_equal(np.stack([links.src, links.dst], axis=1), pairs)
    for index, (source, positive) in enumerate([(0, 0), (1, 2), (2, 4), (3, 5)]):
        sampled = links.negatives[index::4]
        probabilities = negative_probabilities(source, weights, exclude=exclude, positive=positive)
        if not probabilities.any():
            assert (sampled == -1).all()
            continue
        counts = np.bincount(sampled.reshape(-1), minlength=ITEMS)
        assert not counts[probabilities == 0].any()
        if (probabilities > 0).sum() > 1:
            assert (
                stats.chisquare(
                    counts[probabilities > 0], probabilities[probabilities > 0] * counts.sum()
                ).pvalue
                > ALPHA
            )
            likeliest = int(np.argmax(probabilities))
            is_likeliest, p = sampled == likeliest, probabilities[likeliest]
            pair_counts = [
                int((is_likeliest[:, 0] & is_likeliest[:, 1]).sum()),
                int((is_likeliest[:, 0] ^ is_likeliest[:, 1]).sum()),
                int((~is_likeliest[:, 0] & ~is_likeliest[:, 1]).sum()),
            ]
            assert (
                stats.chisquare(
                    pair_counts, np.array([p * p, 2 * p * (1 - p), (1 - p) ** 2]) * n
                ).pvalue
                > ALPHA
            ), "negatives depend on each other"


@pytest.mark.parametrize("exclude", [True, False])
def test_negative_pairs_follow_weights_and_are_no_edges(small: Graph, exclude: bool) -> None:
    positives = small.edges_at("buys", np.arange(len(ENDS)))
    links = small.link_seeds(
        positives, "buys", amount=400, weight="", src_weight="", exclude=exclude, seed=11
    )
    m, total = len(ENDS), 400 * len(ENDS)
    assert links.positives == m
    assert links.labels is not None
    assert links.labels.tolist() == [1.0] * m + [0.0] * (len(links) - m)
    assert np.array_equal(links.edge_ids, positives.edge_ids)
    assert np.array_equal(links.src[:m], positives.src)
    counts = np.zeros((USERS, ITEMS))
    np.add.at(counts, (links.src[m:], links.dst[m:]), 1)
    probabilities = np.stack(
        [
            USER_WEIGHTS[u]
            / USER_WEIGHTS.sum()
            * negative_probabilities(u, ITEM_WEIGHTS, exclude=exclude)
            for u in range(USERS)
        ]
    )
    assert not counts[probabilities == 0].any()
    left_out = total - counts.sum()  # pairs from a source with an edge to everything
    cells, expected = (
        [*counts[probabilities > 0], left_out],
        [*(probabilities[probabilities > 0] * total), (1 - probabilities.sum()) * total],
    )
    if not exclude:
        assert left_out == 0
        cells, expected = cells[:-1], expected[:-1]
    assert min(expected) >= 5
    assert stats.chisquare(cells, expected).pvalue > ALPHA


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"weighted": False},
        {"weight": "aged"},
        {"probabilities": True},
        {"where": "id > 9"},
        {"shared": True},
    ],
)
def test_exclude_edges_equals_excluding_read_neighbors(graph: Graph, how: dict[str, Any]) -> None:
    src, dst, _ = cases.edges()["cites"]
    sources = np.concatenate([src[:40], [-1, src[0]]])
    pairs = np.stack([sources, np.resize(dst[::-1], len(sources))], axis=1)
    neighbors = graph.neighbors(sources, "cites")
    for rows in (sources, pairs):
        by_neighbors = graph.sample_negatives(rows, 5, "paper", exclude=neighbors, seed=4, **how)
        by_edge_type = graph.sample_negatives(
            rows, 5, "paper", exclude_edges="cites", seed=4, **how
        )
        assert np.array_equal(by_edge_type.nodes, by_neighbors.nodes)
        assert (
            np.array_equal(by_edge_type.probabilities, by_neighbors.probabilities)
            if "probabilities" in how
            else by_edge_type.probabilities is None
        )
        replayed = graph.replay(by_edge_type.token, rows)
        # The replay has the type of the original call.
        assert np.array_equal(replayed.nodes, by_edge_type.nodes)  # type: ignore[attr-defined]
    combined = graph.sample_negatives(
        sources, 5, "paper", exclude=dst[: len(sources)], exclude_edges=["cites"], seed=4, **how
    )
    exclusions = (
        np.insert(neighbors.indptr + np.arange(len(sources) + 1), 0, 0)[1:],
        np.insert(neighbors.nodes, neighbors.indptr[:-1], dst[: len(sources)]),
    )
    assert np.array_equal(
        combined.nodes,
        graph.sample_negatives(sources, 5, "paper", exclude=exclusions, seed=4, **how).nodes,
    )
    with pytest.raises(asterism.InvalidRequest, match="the same"):
        graph.replay(by_edge_type.token, pairs[::-1])


def test_edges_that_cannot_be_excluded_are_refused(graph: Graph) -> None:
    for message, arguments in (
        (
            "edges of person:writes:paper do not lead to the sampled types, person",
            {"ntype": "person", "exclude_edges": "writes"},
        ),
        (
            "expected one node type, because ids of this space are per type",
            {"exclude_edges": "writes"},
        ),
        ("start at paper, person", {"ntype": "paper", "exclude_edges": ["writes", "cites"]}),
    ):
        with pytest.raises(asterism.InvalidRequest, match=message):
            graph.sample_negatives([1, 2], 3, **arguments)  # type: ignore[arg-type]
    with pytest.raises(asterism.NotFound, match="'likes'"):
        graph.sample_negatives([1, 2], 3, "paper", exclude_edges="likes")


def test_excluding_edges_of_a_hub_transfers_little(client: asterism.Client) -> None:
    """Excluding a hub's edges must not send its neighbors, 16 MB, for each of the rows.

    Requested and sent bytes do not grow with the degree.
    """
    degree = 2_000_000
    client.create_space("hub", {"parts": 2, "nodes": {"n": {}}, "edges": {"n:to:n": {}}})
    load = client.begin_load("hub", source="made up")
    load.write_nodes(0, "n", np.arange(2 * degree))
    load.write_edges(1, "to", np.zeros(degree, np.int64), np.arange(degree) * 2, ends_known=True)
    load.commit()
    hub = client.graph("hub")
    hub.build(timeout_s=HANG_S)
    links = hub.link_seeds(np.tile([[0, 4]], (64, 1)), "to", mode="triplet", amount=50, seed=1)
    assert links.negatives is not None
    assert (links.negatives % 2 == 1).all()
    explanation = hub.explain.sample_negatives(
        np.zeros(64, np.int64), 50, "n", exclude_edges="to", weighted=False, seed=1
    )
    assert (
        max(
            max(request.bytes_sent, request.bytes_received)
            for request in explanation.storage_requests
        )
        < 1 << 17
    )


def test_shapes_and_seeds_of_links(small: Graph, graph: Graph) -> None:
    edges = graph.sample_edges(40, "cites", seed=1)
    links = graph.link_seeds(edges, "cites", amount=0.3, seed=2)
    assert len(links) == 40 + 12
    src, dst, _ = cases.edges()["cites"]
    existing = set(zip(src.tolist(), dst.tolist(), strict=True))
    assert not existing & set(zip(links.src[40:].tolist(), links.dst[40:].tolist(), strict=True))
    assert cases.digest(graph.link_seeds(edges, "cites", amount=0.3, seed=2)) == cases.digest(links)
    assert cases.digest(graph.link_seeds(edges, "cites", amount=0.3, seed=3)) != cases.digest(links)
    with pytest.raises(
        asterism.InvalidRequest, match=r"edges\[0\] of type 'paper:cites:paper': expected 'writes'"
    ):
        graph.link_seeds(edges, "writes")
    assert len(small.link_seeds([(0, 0)], "buys", amount=0)) == 1
    empty = small.link_seeds(np.zeros((0, 2), np.int64), "buys", mode="triplet", amount=3)
    assert empty.negatives is not None
    assert empty.negatives.shape == (0, 3)
    for arguments, error, message in (
        ({"mode": "pairs"}, asterism.InvalidRequest, "mode='pairs'"),
        ({"amount": -1}, asterism.InvalidRequest, "amount=-1"),
        ({"amount": float("nan")}, asterism.InvalidRequest, "amount=nan"),
        ({"mode": "triplet", "amount": 1.5}, asterism.InvalidRequest, "amount=1.5"),
        ({"mode": "triplet", "src_weight": ""}, asterism.InvalidRequest, "src_weight=''"),
        ({"weight": "new"}, asterism.NotFound, "'new'"),
        ({"edges": [0, 1]}, asterism.InvalidRequest, r"shape \[2\]"),
        ({"edges": [(0, -1)]}, asterism.InvalidRequest, r"edges\[1\]=-1"),
        ({"edges": edges, "version": 9}, asterism.InvalidRequest, "version=9"),
    ):
        with pytest.raises(error, match=message):
            small.link_seeds(**{"edges": [(0, 0)], "etype": "buys", **arguments})  # type: ignore[arg-type]

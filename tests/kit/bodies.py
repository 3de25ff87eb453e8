"""Test bodies that every kind of cluster must pass: processes, containers, or one process.

Each takes a client, or a cluster's `client`, and a graph with known content. `shop` creates that
graph.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare

import asterism
from asterism import Client, Graph
from asterism.records.samples import Job
from tests.kit.waiting import HANG_S

USERS, ITEMS, EDGES = 300, 40, 3000
SPACE_PARTS = 6
ITEM_WEIGHTS = (np.arange(ITEMS) % 7).astype(np.float32)  # every seventh item weighs 0
ALPHA = 1e-6
"""Probability that a distribution test fails on correct code."""


def shop_schema() -> dict[str, object]:
    """Return the schema of users who buy items: weights on both, features of each kind."""
    return {
        "parts": SPACE_PARTS,
        "direction": "both",
        "nodes": {
            "user": {"features": {"age": "int64"}},
            "item": {
                "weighted": True,
                "features": {
                    "price": {"dtype": "float32", "shape": [2]},
                    "tags": {"kind": "ragged", "dtype": "int64"},
                },
            },
        },
        "edges": {
            "user:buys:item": {"weighted": True, "features": {"when": "int64"}},
            "user:follows:user": {},
        },
    }


def shop_edges() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the sources, destinations and weights of all edges; row i has edge id i."""
    rng = np.random.default_rng(5)
    return (
        rng.integers(0, USERS, EDGES),
        rng.integers(0, ITEMS, EDGES),
        rng.integers(0, 5, EDGES).astype(np.float32),
    )


def shop(client: Client, space: str) -> Job:
    """Load the shop into a new graph space, and build it."""
    client.create_space(space, shop_schema())
    src, dst, weights = shop_edges()
    load = client.begin_load(space, source="bodies")
    load.write_nodes(0, "user", np.arange(USERS), features={"age": np.arange(USERS) % 90})
    tags = np.arange(ITEMS + 1, dtype=np.int64)
    price = np.stack([np.arange(ITEMS), -np.arange(ITEMS)], axis=1).astype(np.float32)
    load.write_nodes(
        1,
        "item",
        np.arange(ITEMS),
        weights=ITEM_WEIGHTS,
        features={"price": price, "tags": (tags, np.arange(ITEMS))},
    )
    half = EDGES // 2
    assert (
        load.write_edges(
            2,
            "user:buys:item",
            src[:half],
            dst[:half],
            weights=weights[:half],
            features={"when": np.arange(half)},
        )
        == 0
    )
    assert (
        load.write_edges(
            3,
            "user:buys:item",
            src[half:],
            dst[half:],
            weights=weights[half:],
            features={"when": np.arange(half, EDGES)},
        )
        == half
    )
    user_ids = np.arange(USERS)
    load.write_edges(
        4,
        "user:follows:user",
        np.tile(user_ids, 2),
        np.concatenate([(user_ids + 1) % USERS, user_ids * 7 % USERS]),
    )
    load.commit()
    job = client.submit_job(space)
    return client.wait(job.job_id, timeout_s=HANG_S)


def assert_follows_weights(outcomes: np.ndarray, weights: np.ndarray) -> None:
    """Check that outcomes follow weights.

    Outcomes of weight 0 must not occur. The rest must pass a chi-square test over bins with an
    expected count of at least 5.
    """
    counts = np.bincount(outcomes, minlength=len(weights))
    assert not counts[weights == 0].any(), "an outcome of weight zero was drawn"
    has_weight = weights > 0
    expected = (
        weights[has_weight].astype(np.float64) / weights.sum(dtype=np.float64) * len(outcomes)
    )
    assert expected.min() >= 5, "draw more: the test has no power"
    assert chisquare(counts[has_weight], expected).pvalue > ALPHA


def assert_build_published(client: Client, space: str) -> None:
    """Check that a build publishes the loaded data, with its counts and weights."""
    job = shop(client, space)
    assert job.state == "FINISHED", job.cause
    manifest = client.manifest(space)
    assert manifest.version == job.version == 1
    assert [manifest.count("NODE", t) for t in range(2)] == [USERS, ITEMS]
    assert manifest.count("EDGE", 0) == EDGES
    assert manifest.weight("NODE", 1) == ITEM_WEIGHTS.sum()
    assert manifest.weight("EDGE", 0) == shop_edges()[2].sum()
    assert max(share.audit_tv for share in manifest.totals) <= 1e-9


def assert_draws_follow_weights(graph: Graph) -> None:
    """Check that nodes, edges and neighbors follow their weights, or are uniform."""
    src, dst, weights = shop_edges()
    assert_follows_weights(graph.sample_nodes(20_000, "item", seed=1).nodes, ITEM_WEIGHTS)
    assert_follows_weights(
        graph.sample_nodes(20_000, "item", seed=2, weighted=False).nodes, np.ones(ITEMS)
    )
    edges = graph.sample_edges(60_000, "buys", seed=3)
    assert_follows_weights(edges.edge_ids, weights)
    assert np.array_equal(src[edges.edge_ids], edges.src)
    assert np.array_equal(dst[edges.edge_ids], edges.dst)
    assert np.array_equal(weights[edges.edge_ids], edges.weights)
    user = int(np.bincount(src, weights).argmax())
    sample = graph.sample_neighbors(np.full(50, user), "buys", 200, seed=4)
    assert_follows_weights(
        sample.nodes.reshape(-1), np.bincount(dst[src == user], weights[src == user], ITEMS)
    )


def assert_reads_match_input(graph: Graph) -> None:
    """Check that neighbors, features and scans equal the input."""
    src, dst, _ = shop_edges()
    users = np.array([7, 0, 7, 123_456_789])
    neighbors = graph.neighbors(users, "buys")
    for row, user in enumerate(users):
        edge_rows = np.flatnonzero(src == user)
        edge_rows = edge_rows[np.lexsort((edge_rows, dst[edge_rows]))]
        row_slice = slice(neighbors.indptr[row], neighbors.indptr[row + 1])
        assert neighbors.nodes[row_slice].tolist() == dst[edge_rows].tolist()
        assert neighbors.edge_ids is not None
        assert neighbors.edge_ids[row_slice].tolist() == edge_rows.tolist()
    features = graph.node_features([3, 39], ["price", "tags"], "item")
    assert np.asarray(features["price"]).tolist() == [[3, -3], [39, -39]]
    indptr, values = features["tags"]
    assert (indptr.tolist(), values.tolist()) == ([0, 1, 2], [3, 39])
    assert np.asarray(graph.edge_features([0, EDGES - 1], ["when"], "buys")["when"]).tolist() == [
        0,
        EDGES - 1,
    ]
    assert sorted(
        np.concatenate([batch.edge_ids for batch in graph.scan_edges("buys")]).tolist()
    ) == list(range(EDGES))


def result_bytes(graph: Graph, *, version: int | None = None) -> list[bytes]:
    """Return the results of a fixed set of requests as bytes.

    They are equal whenever content, requests and seeds are equal.
    """
    users = np.arange(0, USERS, 7)
    nodes = graph.sample_nodes(500, seed=11, version=version)
    edges = graph.sample_edges(500, seed=12, version=version)
    neighbors = graph.sample_neighbors(users, "buys", 6, seed=13, replace=False, version=version)
    fanout = graph.sample_fanout(users, ["follows", "buys"], [3, 2], seed=14, version=version)
    arrays = [
        nodes.nodes,
        nodes.types,
        edges.edge_ids,
        edges.src,
        neighbors.nodes,
        *(hop.nodes for hop in fanout.hops),
    ]
    return [np.ascontiguousarray(array).tobytes() for array in arrays]


def assert_bad_requests_rejected(client: Client, space: str) -> None:
    """Check that invalid requests raise errors of the right class that show the value."""
    graph = client.graph(space)
    with pytest.raises(asterism.errors.NotFound, match="no-such-space"):
        client.describe("no-such-space")
    with pytest.raises(asterism.errors.NotFound, match="no-such-type"):
        graph.sample_nodes(1, "no-such-type")
    with pytest.raises(asterism.errors.NotFound):
        graph.sample_nodes(1, version=999)
    with pytest.raises(asterism.errors.InvalidRequest, match="-3"):
        graph.upsert_nodes([-3], "user")
    with pytest.raises(asterism.errors.Conflict):
        client.create_space(space, {"nodes": {"other": {}}})
    with pytest.raises(asterism.errors.NotFound, match="987654"):
        client.job(987654)

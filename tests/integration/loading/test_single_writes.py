"""Concurrent single writes: each is durable when acknowledged, and writes share commits."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from tests.kit.cluster import LocalCluster
from tests.kit.waiting import HANG_S

import asterism

SCHEMA = {
    "parts": 4,
    "direction": "both",
    "nodes": {"n": {"weighted": True, "features": {"x": "float32", "note": "bytes"}}},
    "edges": {
        "n:likes:n": {"weighted": True, "features": {"when": "int64"}},
        "n:knows:n": {"edges": "unique"},
    },
}
WRITERS, WRITES_PER_WRITER = 16, 12


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(storageds=2, graphds=2) as running:
        yield running


def test_concurrent_writers_share_commits_and_lose_nothing(cluster: LocalCluster) -> None:
    with cluster.client() as client:
        client.create_space("many", SCHEMA)
        graph = client.graph("many")
        graph.upsert_nodes(np.arange(WRITERS), "n")
        first = graph.upsert_nodes([0], "n")
        commits: list[int] = []
        refused: list[str] = []

        def run(writer: int) -> None:
            own_graph = client.graph("many")
            for i in range(WRITES_PER_WRITER):
                node = 1000 + writer * WRITES_PER_WRITER + i
                last = own_graph.upsert_nodes(
                    [node], "n", weights=[node], features={"x": [node], "note": [f"n{node}"]}
                )
                last = own_graph.upsert_edges(
                    [writer], [node], "likes", weights=[i + 1], features={"when": [node]}
                )
                commits.append(last)
                try:
                    own_graph.upsert_edges([writer], [999], "likes")
                except asterism.InvalidRequest as error:
                    refused.append(error.message)

        threads = [threading.Thread(target=run, args=(writer,)) for writer in range(WRITERS)]
        started = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(HANG_S)
        print(
            f"{2 * WRITERS * WRITES_PER_WRITER / (time.monotonic() - started):.0f} writes a "
            f"second from {WRITERS} writers"
        )
        assert len(commits) == WRITERS * WRITES_PER_WRITER
        assert len(refused) == WRITERS * WRITES_PER_WRITER
        assert all("dst[0] = 999: there is no 'n' node" in message for message in refused)
        assert (
            max(commits) - first < 2 * WRITERS * WRITES_PER_WRITER / 2
        )  # at least two writes per commit on average
        graph.build()
        nodes = 1000 + np.arange(WRITERS * WRITES_PER_WRITER)
        features = graph.node_features(nodes, ["weight", "x", "note"], "n")
        assert features["weight"].tolist() == features["x"].tolist() == nodes.tolist()
        indptr, values = features["note"]
        assert [bytes(values[a:b]).decode() for a, b in pairwise(indptr)] == [
            f"n{node}" for node in nodes
        ]
        neighbors = graph.neighbors(np.arange(WRITERS), "likes")
        assert neighbors.nodes.tolist() == nodes.tolist()
        assert neighbors.weights is not None
        assert neighbors.edge_ids is not None
        assert neighbors.weights.tolist() == list(range(1, WRITES_PER_WRITER + 1)) * WRITERS
        assert sorted(neighbors.edge_ids.tolist()) == list(range(WRITERS * WRITES_PER_WRITER))
        assert (
            graph.edge_features(neighbors.edge_ids, "when", "likes")["when"].tolist()
            == nodes.tolist()
        )


def test_writes_of_one_caller_apply_in_order(cluster: LocalCluster) -> None:
    with cluster.client() as client:
        client.create_space("order", SCHEMA)
        graph = client.graph("order")

        def run(node: int) -> None:
            own_graph = client.graph("order")
            own_graph.upsert_nodes([node], "n", weights=[1])
            own_graph.upsert_edges([node], [node], "knows")
            own_graph.delete_nodes([node], "n")
            own_graph.upsert_nodes([node], "n", weights=[2])
            if node % 2:
                own_graph.upsert_edges([node], [node], "knows")
                own_graph.upsert_edges([node], [node], "likes", weights=[3])
                own_graph.delete_edges([node], [node], "likes")

        threads = [threading.Thread(target=run, args=(node,)) for node in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(HANG_S)
        graph.build()
        neighbors = graph.neighbors(np.arange(12), "knows")
        assert np.diff(neighbors.indptr).tolist() == [0, 1] * 6
        assert graph.neighbors(np.arange(12), "likes").nodes.size == 0
        assert graph.node_features(np.arange(12), "weight", "n")["weight"].tolist() == [2.0] * 12


def test_large_write_is_sent_as_a_load(cluster: LocalCluster) -> None:
    with cluster.client() as client:
        client.create_space(
            "large", {"parts": 2, "nodes": {"n": {"features": {"v": {"shape": [1024]}}}}}
        )
        graph = client.graph("large")
        rows = 3000  # 12 MB
        assert graph.upsert_nodes(np.arange(rows), "n", features={"v": np.ones((rows, 1024))}) == 1
        graph.build()
        assert graph.node_features([0, rows - 1], "v")["v"].sum() == 2048


def test_writes_resume_after_storaged_outage(cluster: LocalCluster) -> None:
    with cluster.client(timeout_s=15) as client:
        client.create_space("away", SCHEMA)
        graph = client.graph("away")
        graph.upsert_nodes(np.arange(4), "n")
        cluster.kill("storaged-1")
        with pytest.raises(asterism.Unavailable, match="storaged"):
            graph.upsert_edges([0, 1], [1, 2], "likes")
        cluster.restart("storaged-1")
        cluster.wait_ready()
        graph.upsert_edges([2, 3], [3, 0], "likes")
        graph.build()
        assert graph.neighbors(np.arange(4), "likes").nodes.tolist() == [3, 0]

"""Features with more rows than one reply holds: read in concurrent pieces of one version."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.kit import cases
from tests.kit.cluster import LocalCluster
from tests.kit.waiting import HANG_S

import asterism
from asterism_proto.methods import Method

WIDTH, ROWS = 512, 35_000
"""The feature's total size exceeds 64 MiB."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(2) as cluster:
        yield cluster


def wide_graph(client: asterism.Client, name: str, value: int) -> asterism.Graph:
    """Create a space in which node i has a row filled with i + value."""
    client.create_space(
        name,
        {
            "nodes": {"n": {"features": {"x": {"dtype": "float32", "shape": [WIDTH]}}}},
            "edges": {},
            "parts": 4,
        },
        if_not_exists=True,
    )
    load = client.begin_load(name, source=f"generated {value}")
    for chunk, ids in enumerate(np.array_split(np.arange(ROWS), 4)):
        rows = np.repeat((ids + value).astype(np.float32)[:, None], WIDTH, axis=1)
        load.write_nodes(chunk, "n", ids, features={"x": rows})
    load.commit()
    graph = client.graph(name)
    graph.build(timeout_s=HANG_S)
    return graph


def assert_wide_features(graph: asterism.Graph, value: int) -> None:
    ids = np.random.default_rng(5).permutation(np.append(np.arange(ROWS), [-1] * 10))
    features: Any = graph.node_features(ids, ["x"])["x"]
    assert features.nbytes > 64 << 20
    np.testing.assert_array_equal(
        features,
        np.where(ids < 0, 0, ids + value).astype(np.float32)[:, None].repeat(WIDTH, axis=1),
    )


def test_features_beyond_one_reply_are_requested_in_pieces(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    assert_wide_features(wide_graph(cluster.client(timeout_s=HANG_S), "wide", 0), 0)
    with asterism.open(tmp_path) as client:
        assert_wide_features(wide_graph(client, "wide", 0), 0)


def test_every_kind_of_feature_is_the_same_in_pieces_as_in_one(cluster: LocalCluster) -> None:
    client = cluster.client(timeout_s=HANG_S)
    graph = cases.load(client, "kinds")
    people, papers = (
        np.resize(np.append(cases.person_ids(), [-1, 5]), 450),
        np.resize(np.arange(-1, cases.PAPERS + 2), 200),
    )
    edges = np.resize(np.arange(-1, cases.WRITES + 3, 5), 600)

    def read_all(graph: asterism.Graph) -> str:
        columns = [
            graph.node_features(people, ["name", "age", "weight"], "person"),
            graph.node_features(papers, ["words", "vec"]),
            graph.node_features(papers[:1], ["words", "vec"]),
            graph.edge_features(edges, ["tags", "when"], "writes"),
        ]
        return cases.digest(columns)

    expected = read_all(graph)
    transport: Any = graph._session.transport
    for piece in (1, 3000, 30_000):
        transport.piece_bytes = piece
        assert read_all(graph) == expected, f"pieces of {piece} bytes"


def test_pieces_share_one_version_despite_a_publication(cluster: LocalCluster) -> None:
    graph = wide_graph(cluster.client(timeout_s=HANG_S), "moving", 0)
    assert_wide_features(graph, 0)
    call_count, lock = [0], threading.Lock()

    class Publishing:
        """Client transport that publishes another version before the ninth piece is requested."""

        def __init__(self, inner: Any) -> None:
            self.inner, self.piece_bytes, self.versions = inner, inner.piece_bytes, set[int]()
            self.prices_requests = inner.prices_requests

        def call(self, method: Method, request: Any, timeout_s: float) -> Any:
            if method.name != "NodeFeatures":
                return self.inner.call(method, request, timeout_s)
            with lock:
                call_count[0] += 1
                if call_count[0] == 9:
                    wide_graph(cluster.client(timeout_s=HANG_S), "moving", 1000)
            reply = self.inner.call(method, request, timeout_s)
            self.versions.add(reply.head.version)
            return reply

        def close(self) -> None:
            self.inner.close()

    session: Any = graph._session
    session.transport = publishing = Publishing(session.transport)
    assert_wide_features(graph, 1000)
    assert len(publishing.versions) == 2, (
        "pieces were answered from both versions, and those of the older one again"
    )

"""Fixture of a real graph for tests with TensorFlow, in a cluster of three storageds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.kit.cluster import LocalCluster
from tests.kit.shared import ROOT, shared_or_skip

from asterism import Client, Graph, ingest

SCHEMA = ROOT / "examples/schemas/citations.yaml"


@pytest.fixture(scope="session")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(storageds=3) as running:
        client, root = running.client(), shared_or_skip("data", "cora")
        client.create_space("citations", ingest.schema_of(SCHEMA, root=root))
        ingest.load(client, "citations", SCHEMA, root=root)
        client.graph("citations").build(timeout_s=600)
        yield running


@pytest.fixture(scope="session")
def client(cluster: LocalCluster) -> Client:
    return cluster.client()


@pytest.fixture
def papers(client: Client) -> Iterator[Graph]:
    """The Cora graph, of one node type and one edge type."""
    with client.graph("citations").pin() as pinned:
        yield pinned

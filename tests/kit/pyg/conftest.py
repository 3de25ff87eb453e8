"""Fixtures of real graphs for tests with PyG, in three storageds and embedded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kit import linked_graphs
from tests.kit.cluster import LocalCluster
from tests.kit.shared import ROOT, shared_or_skip

import asterism
from asterism import Client, Graph, ingest

SCHEMAS = ROOT / "examples/schemas"
REAL = {"citations": "cora", "openflights": "openflights"}


def load(client: Client, rejects_folder: Path) -> None:
    """Load and build both real graphs."""
    for space, folder in REAL.items():
        root = shared_or_skip("data", folder)
        schema = ingest.schema_of(SCHEMAS / f"{space}.yaml", root=root)
        client.create_space(space, schema)
        ingest.load(
            client,
            space,
            SCHEMAS / f"{space}.yaml",
            root=root,
            on_bad_rows="skip",
            rejects=rejects_folder / f"{space}.csv",
        )
        client.graph(space).build(timeout_s=600)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(storageds=3, graphds=2) as running:
        load(running.client(), tmp_path_factory.mktemp("rejects"))
        yield running


@pytest.fixture(scope="session")
def example_cluster() -> Iterator[LocalCluster]:
    """Three storageds for the examples, each of which loads a space of its own."""
    with LocalCluster(storageds=3) as running:
        yield running


@pytest.fixture(scope="session")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with asterism.open(tmp_path_factory.mktemp("embedded")) as client:
        load(client, tmp_path_factory.mktemp("rejects"))
        yield client


@pytest.fixture(scope="session", params=["cluster", "embedded"])
def client(request: pytest.FixtureRequest) -> Client:
    fixture = request.getfixturevalue(request.param)
    return fixture.client() if isinstance(fixture, LocalCluster) else fixture


@pytest.fixture
def papers(client: Client) -> Iterator[Graph]:
    """The Cora graph, of one node type and one edge type."""
    with client.graph("citations").pin() as pinned:
        yield pinned


@pytest.fixture
def flights(client: Client) -> Iterator[Graph]:
    """The graph of airports, airlines and countries; its ids have gaps."""
    with client.graph("openflights").pin() as pinned:
        yield pinned


@pytest.fixture(scope="session")
def linked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of graphs with reverse edges."""
    with asterism.open(tmp_path_factory.mktemp("linked")) as client:
        for space in ("shop", "friends"):
            linked_graphs.load(client, space)
        yield client


@pytest.fixture
def shop(linked: Client) -> Iterator[Graph]:
    """A graph of purchases, with reverse edges of another type."""
    with linked.graph("shop").pin() as pinned:
        yield pinned


@pytest.fixture
def friends(linked: Client) -> Iterator[Graph]:
    """A graph of one edge type, with both directions of each edge."""
    with linked.graph("friends").pin() as pinned:
        yield pinned

"""A load killed at any chunk resumes when started again.

Every edge is written once, with the same id.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.kit.cluster import LocalCluster

from asterism import ingest
from asterism.formats.generate import Shop, write_numpy

SHOP = Shop(users=400, items=60, categories=3, clicks=30_000, buys=3_000, follows=3_000)
CHUNK_ROWS = "256"


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(storageds=2) as running:
        yield running


def start_load(cluster: LocalCluster, space: str, source: Path) -> subprocess.Popen[str]:
    """Start `asterism load` in a process of its own."""
    command = [sys.executable, "-m", "asterism.cli", "--address", cluster.addresses, "--json"]
    return subprocess.Popen(
        [*command, "load", space, str(source), "--chunk-rows", CHUNK_ROWS],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_killed_load_resumes_and_writes_every_edge_once(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    source = write_numpy(SHOP, tmp_path / "shop")
    with cluster.client() as client:
        for space in ("whole", "killed"):
            client.create_space(space, ingest.schema_of(source))
        ingest.load(client, "whole", source, chunk_rows=int(CHUNK_ROWS))
        kills = 0
        for wait_s in (1.2, 1.4, 1.7, 2.0, 2.4, 60.0):
            process = start_load(cluster, "killed", source)
            try:
                process.communicate(timeout=wait_s)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.communicate()
                kills += 1
                # Acknowledged rows are invisible until the load is committed.
                assert not client.versions("killed")
            else:
                break
        assert process.returncode == 0
        assert kills >= 1
        graphs = [client.graph(space) for space in ("whole", "killed")]
        for graph in graphs:
            graph.build()
        for etype in (edge_type.name for edge_type in graphs[0].schema.edge_types):
            uninterrupted, killed = (
                np.concatenate(
                    [np.stack((b.src, b.dst, b.edge_ids)) for b in graph.scan_edges(etype)], axis=1
                )
                for graph in graphs
            )
            np.testing.assert_array_equal(uninterrupted, killed)


def test_killed_storaged_loses_no_acknowledged_write(cluster: LocalCluster) -> None:
    with cluster.client() as client:
        client.create_space(
            "kept", {"parts": 4, "direction": "both", "nodes": {"n": {}}, "edges": {"n:to:n": {}}}
        )
        graph = client.graph("kept")
        graph.upsert_nodes(np.arange(50), "n")
        load = client.begin_load("kept")
        load.write_edges(0, "to", np.arange(50), (np.arange(50) * 7) % 50)
        for name in ("storaged-0", "storaged-1"):
            cluster.kill(name)
        for name in ("storaged-0", "storaged-1"):
            cluster.restart(name)
        cluster.wait_ready()
        load.write_edges(1, "to", [3, 3], [4, 5])
        load.commit()
        graph.build()
        edges = np.concatenate(
            [np.stack((batch.src, batch.dst)) for batch in graph.scan_edges("to")], axis=1
        )
        expected = sorted(
            [*zip(range(50), (np.arange(50) * 7 % 50).tolist(), strict=True), (3, 4), (3, 5)]
        )
        assert sorted(map(tuple, edges.T.tolist())) == expected

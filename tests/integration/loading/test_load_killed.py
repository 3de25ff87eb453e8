"""A load killed at any chunk resumes when started again.

Every edge is written once, with the same id.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.kit import zygote
from tests.kit.cluster import LocalCluster
from tests.kit.waiting import HANG_S, wait_until

from asterism import Client, ingest
from asterism.formats.generate import Shop, write_numpy

SHOP = Shop(users=400, items=60, categories=3, clicks=10_000, buys=3_000, follows=3_000)
CHUNK_ROWS = 256
KILLS = 5
"""Kills of the load, at equal distances."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(storageds=2) as running:
        yield running


def start_load(
    cluster: LocalCluster, space: str, source: Path, log: Path
) -> zygote.ForkedProcess | subprocess.Popen[bytes]:
    """Start `asterism load` in a process of its own, which appends to a log."""
    command = ("asterism.cli", "--address", cluster.addresses, "--json", "load", space, source)
    with log.open("ab") as output:
        return zygote.start(*command, "--chunk-rows", CHUNK_ROWS, output=output)


def database(cluster: LocalCluster, client: Client, space: str) -> Path:
    """Return the folder of a space's database in one of the storageds."""
    spaces = cluster.folder_of("storaged-0") / "spaces"
    return spaces / str(client.describe(space).space_id) / "graph"


def log_bytes(folder: Path) -> int:
    """Return the size of a database's log, which has what was loaded so far."""
    return sum(log.stat().st_size for log in folder.glob("*.log"))


def test_killed_load_resumes_and_writes_every_edge_once(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    source = write_numpy(SHOP, tmp_path / "shop")
    with cluster.client() as client:
        for space in ("whole", "killed"):
            client.create_space(space, ingest.schema_of(source))
        ingest.load(client, "whole", source, chunk_rows=CHUNK_ROWS)
        log, kills = tmp_path / "load.log", 0
        whole, loaded = (database(cluster, client, space) for space in ("whole", "killed"))
        total = log_bytes(whole)
        assert total > 30_000
        while True:
            process = start_load(cluster, "killed", source, log)
            enough = total * (kills + 1) // (KILLS + 2) if kills < KILLS else 2 * total
            wait_until(
                lambda load=process, enough=enough: (
                    load.poll() is not None or log_bytes(loaded) >= enough
                ),
                "more chunks are written, or all",
                poll_interval_s=0.02,
            )  # type: ignore[misc]
            process.kill()
            if process.wait(HANG_S) != -signal.SIGKILL:
                break
            kills += 1
            # Acknowledged rows are invisible until the load is committed.
            assert not client.versions("killed")
        assert process.returncode == 0, log.read_text()
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

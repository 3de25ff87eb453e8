"""Loads killed between any two calls, and writes concurrent with a build.

Every edge is written once, and each version equals the state at one commit watermark.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from tests.kit.cluster import LocalCluster
from tests.kit.invariants import ConsistencyMonitor, assert_settled, edges_of
from tests.kit.waiting import HANG_S

from asterism import Client, ingest
from asterism.formats.generate import Shop, write_numpy

SHOP = Shop(users=40, items=12, categories=3, clicks=120, buys=40, follows=40)
CHUNK_ROWS = 48
SCHEMA = {
    "parts": 4,
    "direction": "both",
    "nodes": {"n": {"weighted": True}},
    "edges": {"n:to:n": {"weighted": True}},
}
NODES, WRITERS = 60, 3
PACE_S = 0.02

KILLED_LOAD = """
import os, signal, sys
from asterism import connect, ingest
from asterism.transport.grpc import GrpcTransport

address, space, source, chunk_rows = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
plain = GrpcTransport.call


def load(point):
    calls = 0

    def call(self, *arguments, **named):
        nonlocal calls
        calls += 1
        if calls > point // 2:
            if point % 2:
                plain(self, *arguments, **named)  # it is done, but the answer is lost
            os.kill(os.getpid(), signal.SIGKILL)
        return plain(self, *arguments, **named)

    GrpcTransport.call = call
    with connect(address) as client:
        ingest.load(client, space, source, chunk_rows=chunk_rows)


point = 0
while True:
    # gRPC is not used before the fork: it does not survive one.
    pid = os.fork()
    if pid == 0:
        load(point)
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    if os.WIFEXITED(status):
        print(point)
        sys.exit(os.WEXITSTATUS(status))
    point += 1
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(storageds=2) as running:
        yield running


@pytest.fixture
def client(cluster: LocalCluster) -> Iterator[Client]:
    with cluster.client() as connected:
        yield connected


def test_load_killed_around_every_call_gives_the_same_graph(
    cluster: LocalCluster, client: Client, tmp_path: Path
) -> None:
    source = write_numpy(SHOP, tmp_path / "shop")
    for space in ("whole", "killed"):
        client.create_space(space, ingest.schema_of(source))
    uninterrupted = ingest.load(client, "whole", source, chunk_rows=CHUNK_ROWS)
    completed = subprocess.run(
        [
            sys.executable,
            "-c",
            KILLED_LOAD,
            cluster.addresses,
            "killed",
            str(source),
            str(CHUNK_ROWS),
        ],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    # The client is killed before and after each call. The last kill point lies after all calls.
    assert (
        int(completed.stdout.split()[-1])
        >= 2 * (uninterrupted.nodes + uninterrupted.edges) // CHUNK_ROWS
    )
    graphs = [client.graph(space) for space in ("whole", "killed")]
    for graph in graphs:
        assert graph.build().version == 1
    for edge_type in graphs[0].schema.edge_types:
        assert edges_of(graphs[0], edge_type.name) == edges_of(graphs[1], edge_type.name) != []
    for node_type in graphs[0].schema.node_types:
        scans = [
            np.concatenate([batch.ids for batch in graph.scan_nodes(node_type.name)])
            for graph in graphs
        ]
        assert sorted(scans[0].tolist()) == sorted(scans[1].tolist()) != []
    assert_settled(cluster, client, ["whole", "killed"])


@dataclass(slots=True)
class Oracle:
    """Expected content of the graph, as a sequence of commits."""

    commits: dict[int, tuple[str, int, int]] = field(default_factory=dict)
    """Map of commit number to (operation, first id, second id)."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def record(self, commit: int, operation: str, a: int, b: int = 0) -> None:
        with self.lock:
            assert commit not in self.commits, "two writes were given one place in the order"
            self.commits[commit] = (operation, a, b)

    def state_at(self, watermark: int) -> tuple[set[int], list[tuple[int, int]]]:
        """Return the live nodes and the edges after all commits up to a watermark."""
        nodes: set[int] = set()
        edges: list[tuple[int, int]] = []
        for commit in sorted(commit for commit in self.commits if commit <= watermark):
            operation, a, b = self.commits[commit]
            if operation == "all":
                nodes |= set(range(NODES))
            elif operation == "node":
                nodes.add(a)
            elif operation == "no node":
                nodes.discard(a)
                edges = [edge for edge in edges if a not in edge]
            elif operation == "no edge":
                edges = [edge for edge in edges if edge != (a, b)]
            else:
                edges.append((a, b))
        return nodes, sorted(edge for edge in edges if set(edge) <= nodes)


def write_until_stopped(
    client: Client, number: int, oracle: Oracle, stop: threading.Event, errors: list[BaseException]
) -> None:
    """Upsert and delete nodes and edges, one commit each, until stopped."""
    rng = np.random.default_rng(number)
    try:
        while not stop.is_set():
            src, dst = (int(node) for node in rng.integers(NODES, size=2))
            operation = str(rng.choice(["edge", "edge", "edge", "no edge", "no node", "node"]))
            load = client.begin_load("raced")
            if operation == "edge":
                load.write_edges(0, "to", [src], [dst], weights=[1.0], ends_known=True)
            elif operation == "no edge":
                load.delete_edges(0, "to", [src], [dst])
            elif operation == "no node":
                load.delete_nodes(0, "n", [src])
            else:
                load.write_nodes(0, "n", [src], weights=[1.0])
            oracle.record(load.commit(), operation, src, dst)
            time.sleep(PACE_S)
    except BaseException as error:
        errors.append(error)


def test_version_built_during_writes_is_the_state_at_its_cut(
    cluster: LocalCluster, client: Client
) -> None:
    client.create_space("raced", SCHEMA)
    graph, oracle = client.graph("raced"), Oracle()
    oracle.record(graph.upsert_nodes(np.arange(NODES), "n", weights=np.ones(NODES)), "all", 0)
    oracle.record(graph.upsert_edges([0], [1], "to", weights=[1.0]), "edge", 0, 1)
    graph.build()
    stop, errors = threading.Event(), list[BaseException]()
    writers = [
        threading.Thread(target=write_until_stopped, args=(client, i, oracle, stop, errors))
        for i in range(WRITERS)
    ]
    watermarks: dict[int, int] = {}
    with ConsistencyMonitor(cluster, "raced") as witness:
        for writer in writers:
            writer.start()
        try:
            for _ in range(3):
                acknowledged = max(oracle.commits)
                job = graph.build(timeout_s=HANG_S)
                assert job.watermark >= acknowledged, (
                    "a write that was acknowledged before the submit is not in"
                )
                watermarks[job.version] = job.watermark
        finally:
            stop.set()
            for writer in writers:
                writer.join(HANG_S)
        assert errors == []
        newest = graph.build(timeout_s=HANG_S)
        assert newest.watermark == max(oracle.commits)
        watermarks[newest.version] = newest.watermark
        time.sleep(0.2)
    assert witness.answered_count > 0
    assert len(set(watermarks.values())) >= 3, "there was no write while it was built"
    compared = 0
    for version in client.versions("raced"):
        if version.version in watermarks:
            nodes, edges = oracle.state_at(watermarks[version.version])
            assert version.watermark == watermarks[version.version]
            assert [
                (src, dst) for src, dst, _ in edges_of(graph, "to", version=version.version)
            ] == edges
            ids = np.concatenate(
                [batch.ids for batch in graph.scan_nodes("n", version=version.version)]
            )
            assert set(ids.tolist()) == nodes
            compared += 1
    assert compared >= 2
    assert_settled(cluster, client, ["raced"])

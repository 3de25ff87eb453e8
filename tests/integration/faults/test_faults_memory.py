"""Daemons and builds with too little memory.

They fail with typed errors, lose no acknowledged data, and return the same results afterwards. The
limit is on the private writable memory of one running process (`RLIMIT_DATA`), set from outside.
"""

from __future__ import annotations

import hashlib
import resource
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
from tests.kit.cluster import LocalCluster
from tests.kit.invariants import edges_of
from tests.kit.task_processes import find_builds
from tests.kit.waiting import HANG_S, wait_until

import asterism
from asterism import Client, Graph
from asterism_daemonkit.critical_threads import EXIT_STATUS

SCHEMA = {
    "parts": 2,
    "direction": "both",
    "nodes": {"n": {"weighted": True, "features": {"x": {"dtype": "float32", "shape": [64]}}}},
    "edges": {"n:to:n": {"weighted": True}},
}
NODES, EDGES = 20_000, 60_000
MIB = 1 << 20
ENDED_FOR_MEMORY = (EXIT_STATUS, -signal.SIGABRT, -signal.SIGSEGV)
REQUESTS, FANOUT = 16, 100


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(
        storageds=2, faults=True, flags={"metad": ["--max-attempts", "1", "--keep-versions", "100"]}
    ) as running:
        yield running


@pytest.fixture(scope="module")
def client(cluster: LocalCluster) -> Client:
    return cluster.client(timeout_s=20.0)


@pytest.fixture(scope="module")
def graph(client: Client) -> Graph:
    client.create_space("g", SCHEMA)
    fill(client, 0)
    client.graph("g").build(timeout_s=HANG_S)
    return client.graph("g")


def fill(client: Client, seed: int) -> None:
    rng = np.random.default_rng(seed)
    load = client.begin_load("g")
    load.write_nodes(
        0,
        "n",
        np.arange(NODES),
        weights=rng.random(NODES),
        features={"x": rng.random((NODES, 64), np.float32)},
    )
    load.write_edges(
        1,
        "to",
        rng.integers(0, NODES, EDGES),
        rng.integers(0, NODES, EDGES),
        weights=rng.random(EDGES),
        ends_known=True,
    )
    load.commit()


@contextmanager
def limit_memory(pid: int, headroom: int) -> Iterator[None]:
    """Limit a process to its present memory plus the headroom.

    The limit is removed afterwards if the process still runs.
    """
    size = next(
        line
        for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        if line.startswith("VmData:")
    )
    before = resource.prlimit(pid, resource.RLIMIT_DATA)
    resource.prlimit(pid, resource.RLIMIT_DATA, (int(size.split()[1]) * 1024 + headroom, before[1]))
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_DATA, before)


def query_results(graph: Graph) -> tuple[object, ...]:
    neighbors = graph.sample_neighbors(np.arange(200), "to", 4, seed=3, version=1)
    features = graph.node_features(np.arange(0, NODES, 7), "x", version=1)["x"].tobytes()
    return edges_of(graph, "to", version=1), neighbors.nodes.tobytes(), features


def image_manifests(cluster: LocalCluster, job_id: int) -> list[bytes]:
    """Return the manifests of a build's images; equal manifests mean equal content."""
    paths = cluster.folder.glob(f"storaged-*/spaces/*/builds/{job_id}/parts/*/manifest.json")
    return [path.read_bytes() for path in sorted(paths)]


def refusal(call: Callable[[], object]) -> asterism.AsterismError:
    """Return the error of a refused call, which must be typed and not an internal error."""
    with pytest.raises(asterism.AsterismError) as refused:
        call()
    assert not isinstance(refused.value, asterism.Internal), refused.value
    return refused.value


def restart_until_ready(cluster: LocalCluster) -> None:
    """Wait until every daemon is ready, and restart those that ended for lack of memory.

    A daemon may end by an abort of the allocator, or by a fault in a library that does not check an
    allocation. Only acknowledged data must survive.
    """

    def ready() -> bool:
        for daemon in cluster.daemons.values():
            if daemon.exit_status() is not None:
                assert daemon.exit_status() in ENDED_FOR_MEMORY, daemon.tail()
                daemon.start()
        return cluster.all_ready()

    wait_until(ready, "every daemon is ready")
    cluster.wait_ready()


def test_load_beyond_memory_is_refused_and_loses_no_data(
    cluster: LocalCluster, client: Client, graph: Graph
) -> None:
    expected = query_results(graph)
    rng = np.random.default_rng(9)
    features = {"x": rng.random((4 * NODES, 64), np.float32)}
    weights = rng.random(4 * NODES)
    load = client.begin_load("g")
    load.write_nodes(
        0,
        "n",
        np.arange(100) + 10**6,
        weights=np.ones(100),
        features={"x": np.ones((100, 64), np.float32)},
    )
    with limit_memory(cluster["storaged-0"].pid, 4 * MIB):
        refusal(
            lambda: load.write_nodes(
                1, "n", np.arange(4 * NODES) + 2 * 10**6, weights=weights, features=features
            )
        )
    restart_until_ready(cluster)
    load.write_nodes(1, "n", np.arange(4 * NODES) + 2 * 10**6, weights=weights, features=features)
    load.commit()
    build = graph.build(timeout_s=HANG_S)
    assert client.manifest("g", build.version).count("NODE", 0) == 5 * NODES + 100
    assert (
        graph.node_features(np.arange(4 * NODES) + 2 * 10**6, "x")["x"].tobytes()
        == features["x"].tobytes()
    )
    assert query_results(graph) == expected


def test_build_beyond_memory_fails_with_cause_and_recovers(
    cluster: LocalCluster, client: Client, graph: Graph
) -> None:
    expected = query_results(graph)
    graph.upsert_nodes([1], "n", weights=[2.0], features={"x": np.zeros((1, 64), np.float32)})
    for name in ("storaged-0", "storaged-1"):
        cluster.faults[name].set(hold_build_in=["nodes n"])
    job = client.submit_job("g", options={"link": "no"}).job_id
    children = [
        wait_until(lambda name=name: find_builds(cluster, name), f"{name} builds")[0]
        for name in ("storaged-0", "storaged-1")
    ]  # type: ignore[misc]
    wait_until(
        lambda: all(cluster.faults[name].reached() for name in ("storaged-0", "storaged-1")),
        "both builds are held",
    )
    with limit_memory(children[0].pid, 0):
        cluster.faults["storaged-0"].set()
        cluster.faults["storaged-1"].set()
        failed = client.wait(job, timeout_s=HANG_S)
    assert failed.state == "FAILED"
    assert "memory" in failed.cause, failed.cause
    assert query_results(graph) == expected
    client.recover_job(job)
    recovered = client.wait(job, timeout_s=HANG_S)
    assert recovered.state == "FINISHED"
    repeated = client.wait(client.submit_job("g", options={"link": "no"}).job_id, timeout_s=HANG_S)
    assert (
        image_manifests(cluster, recovered.job_id)
        == image_manifests(cluster, repeated.job_id)
        != []
    )
    assert query_results(graph) == expected


def test_requests_beyond_memory_are_refused_or_right(
    cluster: LocalCluster, client: Client, graph: Graph
) -> None:
    """Run concurrent requests, each of which fits into memory, and compare the results."""
    expected = query_results(graph)

    def neighbors(seed: int) -> bytes:
        drawn = graph.sample_neighbors(np.arange(NODES), "to", FANOUT, seed=seed, version=1)
        return hashlib.sha256(drawn.nodes.tobytes()).digest()

    def outcome(seed: int) -> bytes | asterism.AsterismError:
        try:
            return neighbors(seed)
        except asterism.AsterismError as error:
            return error

    digests = [neighbors(seed) for seed in range(REQUESTS)]
    with (
        limit_memory(cluster["storaged-0"].pid, MIB),
        ThreadPoolExecutor(REQUESTS) as threads,
    ):
        outcomes = list(threads.map(outcome, range(REQUESTS)))
    errors = [result for result in outcomes if isinstance(result, asterism.AsterismError)]
    assert not any(isinstance(error, asterism.Internal) for error in errors), errors
    assert all(
        result == digest
        for result, digest in zip(outcomes, digests, strict=True)
        if isinstance(result, bytes)
    )
    print(f"{len(errors)} of {REQUESTS} requests were refused")
    restart_until_ready(cluster)
    assert [neighbors(seed) for seed in range(REQUESTS)] == digests
    assert query_results(graph) == expected


def test_a_metad_beyond_memory_keeps_what_it_acknowledged(
    cluster: LocalCluster, client: Client, graph: Graph
) -> None:
    expected = query_results(graph)
    features = {f"feature_{i}": {"dtype": "float32", "shape": [i + 1]} for i in range(200)}
    schema = {"parts": 1, "nodes": {"n": {"features": features}}}

    def create(number: int) -> str | asterism.AsterismError:
        """Create a space; return its name if it was acknowledged, otherwise the error."""
        try:
            client.create_space(f"memory_{number}", schema)
        except asterism.AsterismError as error:
            return error
        return f"memory_{number}"

    with limit_memory(cluster["metad"].pid, 0), ThreadPoolExecutor(8) as threads:
        outcomes = list(threads.map(create, range(200)))
    acknowledged = {result for result in outcomes if isinstance(result, str)}
    assert not any(isinstance(result, asterism.Internal) for result in outcomes), outcomes
    print(f"{len(acknowledged)} of 200 spaces were acknowledged")
    restart_until_ready(cluster)
    spaces = {space.name for space in client.spaces()}
    assert acknowledged <= spaces
    assert query_results(graph) == expected
    for name in spaces - {"g"}:
        client.drop_space(name)

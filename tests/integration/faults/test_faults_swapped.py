"""Folders that are swapped, copied or shared by two clusters.

Each is refused by name, and no result changes.
"""

from __future__ import annotations

import shutil
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from tests.kit.cluster import FAST_HEARTBEATS, Daemon, LocalCluster
from tests.kit.invariants import edges_of
from tests.kit.waiting import HANG_S, wait_until

import asterism
from asterism import Client, Graph

SCHEMA = {
    "parts": 4,
    "direction": "both",
    "nodes": {"n": {"weighted": True}},
    "edges": {"n:to:n": {"weighted": True}},
}
NODES, EDGES = 400, 2_000
UNAVAILABLE_ERRORS = (asterism.Unavailable, asterism.Stale, asterism.NotFound, asterism.NotReady)
FLAGS = {"storaged": ["--open-retry-s", "0.5"], "metad": ["--max-attempts", "1"]}


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(storageds=2, flags=FLAGS) as running:
        yield running


@pytest.fixture
def client(cluster: LocalCluster) -> Client:
    return cluster.client(timeout_s=5.0)


def fill(graph: Graph, seed: int) -> None:
    rng = np.random.default_rng(seed)
    load = graph.client.begin_load(graph.space)
    load.write_nodes(0, "n", np.arange(NODES), weights=rng.random(NODES))
    load.write_edges(
        1,
        "to",
        rng.integers(0, NODES, EDGES),
        rng.integers(0, NODES, EDGES),
        weights=rng.random(EDGES),
        ends_known=True,
    )
    load.commit()


def create_built_space(client: Client, name: str, seed: int) -> Graph:
    client.create_space(name, SCHEMA)
    fill(client.graph(name), seed)
    client.graph(name).build(timeout_s=HANG_S)
    return client.graph(name)


def query_results(graph: Graph) -> tuple[object, ...]:
    neighbors = graph.sample_neighbors(np.arange(50), "to", 4, seed=3)
    return (
        edges_of(graph, "to"),
        neighbors.nodes.tobytes(),
        graph.sample_nodes(50, "n", seed=3).nodes.tobytes(),
    )


def swap(one: Path, other: Path) -> None:
    """Exchange two folders."""
    temporary = one.with_name("aside")
    one.rename(temporary)
    other.rename(one)
    temporary.rename(other)


def readiness_message(cluster: LocalCluster, name: str) -> str:
    assert cluster[name].exit_status() is None, cluster[name].tail()
    try:
        return cluster.missing(name)
    except OSError:
        return ""


def space_folder(cluster: LocalCluster, name: str, graph: Graph) -> Path:
    return cluster.folder_of(name) / "spaces" / str(graph.client.describe(graph.space).space_id)


Pair = Callable[[LocalCluster, Graph, Graph], tuple[Path, Path]]
SWAPS: dict[str, tuple[Pair, tuple[str, ...]]] = {
    "databases of two spaces": (
        lambda cluster, one, other: (
            space_folder(cluster, "storaged-0", one) / "graph",
            space_folder(cluster, "storaged-0", other) / "graph",
        ),
        ("storaged-0",),
    ),
    "folders of two spaces": (
        lambda cluster, one, other: (
            space_folder(cluster, "storaged-0", one),
            space_folder(cluster, "storaged-0", other),
        ),
        ("storaged-0",),
    ),
    "databases of two storageds": (
        lambda cluster, one, _: (
            space_folder(cluster, "storaged-0", one) / "graph",
            space_folder(cluster, "storaged-1", one) / "graph",
        ),
        ("storaged-0", "storaged-1"),
    ),
}


def test_swapped_databases_are_refused_and_name_their_owner(
    cluster: LocalCluster, client: Client
) -> None:
    one, other = create_built_space(client, "one", 1), create_built_space(client, "other", 2)
    expected = [query_results(graph) for graph in (one, other)]
    for case, (pair, names) in SWAPS.items():
        folders = pair(cluster, one, other)
        for name in names:
            assert cluster[name].stop() == 0
        swap(*folders)
        for name in names:
            cluster[name].start()
        for name in names:
            message = (
                f"space one cannot be opened: {space_folder(cluster, name, one)}/graph: the "
                "database belongs to space "
            )
            wait_until(
                lambda name=name, said=message: said in readiness_message(cluster, name),
                f"{case}: {name} says {message}",
            )  # type: ignore[misc]
        with pytest.raises(UNAVAILABLE_ERRORS):
            query_results(one)
        with pytest.raises(UNAVAILABLE_ERRORS):
            one.upsert_nodes(np.arange(8), "n", weights=np.ones(8))
        for name in names:
            assert cluster[name].stop() == 0
        swap(*folders)
        for name in names:
            cluster[name].start()
        cluster.wait_ready()
        assert [query_results(graph) for graph in (one, other)] == expected


def test_swapped_images_change_no_result(cluster: LocalCluster, client: Client) -> None:
    """Swap images of two versions, and of two partitions of one version.

    The images are withdrawn, rebuilt from the database, and served as before.
    """
    graph = create_built_space(client, "one", 1)
    fill(graph, 2)
    graph.build(timeout_s=HANG_S)
    expected = {version: version_results(graph, version) for version in (1, 2)}
    assert expected[1] != expected[2]
    first, second = (
        sorted(job.glob("parts/*"))
        for job in sorted((space_folder(cluster, "storaged-0", graph) / "builds").iterdir())
    )
    for pair in ((first[0], second[0]), (second[0], second[1])):
        assert cluster["storaged-0"].stop() == 0
        swap(*pair)
        cluster["storaged-0"].start()
        for version in (1, 2):
            wait_until(
                lambda version=version: is_served(graph, version, expected[version]),
                f"version {version} is served",
            )  # type: ignore[misc]
    cluster.wait_ready()


def version_results(graph: Graph, version: int) -> tuple[object, ...]:
    sample = graph.sample_nodes(50, "n", seed=3, version=version)
    return edges_of(graph, "to", version=version), sample.nodes.tobytes()


def is_served(graph: Graph, version: int, expected: tuple[object, ...]) -> bool:
    """Return true if a version is served; its results must then be the expected ones."""
    try:
        results = version_results(graph, version)
    except UNAVAILABLE_ERRORS:
        return False
    assert results == expected
    return True


def test_a_folder_of_another_cluster_is_refused(
    cluster: LocalCluster, client: Client, tmp_path: Path
) -> None:
    graph = create_built_space(client, "one", 1)
    expected = query_results(graph)
    folder = cluster.folder_of("storaged-0")
    with LocalCluster(storageds=1, folder=tmp_path) as other:
        with run_storaged(other, folder) as guest:  # while the folder is in use
            wait_until(lambda: guest.exit_status() is not None, "the guest ends")
            assert guest.exit_status() == 2
            assert str(folder) in guest.tail()
        assert cluster["storaged-0"].stop() == 0
        with run_storaged(other, folder) as guest:
            message = f"data={folder}: belongs to the cluster "
            wait_until(lambda: message in readiness_response(guest), f"the guest says {message}")
            with other.client() as connected:
                assert not any(
                    host.online and host.address == guest.address for host in connected.hosts()
                )
        cluster["storaged-0"].start()
    cluster.wait_ready()
    assert query_results(graph) == expected


def test_two_storageds_may_exchange_their_folders(cluster: LocalCluster, client: Client) -> None:
    """The identity is in the folder, so each partition is found at its new address."""
    graph = create_built_space(client, "one", 1)
    expected = query_results(graph)
    for name in ("storaged-0", "storaged-1"):
        assert cluster[name].stop() == 0
    swap(cluster.folder_of("storaged-0"), cluster.folder_of("storaged-1"))
    for name in ("storaged-0", "storaged-1"):
        cluster[name].start()
    cluster.wait_ready()
    assert query_results(graph) == expected


def test_a_copied_folder_is_refused_while_its_original_runs(
    cluster: LocalCluster, client: Client
) -> None:
    graph = create_built_space(client, "one", 1)
    expected = query_results(graph)
    folder = cluster.folder_of("storaged-0")
    copied = folder.with_name("copied")
    shutil.copytree(folder, copied, ignore=shutil.ignore_patterns("*.tmp"))
    with run_storaged(cluster, copied) as copy:
        for _ in range(2):  # a second start is refused like the first
            message = f"data='{copied}': the folder is a copy: uuid="
            wait_until(
                lambda refused=message: refused in readiness_response(copy),
                f"the copy says {message}",
            )  # type: ignore[misc]
            assert (
                f"already used by the process at {cluster['storaged-0'].address}"
                in readiness_response(copy)
            )
            assert cluster["storaged-0"].is_ready()
            fill(graph, 2)
            assert graph.build(timeout_s=HANG_S).state == "FINISHED"
            copy.kill()
            copy.start()
        latest = query_results(graph)
        assert latest != expected
        # With the original stopped, metad accepts the copy. The build then detects the missing
        # data.
        fill(graph, 3)
        cluster.kill("storaged-0")
        wait_until(
            lambda: is_online(client, copy),
            "the copy is heard once the lease of its original is over",
        )
        failed = client.wait(
            client.submit_job("one", options={"link": "no"}).job_id, timeout_s=HANG_S
        )
        assert failed.state == "FAILED"
        assert "Corrupt: " in failed.cause, failed.cause
        with pytest.raises(UNAVAILABLE_ERRORS):
            query_results(graph)
        # The original takes over again, and the copy is fenced.
        cluster["storaged-0"].start()
        wait_until(
            lambda: "the daemon has restarted since" in readiness_response(copy),
            "the copy is fenced",
        )
    cluster.wait_ready()
    assert query_results(graph) == latest
    assert graph.build(timeout_s=HANG_S).state == "FINISHED"


@contextmanager
def run_storaged(cluster: LocalCluster, folder: Path) -> Iterator[Daemon]:
    """Run an additional storaged of a cluster on a folder."""
    daemon = Daemon(
        "further",
        [
            "storaged",
            "--data",
            str(folder),
            "--metad",
            cluster["metad"].address,
            *FAST_HEARTBEATS,
            *FLAGS["storaged"],
        ],
        cluster.folder,
    )
    daemon.start()
    try:
        yield daemon
    finally:
        daemon.kill()
        daemon.release()


def readiness_response(daemon: Daemon) -> str:
    """Return the readiness message of a daemon, or an empty text without a reply."""
    try:
        with urllib.request.urlopen(f"http://{daemon.http_address}/readyz", timeout=HANG_S):
            return ""
    except urllib.error.HTTPError as error:
        with error:
            return error.read().decode()
    except OSError:
        return ""


def is_online(client: Client, daemon: Daemon) -> bool:
    return any(host.online and host.address == daemon.address for host in client.hosts())

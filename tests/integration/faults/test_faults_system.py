"""Failing system calls.

The faults are I/O errors, a read-only folder, few file descriptors, and a wall clock that jumps.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from tests.kit.cluster import LocalCluster
from tests.kit.invariants import edges_of
from tests.kit.syscalls import Syscalls
from tests.kit.waiting import HANG_S, wait_until

import asterism
from asterism import Client, Graph

WAIT_S = HANG_S
TEN_DAYS_S = 864_000
SCHEMA = {
    "parts": 2,
    "direction": "both",
    "nodes": {"n": {"weighted": True}},
    "edges": {"n:to:n": {"weighted": True}},
}
NODES, EDGES = 300, 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SyscallFaultCluster:
    """A cluster with a storaged in which tests make system calls fail."""

    cluster: LocalCluster
    calls: Syscalls
    client: Client
    graph: Graph

    def restart(self, *prefix: str) -> None:
        """Restart the storaged after a kill, with another command prefix."""
        self.cluster.kill("storaged-0")
        self.cluster["storaged-0"].prefix = prefix
        self.cluster["storaged-0"].start()


@pytest.fixture(scope="module")
def faulty_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SyscallFaultCluster]:
    folder = tmp_path_factory.mktemp("system")
    (folder / "data").mkdir()
    calls = Syscalls(folder / "data", folder)
    flags = {"storaged": ["--open-retry-s", "0.5"], "metad": ["--max-attempts", "1"]}
    with (
        LocalCluster(
            storageds=1, folder=folder / "data", environment=calls.environment, flags=flags
        ) as cluster,
        cluster.client(timeout_s=20.0) as client,
    ):
        client.create_space("g", SCHEMA)
        rng = np.random.default_rng(5)
        load = client.begin_load("g")
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
        client.graph("g").build(timeout_s=WAIT_S)
        yield SyscallFaultCluster(
            cluster=cluster, calls=calls, client=client, graph=client.graph("g")
        )


@pytest.fixture(autouse=True)
def check_recovery(faulty_cluster: SyscallFaultCluster) -> Iterator[None]:
    """Check that all data is unchanged after the faults are cleared."""
    expected = edges_of(faulty_cluster.graph, "to")
    yield
    faulty_cluster.calls.control()
    faulty_cluster.cluster.wait_ready()
    assert edges_of(faulty_cluster.graph, "to") == expected


def readiness_message(faulty_cluster: SyscallFaultCluster) -> str:
    try:
        return faulty_cluster.cluster.missing("storaged-0")
    except OSError:
        return ""


def test_write_with_failed_sync_is_refused_and_writes_resume(
    faulty_cluster: SyscallFaultCluster,
) -> None:
    faulty_cluster.calls.control(f"fail {errno.EIO} sync /graph/")
    with pytest.raises(asterism.Unavailable):
        faulty_cluster.graph.upsert_nodes([1], "n", weights=[2.0])
    assert faulty_cluster.cluster["storaged-0"].exit_status() is None
    faulty_cluster.calls.control()
    faulty_cluster.graph.upsert_nodes([1], "n", weights=[2.0])


def test_catalog_with_failed_sync_refuses_and_recovers(faulty_cluster: SyscallFaultCluster) -> None:
    faulty_cluster.calls.control(f"fail {errno.EIO} sync /catalog/")
    with pytest.raises(asterism.Unavailable):
        faulty_cluster.client.create_space("refused", SCHEMA)
    faulty_cluster.calls.control()
    wait_until(lambda: faulty_cluster.cluster.missing("metad") == "", "metad is ready")
    assert "refused" not in {space.name for space in faulty_cluster.client.spaces()}


@pytest.mark.slow
def test_build_on_read_only_folder_fails_with_the_cause(
    faulty_cluster: SyscallFaultCluster,
) -> None:
    faulty_cluster.calls.control(
        f"fail {errno.EROFS} open /builds/", f"fail {errno.EROFS} create /builds/"
    )
    failed = faulty_cluster.client.wait(
        faulty_cluster.client.submit_job("g", options={"link": "no"}).job_id, timeout_s=WAIT_S
    )
    assert failed.state == "FAILED"
    assert "Read-only file system" in failed.cause
    faulty_cluster.calls.control()
    faulty_cluster.client.recover_job(failed.job_id)
    assert faulty_cluster.client.wait(failed.job_id, timeout_s=WAIT_S).state == "FINISHED"


@pytest.mark.slow
def test_an_image_that_cannot_be_read_is_named_and_served_again(
    faulty_cluster: SyscallFaultCluster,
) -> None:
    faulty_cluster.calls.control(f"fail {errno.EIO} read e0.out.nbr.bin")
    faulty_cluster.restart()
    wait_until(
        lambda: "e0.out.nbr.bin" in readiness_message(faulty_cluster),
        "readiness names the damaged file",
    )
    with pytest.raises((asterism.Unavailable, asterism.Stale, asterism.NotReady)):
        edges_of(faulty_cluster.graph, "to")


@pytest.mark.slow
def test_storaged_reports_too_few_file_descriptors(faulty_cluster: SyscallFaultCluster) -> None:
    faulty_cluster.restart("sh", "-c", 'ulimit -n 48 && exec "$0" "$@"')
    try:
        daemon = faulty_cluster.cluster["storaged-0"]
        wait_until(
            lambda: (
                "Too many open files" in readiness_message(faulty_cluster) + daemon.tail()
                or daemon.exit_status() is not None
            ),
            "the daemon names the missing descriptors, or has ended",
        )
        assert "Too many open files" in readiness_message(faulty_cluster) + daemon.tail()
        assert (daemon.exit_status() or 0) >= 0  # no signal has ended it
    finally:
        faulty_cluster.restart()


def test_a_wall_clock_that_jumps_changes_nothing(faulty_cluster: SyscallFaultCluster) -> None:
    expected = edges_of(faulty_cluster.graph, "to")
    with faulty_cluster.graph.pin(term_s=60.0) as pinned:
        for seconds in (TEN_DAYS_S, -TEN_DAYS_S):
            faulty_cluster.calls.control(f"clock {seconds}")
            assert edges_of(pinned, "to") == expected
            faulty_cluster.graph.upsert_nodes([1], "n", weights=[2.0])
            assert faulty_cluster.graph.build(timeout_s=WAIT_S).state == "FINISHED"
            assert all(host.online for host in faulty_cluster.client.hosts())
            assert [pin.space for pin in faulty_cluster.client.pins("g")] == ["g"]
            assert edges_of(pinned, "to") == expected

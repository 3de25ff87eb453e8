"""A system that fails: I/O errors, a folder that became read-only, few descriptors, a wall clock that jumps."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from tests.kit.cluster import LocalCluster
from tests.kit.invariants import edges_of
from tests.kit.syscalls import Syscalls
from tests.kit.waiting import HANG_S

import asterism
from asterism import Client, Graph

WAIT_S = HANG_S
TEN_DAYS_S = 864_000
SCHEMA = {"parts": 2, "direction": "both", "nodes": {"n": {"weighted": True}}, "edges": {"n:to:n": {"weighted": True}}}
NODES, EDGES = 300, 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A cluster in which tests make system calls fail."""

    cluster: LocalCluster
    calls: Syscalls
    client: Client
    graph: Graph

    def restart(self, *prefix: str) -> None:
        """Start the storaged again after a kill, with another command prefix."""
        self.cluster.kill("storaged-0")
        self.cluster["storaged-0"].prefix = prefix
        self.cluster["storaged-0"].start()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("system")
    (folder / "data").mkdir()
    calls = Syscalls(folder / "data", folder)
    flags = {"storaged": ["--open-retry-s", "0.5"], "metad": ["--max-attempts", "1"]}
    with (
        LocalCluster(storageds=1, folder=folder / "data", environment=calls.environment, flags=flags) as cluster,
        cluster.client(timeout_s=20.0) as client,
    ):
        client.create_space("g", SCHEMA)
        rng = np.random.default_rng(5)
        load = client.begin_load("g")
        load.write_nodes(0, "n", np.arange(NODES), weights=rng.random(NODES))
        load.write_edges(1, "to", rng.integers(0, NODES, EDGES), rng.integers(0, NODES, EDGES), weights=rng.random(EDGES), ends_known=True)
        load.commit()
        client.graph("g").build(timeout_s=WAIT_S)
        yield Place(cluster=cluster, calls=calls, client=client, graph=client.graph("g"))


@pytest.fixture(autouse=True)
def recovered(place: Place) -> Iterator[None]:
    """Without faults all is as it was."""
    expected = edges_of(place.graph, "to")
    yield
    place.calls.control()
    place.cluster.wait_ready()
    assert edges_of(place.graph, "to") == expected


def until(holds: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def missing(place: Place) -> str:
    try:
        return place.cluster.missing("storaged-0")
    except OSError:
        return ""


def test_a_write_whose_sync_fails_is_refused_and_writes_go_on(place: Place) -> None:
    place.calls.control(f"fail {errno.EIO} sync /graph/")
    with pytest.raises(asterism.Unavailable):
        place.graph.upsert_nodes([1], "n", weights=[2.0])
    assert place.cluster["storaged-0"].ended() is None
    place.calls.control()
    place.graph.upsert_nodes([1], "n", weights=[2.0])


def test_a_catalog_whose_sync_fails_refuses_and_goes_on(place: Place) -> None:
    place.calls.control(f"fail {errno.EIO} sync /catalog/")
    with pytest.raises(asterism.Unavailable):
        place.client.create_space("refused", SCHEMA)
    place.calls.control()
    until(lambda: place.cluster.missing("metad") == "", "metad does not go on")
    assert "refused" not in {space.name for space in place.client.spaces()}


@pytest.mark.slow
def test_a_build_on_a_folder_that_is_read_only_fails_with_the_cause(place: Place) -> None:
    place.calls.control(f"fail {errno.EROFS} open /builds/", f"fail {errno.EROFS} create /builds/")
    failed = place.client.wait(place.client.submit_job("g", options={"link": "no"}).job_id, timeout_s=WAIT_S)
    assert failed.state == "FAILED"
    assert "Read-only file system" in failed.cause
    place.calls.control()
    place.client.recover_job(failed.job_id)
    assert place.client.wait(failed.job_id, timeout_s=WAIT_S).state == "FINISHED"


@pytest.mark.slow
def test_an_image_that_cannot_be_read_is_named_and_served_again(place: Place) -> None:
    place.calls.control(f"fail {errno.EIO} read e0.out.nbr.bin")
    place.restart()
    until(lambda: "e0.out.nbr.bin" in missing(place), "it serves, or does not name the file")
    with pytest.raises((asterism.Unavailable, asterism.Stale, asterism.NotReady)):
        edges_of(place.graph, "to")


@pytest.mark.slow
def test_a_storaged_with_too_few_descriptors_says_so(place: Place) -> None:
    place.restart("sh", "-c", 'ulimit -n 48 && exec "$0" "$@"')
    try:
        daemon = place.cluster["storaged-0"]
        until(lambda: "Too many open files" in missing(place) + daemon.tail() or daemon.ended() is not None, "it says nothing")
        assert "Too many open files" in missing(place) + daemon.tail()
        assert (daemon.ended() or 0) >= 0  # no signal has ended it
    finally:
        place.restart()


def test_a_wall_clock_that_jumps_changes_nothing(place: Place) -> None:
    answers = edges_of(place.graph, "to")
    with place.graph.pin(term_s=60.0) as pinned:
        for seconds in (TEN_DAYS_S, -TEN_DAYS_S):
            place.calls.control(f"clock {seconds}")
            assert edges_of(pinned, "to") == answers
            place.graph.upsert_nodes([1], "n", weights=[2.0])
            assert place.graph.build(timeout_s=WAIT_S).state == "FINISHED"
            assert all(host.online for host in place.client.hosts())
            assert [pin.space for pin in place.client.pins("g")] == ["g"]
            assert edges_of(pinned, "to") == answers

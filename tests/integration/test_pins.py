"""Pins on real processes and embedded: a held version answers however many are published, and its end is an error, never another version."""

from __future__ import annotations

import json
import os
import pickle
import signal
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.kit.cluster import LocalCluster
from tests.kit.waiting import HANG_S, let_pass, wait_until

import asterism
from asterism import Client, Graph, export
from asterism.transport import GrpcTransport
from asterism.versions import VersionInfo
from asterism_proto.errors import InvalidRequest, NotFound, Stale, Unavailable
from asterism_proto.v1 import metad_pb2 as meta
from standalone import published

FLAGS = {
    "metad": ["--keep-versions", "1", "--retire-after-s", "0.2", "--lease-s", "2", "--heartbeat-interval-s", "0.2"],
    "storaged": ["--sweep-interval-s", "0.5", "--quarantine-grace-s", "0"],
}
SCHEMA = {"parts": 2, "direction": "both", "nodes": {"n": {"features": {"at": "int64"}}}, "edges": {"n:to:n": {}}}
NODES = 400


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(storageds=2, flags=FLAGS) as running:
        yield running


@pytest.fixture(scope="module")
def client(cluster: LocalCluster) -> Iterator[Client]:
    with cluster.client() as connected:
        yield connected


def filled(client: Client, space: str) -> Graph:
    """A graph whose version v has ``at`` = v at every node."""
    client.create_space(space, SCHEMA)
    graph = client.graph(space)
    publish(graph, 1)
    return graph


def publish(graph: Graph, version: int) -> None:
    ids = np.arange(NODES)
    graph.upsert_nodes(ids, "n", features={"at": np.full(NODES, version)})
    graph.upsert_edges(ids, (ids + version) % NODES, "to")
    job = graph.build()
    assert job.version == version


TERM_S = 3.0
"""Of pins that are renewed: a third of it may be lost to whatever else the machine does."""


def versions(client: Client, space: str) -> list[int]:
    return [info.version for info in client.versions(space)]


def wait_for(holds: Callable[[], bool]) -> None:
    wait_until(holds, "what is awaited")


def at(graph: Graph) -> set[int]:
    """What version the features of a graph are of."""
    return set(np.asarray(graph.node_features([0, 1, NODES - 1], "at", "n")["at"]).tolist())


def folders(cluster: LocalCluster, space_id: int) -> set[int]:
    """Jobs whose builds lie on some storaged."""
    return {int(path.name) for path in cluster.folder.glob(f"storaged-*/spaces/{space_id}/builds/*") if path.name.isdigit()}


def test_a_pinned_version_answers_while_newer_ones_come_and_goes_after_its_block(cluster: LocalCluster, client: Client) -> None:
    graph = filled(client, "held")
    first: VersionInfo = client.manifest("held")
    with graph.pin(term_s=TERM_S, owner="this test") as held:
        assert held.version == 1
        before = held.sample_neighbors(np.arange(50), "to", 4, seed=3).nodes
        for version in (2, 3):
            publish(graph, version)
        wait_for(lambda: versions(client, "held") == [3, 1])
        let_pass(TERM_S + 0.5)  # more than a term: the thread has renewed it
        assert (at(held), at(graph)) == ({1}, {3})
        assert np.array_equal(held.sample_neighbors(np.arange(50), "to", 4, seed=3).nodes, before)
        assert held.sample_nodes(3, seed=1).version == 1
        assert {batch.version for batch in held.scan_edges("to")} == {1}
        with pytest.raises(InvalidRequest, match="version 3: this graph is at version 1"):
            held.sample_nodes(1, version=3)
        (pin,) = client.pins("held")
        assert (pin.version, pin.owner, pin.term_s) == (1, "this test", TERM_S)
        shown = {v["version"]: v["pins"] for v in cluster.get("metad", "/api/v1/spaces/held/versions")}
        assert ([p["owner"] for p in shown[1]], shown[3]) == (["this test"], [])
        metrics = urllib.request.urlopen(f"http://{cluster['metad'].http_address}/metrics").read().decode()
        assert "asterism_pins 1.0" in metrics
        assert first.job_id in folders(cluster, first.space_id)
    assert client.pins("held") == []
    wait_for(lambda: versions(client, "held") == [3])
    wait_for(lambda: folders(cluster, first.space_id) == {client.manifest("held").job_id})
    with pytest.raises(NotFound, match="version 1"):
        graph.at(1).sample_nodes(1)


def test_a_process_that_dies_loses_its_lease_and_nothing_else(cluster: LocalCluster, client: Client) -> None:
    graph = filled(client, "mortal")
    ready, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        with asterism.connect(cluster.addresses, space="mortal").pin(term_s=TERM_S, owner="the child"):
            os.write(told, b"!")
            signal.pause()
        os._exit(1)
    os.read(ready, 1)
    publish(graph, 2)
    let_pass(TERM_S + 0.5)
    assert versions(client, "mortal") == [2, 1]
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    wait_for(lambda: versions(client, "mortal") == [2])
    assert client.pins("mortal") == []


def test_a_forked_child_reads_what_its_parent_holds_and_lets_it_hold(cluster: LocalCluster, client: Client) -> None:
    graph = filled(client, "family")
    with graph.pin(term_s=TERM_S) as held:
        publish(graph, 2)
        pid = os.fork()
        if pid == 0:
            try:
                let_pass(TERM_S + 0.5)  # past the term that the child knows of
                os._exit(0 if at(held) == {1} else 1)
            except BaseException:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        copy = pickle.loads(pickle.dumps(held))
        assert (copy.version, at(copy)) == (1, {1})
        assert (at(held), len(client.pins("family"))) == ({1}, 1)


def test_a_pin_that_metad_knows_no_more_is_an_error_that_says_so(cluster: LocalCluster, client: Client) -> None:
    graph = filled(client, "lost")
    with graph.pin(term_s=1.0) as held:
        (pin,) = client.pins("lost")
        from asterism_proto.v1 import metad_pb2 as meta

        client.session.catalog("release_pin", meta.PinRequest(pin_id=pin.pin_id))
        assert at(held) == {1}
        wait_for(lambda: lost(held))
        publish(graph, 2)
        with pytest.raises(NotFound, match=rf"version 1 of space 'lost' is not pinned any more: pin {pin.pin_id} is not there.*pin anew"):
            at(held)
    assert at(graph) == {2}


def test_a_pin_outlives_a_restart_of_metad_and_its_absence_is_an_error(cluster: LocalCluster, client: Client) -> None:
    graph = filled(client, "restarted")
    with graph.pin(term_s=6.0) as held:  # longer than a graphd may take to find metad again
        publish(graph, 2)
        cluster.kill("metad")
        assert at(held) == {1}
        let_pass(6.2)
        with pytest.raises(Stale, match=r"version 1 of space 'restarted' may be gone: pin \d+, of 6 s, was over"):
            held.sample_nodes(1)
        cluster.restart("metad")
        wait_for(lambda: not refused(held))
        assert at(held) == {1}, "a restart grants a whole term again"
        let_pass(6.5)
        assert (at(held), versions(client, "restarted")) == ({1}, [2, 1])


def lost(graph: Graph) -> bool:
    try:
        graph.sample_nodes(1)
    except NotFound:
        return True
    return False


def refused(graph: Graph) -> bool:
    try:
        graph.sample_nodes(1)
    except Stale:
        return True
    return False


def test_an_export_goes_on_while_its_version_would_have_been_retired(client: Client, tmp_path: Path) -> None:
    graph = filled(client, "exported")
    publish_at = iter((2, 3))
    seen: list[list[int]] = []

    def slowly(phase: str, done: int, total: int | None) -> None:
        """In the middle of it, newer versions come, and what nobody holds goes."""
        if phase.startswith("edges") and done and len(seen) < 2:
            publish(graph, next(publish_at))
            wait_for(lambda: len(versions(client, "exported")) == 2)
            seen.append(versions(client, "exported"))

    report = export.dgl(graph, tmp_path / "out", parts=2, progress=slowly)
    assert seen == [[2, 1], [3, 1]]
    assert report.version == 1
    assert sum(sum(part.nodes.values()) for part in report.parts) == NODES
    assert sum(sum(part.edges.values()) for part in report.parts) == NODES
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["version"] == 1
    wait_for(lambda: versions(client, "exported") == [3])


def test_embedded_pins_are_those_of_a_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASTERISM_METAD_RETIRE_AFTER_S", "0")
    with asterism.open(tmp_path / "data", keep_versions=1) as client:
        graph = filled(client, "mine")
        with graph.pin(term_s=TERM_S) as held:
            publish(graph, 2)
            publish(graph, 3)
            let_pass(TERM_S + 0.5)
            assert (at(held), versions(client, "mine")) == ({1}, [3, 1])
        wait_for(lambda: versions(client, "mine") == [3])


def test_a_readers_versions_stay_on_disk_until_it_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASTERISM_METAD_RETIRE_AFTER_S", "0")
    monkeypatch.setenv("ASTERISM_STORAGED_SWEEP_INTERVAL_S", "0.2")
    builds = tmp_path / "data/storaged/spaces/1/builds"

    def there() -> list[str]:
        return sorted(path.name for path in builds.iterdir())

    with asterism.open(tmp_path / "data", keep_versions=1) as client:
        graph = filled(client, "mine")
        with asterism.open(tmp_path / "data", mode="r") as reader, reader.graph("mine").pin() as held:
            publish(graph, 2)
            wait_for(lambda: versions(client, "mine") == [2])
            let_pass(0.6)
            assert there() == ["1", "2"], "retired, but locked by a reader"
            assert at(held) == {1}
            assert [pin.version for pin in reader.pins()] == [1]
        wait_for(lambda: there() == ["2"])


def test_a_reader_finds_what_a_build_published_however_slow_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    note = published.Record.note

    def slowly(record: published.Record, reply: meta.PollReply) -> None:
        let_pass(0.5)
        note(record, reply)

    monkeypatch.setattr(published.Record, "note", slowly)
    with asterism.open(tmp_path / "data") as client:
        filled(client, "mine")
        with asterism.open(tmp_path / "data", mode="r") as reader:
            assert at(reader.graph("mine")) == {1}


def test_a_child_that_is_forked_while_a_renewal_is_sent_finds_no_lock_held(cluster: LocalCluster, client: Client) -> None:
    graph = filled(client, "forked")
    transport = client.session.transport
    assert isinstance(transport, GrpcTransport)
    with transport._lock:  # as the renewing thread holds it for a moment
        pid = os.fork()
        if pid == 0:
            signal.alarm(int(HANG_S))
            try:
                os._exit(0 if at(graph) == {1} else 1)
            except BaseException:
                os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_storaged_that_is_back_serves_what_is_pinned_and_until_then_says_that_it_will(cluster: LocalCluster, client: Client) -> None:
    graph = filled(client, "reopened")
    with graph.pin(term_s=30.0) as held:
        publish(graph, 2)
        before = held.sample_neighbors(np.arange(50), "to", 4, seed=3).nodes
        cluster.kill("storaged-0")
        cluster["storaged-0"].start()
        end = time.monotonic() + HANG_S
        while True:
            try:
                again = held.sample_neighbors(np.arange(50), "to", 4, seed=3).nodes
                break
            except Unavailable:  # and never NotFound: somebody holds it
                assert time.monotonic() < end
        assert np.array_equal(again, before)
    cluster.wait_ready()


def test_a_pickled_copy_of_an_embedded_graph_reads_the_folder_by_itself(tmp_path: Path) -> None:
    with asterism.open(tmp_path / "graphs") as opened:
        graph = filled(opened, "copied")
        with graph.pin() as held:
            copy = pickle.loads(pickle.dumps(held))
            publish(graph, 2)
            assert (copy.version, at(copy), at(graph)) == (1, {1}, {2})
            drawn = held.sample_subgraph(np.arange(20), [3], seed=1)
            assert copy.sample_subgraph(np.arange(20), [3], seed=1).token == drawn.token
            with pytest.raises(InvalidRequest, match="was opened for reading"):
                copy.upsert_nodes([1], "n", features={"at": [3]})
            copy.close()
        assert at(graph) == {2}


def test_a_child_forked_from_an_embedded_graph_reads_the_folder_by_itself_and_writes_nothing(tmp_path: Path) -> None:
    with asterism.open(tmp_path / "graphs") as opened:
        graph = filled(opened, "forked")
        with graph.pin() as held, opened.session._lock:  # as another thread may hold it
            pid = os.fork()
            if pid == 0:
                signal.alarm(60)
                try:
                    right = at(held) == {1} and at(held) == {1}
                    with pytest.raises(InvalidRequest, match="was opened for reading"):
                        held.upsert_nodes([1], "n", features={"at": [3]})
                    opened.close()  # the child's, not its parent's
                    os._exit(0 if right else 1)
                except BaseException:
                    os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        publish(graph, 2)
        assert at(graph) == {2}

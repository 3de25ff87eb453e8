"""Pins on real processes and embedded.

A pinned version is served however many versions are published. The end of a pin is an error, never
another version.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import urllib.request
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from tests.kit.cluster import LocalCluster
from tests.kit.waiting import HANG_S, let_pass, wait_until

import asterism
from asterism import Client, Graph, export
from asterism.records.versions import VersionInfo
from asterism.transport.grpc import GrpcTransport
from asterism_daemonkit.settings import DaemonSettings
from asterism_proto.errors import InvalidRequest, NotFound, Stale, Unavailable
from asterism_proto.v1 import metad_pb2 as metad_pb
from asterism_standalone import published_versions_file
from metad.settings import MetadSettings
from storaged.settings import StoragedSettings

FLAGS = {
    "metad": [
        "--keep-versions",
        "1",
        "--retire-after-s",
        "0.2",
        "--lease-s",
        "2",
        "--heartbeat-interval-s",
        "0.2",
    ],
    "storaged": ["--sweep-interval-s", "0.5", "--quarantine-grace-s", "0"],
}
SCHEMA = {
    "parts": 2,
    "direction": "both",
    "nodes": {"n": {"features": {"at": "int64"}}},
    "edges": {"n:to:n": {}},
}
NODES = 400


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(storageds=2, flags=FLAGS) as running:
        yield running


@pytest.fixture(scope="module")
def client(cluster: LocalCluster) -> Iterator[Client]:
    with cluster.client() as connected:
        yield connected


def create_graph(client: Client, space: str) -> Graph:
    """Create a graph in which every node of version v has ``at`` = v."""
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


TERM_S = 8.0
"""Term of renewed pins, in seconds; other load may delay a renewal by a third of it."""


def versions(client: Client, space: str) -> list[int]:
    return [info.version for info in client.versions(space)]


def feature_versions(graph: Graph) -> set[int]:
    """Return the versions that the features of a graph come from."""
    return set(np.asarray(graph.node_features([0, 1, NODES - 1], "at", "n")["at"]).tolist())


def build_jobs(cluster: LocalCluster, space_id: int) -> set[int]:
    """Return the jobs with builds on any storaged."""
    return {
        int(path.name)
        for path in cluster.folder.glob(f"storaged-*/spaces/{space_id}/builds/*")
        if path.name.isdigit()
    }


def test_pinned_version_serves_until_its_block_ends(cluster: LocalCluster, client: Client) -> None:
    graph = create_graph(client, "held")
    first: VersionInfo = client.manifest("held")
    with graph.pin(term_s=TERM_S, owner="this test") as pinned:
        assert pinned.version == 1
        expected = pinned.sample_neighbors(np.arange(50), "to", 4, seed=3).nodes
        for version in (2, 3):
            publish(graph, version)
        wait_until(lambda: versions(client, "held") == [3, 1], "versions 3 and 1 are held")
        let_pass(TERM_S + 0.5)  # more than a term: the thread has renewed the pin
        assert (feature_versions(pinned), feature_versions(graph)) == ({1}, {3})
        assert np.array_equal(
            pinned.sample_neighbors(np.arange(50), "to", 4, seed=3).nodes, expected
        )
        assert pinned.sample_nodes(3, seed=1).version == 1
        assert {batch.version for batch in pinned.scan_edges("to")} == {1}
        with pytest.raises(
            InvalidRequest, match="version=3: expected 1, the version of this graph"
        ):
            pinned.sample_nodes(1, version=3)
        (pin,) = client.pins("held")
        assert (pin.version, pin.owner, pin.term_s) == (1, "this test", TERM_S)
        pins_by_version = {
            v["version"]: v["pins"] for v in cluster.get("metad", "/api/v1/spaces/held/versions")
        }
        assert ([p["owner"] for p in pins_by_version[1]], pins_by_version[3]) == (["this test"], [])
        metrics = (
            urllib.request.urlopen(f"http://{cluster['metad'].http_address}/metrics")
            .read()
            .decode()
        )
        assert "asterism_pins 1.0" in metrics
        assert first.job_id in build_jobs(cluster, first.space_id)
    assert client.pins("held") == []
    wait_until(lambda: versions(client, "held") == [3], "version 3 alone is held")
    wait_until(
        lambda: build_jobs(cluster, first.space_id) == {client.manifest("held").job_id},
        "the build of version 3 alone is left",
    )
    with pytest.raises(NotFound, match="version 1"):
        graph.at(1).sample_nodes(1)


def test_pin_of_killed_process_expires(cluster: LocalCluster, client: Client) -> None:
    graph = create_graph(client, "mortal")
    ready_fd, notify_fd = os.pipe()
    pid = os.fork()
    if pid == 0:
        with asterism.connect(cluster.addresses, space="mortal", timeout_s=HANG_S).pin(
            term_s=TERM_S, owner="the child"
        ):
            os.write(notify_fd, b"!")
            signal.pause()
        os._exit(1)
    os.read(ready_fd, 1)
    publish(graph, 2)
    let_pass(TERM_S + 0.5)
    assert versions(client, "mortal") == [2, 1]
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    wait_until(lambda: versions(client, "mortal") == [2], "version 2 alone is held")
    assert client.pins("mortal") == []


def test_forked_child_reads_pin_and_leaves_it_to_parent(
    cluster: LocalCluster, client: Client
) -> None:
    graph = create_graph(client, "family")
    with graph.pin(term_s=TERM_S) as pinned:
        publish(graph, 2)
        pid = os.fork()
        if pid == 0:
            try:
                let_pass(TERM_S + 0.5)  # past the term that the child knows
                os._exit(0 if feature_versions(pinned) == {1} else 1)
            except BaseException:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        copy = pickle.loads(pickle.dumps(pinned))
        assert (copy.version, feature_versions(copy)) == (1, {1})
        assert (feature_versions(pinned), len(client.pins("family"))) == ({1}, 1)


def test_released_pin_is_a_clear_error(cluster: LocalCluster, client: Client) -> None:
    graph = create_graph(client, "lost")
    with graph.pin(term_s=1.0) as pinned:
        (pin,) = client.pins("lost")
        from asterism_proto.v1 import metad_pb2 as metad_pb

        client.session.catalog("release_pin", metad_pb.PinRequest(pin_id=pin.pin_id))
        assert feature_versions(pinned) == {1}
        wait_until(lambda: is_not_found(pinned), "the pinned version is gone")
        publish(graph, 2)
        with pytest.raises(
            NotFound,
            match=(
                rf"version 1 of space 'lost' is no longer pinned: pin {pin.pin_id} does not "
                r"exist.*pin again"
            ),
        ):
            feature_versions(pinned)
    assert feature_versions(graph) == {2}


def test_pin_survives_metad_restart_but_not_its_absence(
    cluster: LocalCluster, client: Client
) -> None:
    graph = create_graph(client, "restarted")
    with graph.pin(term_s=6.0) as pinned:  # longer than a graphd takes to find metad again
        publish(graph, 2)
        cluster.kill("metad")
        assert feature_versions(pinned) == {1}
        let_pass(6.2)
        with pytest.raises(
            Stale, match=r"version 1 of space 'restarted' may be gone: pin \d+ of 6 s expired"
        ):
            pinned.sample_nodes(1)
        cluster.restart("metad")
        wait_until(lambda: not is_stale(pinned), "the pinned version is served")
        assert feature_versions(pinned) == {1}, "a restart grants a whole term again"
        let_pass(6.5)
        assert (feature_versions(pinned), versions(client, "restarted")) == ({1}, [2, 1])


def is_not_found(graph: Graph) -> bool:
    try:
        graph.sample_nodes(1)
    except NotFound:
        return True
    return False


def is_stale(graph: Graph) -> bool:
    try:
        graph.sample_nodes(1)
    except Stale:
        return True
    return False


def test_export_pins_its_version(client: Client, tmp_path: Path) -> None:
    graph = create_graph(client, "exported")
    next_versions = iter((2, 3))
    observed: list[list[int]] = []

    def publish_newer(phase: str, done: int, total: int | None) -> None:
        """Publish newer versions during the export, so that unpinned versions are removed."""
        if phase.startswith("edges") and done and len(observed) < 2:
            publish(graph, next(next_versions))
            wait_until(lambda: len(versions(client, "exported")) == 2, "two versions are held")
            observed.append(versions(client, "exported"))

    report = export.dgl(graph, tmp_path / "out", parts=2, progress=publish_newer)
    assert observed == [[2, 1], [3, 1]]
    assert report.version == 1
    assert sum(sum(part.nodes.values()) for part in report.parts) == NODES
    assert sum(sum(part.edges.values()) for part in report.parts) == NODES
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["version"] == 1
    wait_until(lambda: versions(client, "exported") == [3], "version 3 alone is held")


def set_for_inner_daemons(
    monkeypatch: pytest.MonkeyPatch, kind: type[DaemonSettings], **settings: float
) -> None:
    """Change settings of the daemons inside embedded services, which no option sets."""
    from_keywords = kind.from_keywords
    monkeypatch.setattr(kind, "from_keywords", partial(from_keywords, **settings))


def test_embedded_pins_behave_like_service_pins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_for_inner_daemons(monkeypatch, MetadSettings, retire_after_s=0)
    with asterism.open(tmp_path / "data", keep_versions=1) as client:
        graph = create_graph(client, "mine")
        with graph.pin(term_s=TERM_S) as pinned:
            publish(graph, 2)
            publish(graph, 3)
            let_pass(TERM_S + 0.5)
            assert (feature_versions(pinned), versions(client, "mine")) == ({1}, [3, 1])
        wait_until(lambda: versions(client, "mine") == [3], "version 3 alone is held")


def test_reader_keeps_its_version_on_disk_until_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_for_inner_daemons(monkeypatch, MetadSettings, retire_after_s=0)
    set_for_inner_daemons(monkeypatch, StoragedSettings, sweep_interval_s=0.2)
    builds = tmp_path / "data/storaged/spaces/1/builds"

    def build_names() -> list[str]:
        return sorted(path.name for path in builds.iterdir())

    with asterism.open(tmp_path / "data", keep_versions=1) as client:
        graph = create_graph(client, "mine")
        with (
            asterism.open(tmp_path / "data", mode="r") as reader,
            reader.graph("mine").pin() as pinned,
        ):
            publish(graph, 2)
            wait_until(lambda: versions(client, "mine") == [2], "version 2 alone is held")
            let_pass(0.6)
            assert build_names() == ["1", "2"], "retired, but locked by a reader"
            assert feature_versions(pinned) == {1}
            assert [pin.version for pin in reader.pins()] == [1]
        wait_until(lambda: build_names() == ["2"], "build 2 alone is left")


def test_reader_sees_published_build_on_slow_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    update = published_versions_file.PublishedFile.update

    def slow_update(
        record: published_versions_file.PublishedFile, reply: metad_pb.PollReply
    ) -> None:
        let_pass(0.5)
        update(record, reply)

    monkeypatch.setattr(published_versions_file.PublishedFile, "update", slow_update)
    with asterism.open(tmp_path / "data") as client:
        create_graph(client, "mine")
        with asterism.open(tmp_path / "data", mode="r") as reader:
            assert feature_versions(reader.graph("mine")) == {1}


def test_child_forked_during_pin_renewal_is_not_blocked(
    cluster: LocalCluster, client: Client
) -> None:
    graph = create_graph(client, "forked")
    transport = client.session.transport
    assert isinstance(transport, GrpcTransport)
    with transport._lock:  # the renewing thread may hold this lock for a moment
        pid = os.fork()
        if pid == 0:
            signal.alarm(int(HANG_S))
            try:
                os._exit(0 if feature_versions(graph) == {1} else 1)
            except BaseException:
                os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_restarted_storaged_serves_pinned_version(cluster: LocalCluster, client: Client) -> None:
    graph = create_graph(client, "reopened")
    with graph.pin(term_s=30.0) as pinned:
        publish(graph, 2)
        expected = pinned.sample_neighbors(np.arange(50), "to", 4, seed=3).nodes
        cluster.kill("storaged-0")
        cluster["storaged-0"].start()
        actual = wait_until(
            lambda: pinned.sample_neighbors(np.arange(50), "to", 4, seed=3),
            "the storaged answers again",
            ignored=Unavailable,  # NotFound must not occur, because the version is pinned
        )
        assert np.array_equal(actual.nodes, expected)
    cluster.wait_ready()


def test_pickled_embedded_graph_reads_folder_on_its_own(tmp_path: Path) -> None:
    with asterism.open(tmp_path / "graphs") as opened:
        graph = create_graph(opened, "copied")
        with graph.pin() as pinned:
            copy = pickle.loads(pickle.dumps(pinned))
            publish(graph, 2)
            assert (copy.version, feature_versions(copy), feature_versions(graph)) == (1, {1}, {2})
            sample = pinned.sample_subgraph(np.arange(20), [3], seed=1)
            assert copy.sample_subgraph(np.arange(20), [3], seed=1).token == sample.token
            with pytest.raises(InvalidRequest, match="is open for reading"):
                copy.upsert_nodes([1], "n", features={"at": [3]})
            copy.close()
        assert feature_versions(graph) == {2}


def test_forked_embedded_graph_reads_folder_read_only(tmp_path: Path) -> None:
    with asterism.open(tmp_path / "graphs") as opened:
        graph = create_graph(opened, "forked")
        with graph.pin() as pinned, opened.session._lock:  # another thread may hold this lock
            pid = os.fork()
            if pid == 0:
                signal.alarm(60)
                try:
                    is_correct = feature_versions(pinned) == {1} and feature_versions(pinned) == {1}
                    with pytest.raises(InvalidRequest, match="is open for reading"):
                        pinned.upsert_nodes([1], "n", features={"at": [3]})
                    opened.close()  # closes the child's session only
                    os._exit(0 if is_correct else 1)
                except BaseException:
                    os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        publish(graph, 2)
        assert feature_versions(graph) == {2}

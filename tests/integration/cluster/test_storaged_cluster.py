"""A storaged follows only its first metad.

A connection to another metad with an empty catalog does not delete its data.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kit.metad import SCHEMA
from tests.kit.waiting import wait_until

from asterism_daemonkit.rpc.call_context import Handler
from asterism_daemonkit.rpc.transports import LocalTransport
from asterism_proto.errors import Conflict, Corrupt
from asterism_proto.methods import CATALOG
from asterism_proto.v1 import metad_pb2 as metad_pb
from metad.app import Metad
from metad.settings import MetadSettings
from storaged.app import Storaged
from storaged.cluster_identity import ClusterIdentity
from storaged.settings import StoragedSettings


class Harness:
    """Several metads on separate folders, and one storaged that connects to one after another."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.handlers: dict[str, Handler] = {}
        self.metads: dict[str, Metad] = {}
        self.storaged: Storaged | None = None

    def metad(self, name: str) -> Metad:
        metad = self.metads[name] = Metad(
            MetadSettings(data=self.folder / name, listen="127.0.0.1:0", http_listen="127.0.0.1:0")
        )
        metad.start()
        return metad

    def connect(self, metad: Metad) -> None:
        self.handlers.update(metad.handlers)

    def start(self) -> Storaged:
        settings = StoragedSettings(
            data=self.folder / "s",
            listen="127.0.0.1:0",
            http_listen="127.0.0.1:0",
            heartbeat_interval_s=0.1,
            poll_wait_s=0.2,
        )
        self.storaged = Storaged(settings, LocalTransport(self.handlers))
        self.storaged.start()
        return self.storaged

    def stop(self) -> None:
        if self.storaged is not None:
            self.storaged.stop()
            self.storaged = None

    @property
    def space_folder(self) -> Path:
        return self.folder / "s" / "spaces" / "1"

    def wait_for_mismatch(self, storaged: Storaged) -> str:
        wait_until(
            lambda: any("belongs to the cluster" in reason for reason in storaged.ready()),
            "the storaged refuses the other cluster",
        )
        return next(reason for reason in storaged.ready() if "belongs to the cluster" in reason)


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Harness]:
    harness = Harness(tmp_path)
    yield harness
    harness.stop()
    for metad in harness.metads.values():
        metad.stop()


def test_storaged_ignores_metad_with_another_cluster_id(harness: Harness) -> None:
    own = harness.metad("own")
    harness.connect(own)
    storaged = harness.start()
    wait_until(lambda: not storaged.ready(), "the storaged is ready")
    LocalTransport(own.handlers).call(
        CATALOG["create_space"],
        metad_pb.CreateSpaceRequest(name="graph", schema=SCHEMA.to_proto()),
        5,
    )
    wait_until(lambda: (harness.space_folder / "graph").is_dir(), "the store exists")
    ours = own.status()["cluster"]
    assert (harness.folder / "s" / "cluster").read_text() == ours

    # An empty catalog names nothing to keep. Obeying it would delete all data of a storaged.
    empty = harness.metad("empty")
    theirs = empty.status()["cluster"]
    harness.connect(empty)
    for _ in range(2):
        reason = harness.wait_for_mismatch(storaged)
        assert ours in reason
        assert theirs in reason
        assert str(harness.folder / "s") in reason
        assert "empty data folder" in reason
        assert (harness.space_folder / "graph").is_dir()
        harness.stop()
        storaged = harness.start()

    harness.connect(own)
    wait_until(lambda: not storaged.ready(), "the storaged is ready")
    assert (harness.space_folder / "graph").is_dir()
    # Data that its own metad no longer names is still removed.
    LocalTransport(own.handlers).call(
        CATALOG["drop_space"], metad_pb.DropSpaceRequest(space="graph"), 5
    )
    wait_until(lambda: not harness.space_folder.exists(), "the folder of the space is gone")


def test_first_cluster_id_is_kept_and_others_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "cluster"
    first = ClusterIdentity(file)
    first.check("")
    assert not file.exists()
    first.check("one")
    first.check("one")
    for cluster in (first, ClusterIdentity(file)):
        for other in ("two", ""):
            with pytest.raises(
                Conflict,
                match=(
                    "belongs to the cluster one, but metad belongs to the cluster "
                    f"{other or 'none'};"
                ),
            ):
                cluster.check(other)
            assert cluster.fault
        cluster.check("one")
        assert cluster.fault == ""
    assert file.read_text() == "one"


def test_unreadable_cluster_file_is_a_conflict(tmp_path: Path) -> None:
    for content in (b"", b"\xff\xfe"):
        (tmp_path / "cluster").write_bytes(content)
        with pytest.raises(Conflict):
            ClusterIdentity(tmp_path / "cluster").check("one")


def test_data_without_cluster_file_is_refused(tmp_path: Path) -> None:
    ClusterIdentity(tmp_path / "cluster").check_identity()
    (tmp_path / "spaces").mkdir()
    ClusterIdentity(tmp_path / "cluster").check_identity()
    (tmp_path / "spaces" / "1").mkdir()
    with pytest.raises(Corrupt, match="cluster: missing, though"):
        ClusterIdentity(tmp_path / "cluster").check_identity()
    (tmp_path / "cluster").write_text("one")
    (tmp_path / "identity.json").write_text("{}")
    ClusterIdentity(tmp_path / "cluster").check_identity()

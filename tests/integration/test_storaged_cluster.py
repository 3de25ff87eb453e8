"""A storaged follows the one metad that it began with: another one, with an empty catalog, does not cost it its data."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.kit.metad import SCHEMA
from tests.kit.waiting import HANG_S

from asterism_proto.errors import Conflict, Corrupt
from asterism_proto.methods import CATALOG
from asterism_proto.v1 import metad_pb2 as mpb
from daemonkit.calls import Handler, LocalTransport
from metad.app import Metad
from metad.settings import MetadSettings
from storaged.app import Storaged
from storaged.cluster import Cluster
from storaged.settings import StoragedSettings


def wait_for(true: Callable[[], bool]) -> None:
    until = time.monotonic() + HANG_S
    while not true():
        assert time.monotonic() < until
        time.sleep(0.01)


class House:
    """Metads on folders of their own, and one storaged that is connected to one of them after the other."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.line: dict[str, Handler] = {}
        self.metads: dict[str, Metad] = {}
        self.storaged: Storaged | None = None

    def metad(self, name: str) -> Metad:
        metad = self.metads[name] = Metad(MetadSettings(data=self.folder / name, listen="127.0.0.1:0", http_listen="127.0.0.1:0"))
        metad.start()
        return metad

    def connect(self, metad: Metad) -> None:
        self.line.update(metad.handlers)

    def start(self) -> Storaged:
        settings = StoragedSettings(
            data=self.folder / "s", listen="127.0.0.1:0", http_listen="127.0.0.1:0", heartbeat_interval_s=0.1, poll_wait_s=0.2
        )
        self.storaged = Storaged(settings, LocalTransport(self.line))
        self.storaged.start()
        return self.storaged

    def stop(self) -> None:
        if self.storaged is not None:
            self.storaged.stop()
            self.storaged = None

    @property
    def space(self) -> Path:
        return self.folder / "s" / "spaces" / "1"

    def refused(self, storaged: Storaged) -> str:
        wait_for(lambda: any("belongs to the cluster" in word for word in storaged.ready()))
        return next(word for word in storaged.ready() if "belongs to the cluster" in word)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path)
    yield house
    house.stop()
    for metad in house.metads.values():
        metad.stop()


def test_a_metad_that_lost_its_folder_is_not_obeyed_by_a_storaged_that_runs_or_starts(house: House) -> None:
    own = house.metad("own")
    house.connect(own)
    storaged = house.start()
    wait_for(lambda: not storaged.ready())
    LocalTransport(own.handlers).call(CATALOG["create_space"], mpb.CreateSpaceRequest(name="graph", schema=SCHEMA.to_proto()), 5)
    wait_for(lambda: (house.space / "graph").is_dir())
    ours = own.status()["cluster"]
    assert (house.folder / "s" / "cluster").read_text() == ours

    # An empty catalog wants nothing: whatever a storaged has would go.
    empty = house.metad("empty")
    theirs = empty.status()["cluster"]
    house.connect(empty)
    for _ in range(2):
        said = house.refused(storaged)
        assert ours in said
        assert theirs in said
        assert str(house.folder / "s") in said
        assert "empty data folder" in said
        assert (house.space / "graph").is_dir()
        house.stop()
        storaged = house.start()

    house.connect(own)
    wait_for(lambda: not storaged.ready())
    assert (house.space / "graph").is_dir()
    # What its own metad does not name still goes.
    LocalTransport(own.handlers).call(CATALOG["drop_space"], mpb.DropSpaceRequest(space="graph"), 5)
    wait_for(lambda: not house.space.exists())


def test_the_first_cluster_is_kept_over_starts_and_the_others_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "cluster"
    first = Cluster(file)
    first.check("")
    assert not file.exists()
    first.check("one")
    first.check("one")
    for cluster in (first, Cluster(file)):
        for other in ("two", ""):
            with pytest.raises(Conflict, match=f"belongs to the cluster one, but metad belongs to the cluster {other or 'none'};"):
                cluster.check(other)
            assert cluster.fault
        cluster.check("one")
        assert cluster.fault == ""
    assert file.read_text() == "one"


def test_a_cluster_that_can_not_be_read_is_no_cluster_that_is_obeyed(tmp_path: Path) -> None:
    for content in (b"", b"\xff\xfe"):
        (tmp_path / "cluster").write_bytes(content)
        with pytest.raises(Conflict):
            Cluster(tmp_path / "cluster").check("one")


def test_a_folder_with_data_and_without_its_cluster_is_refused(tmp_path: Path) -> None:
    Cluster(tmp_path / "cluster").check_identity()
    (tmp_path / "spaces").mkdir()
    Cluster(tmp_path / "cluster").check_identity()
    (tmp_path / "spaces" / "1").mkdir()
    with pytest.raises(Corrupt, match="cluster: missing, though"):
        Cluster(tmp_path / "cluster").check_identity()
    (tmp_path / "cluster").write_text("one")
    (tmp_path / "identity.json").write_text("{}")
    Cluster(tmp_path / "cluster").check_identity()

"""An older copy of metad's catalog removes no newer data; `adopt` quarantines that data."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.kit.deployment import Deployment
from tests.kit.waiting import wait_until

import asterism
from asterism.cli.app import run
from asterism.cli.exit_codes import ExitCode
from asterism_proto.errors import NotFound, NotReady
from asterism_proto.v1 import metad_pb2 as metad_pb
from metad.store import keys
from metad.store.rocksdb_store import RocksStore


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    deployment = Deployment(tmp_path)
    yield deployment
    deployment.stop()


def assert_older(deployment: Deployment) -> None:
    """Assert that every daemon reports the older catalog with the remedy."""
    metad = deployment.metad
    assert metad is not None
    daemons = [*deployment.storageds.values(), deployment.graphd, metad]
    wait_until(
        lambda: all(
            any("older than" in message for message in daemon.ready()) for daemon in daemons
        ),
        "every daemon reports the older catalog",
    )
    for daemon in daemons:
        assert any("asterism metad adopt" in message for message in daemon.ready())


def build_folders(deployment: Deployment) -> dict[str, list[str]]:
    """Return every folder of the storageds."""
    return {
        name: sorted(
            str(path.relative_to(deployment.folder))
            for path in (deployment.folder / name / "spaces").glob("*/builds/*")
        )
        for name in deployment.storageds
    }


def test_an_older_copy_removes_nothing_until_adopted(deployment: Deployment) -> None:
    """Replay a case that lost data: stop, copy, start, write, stop, put the copy back."""
    first = deployment.publish("first")
    deployment.stop_metad()
    deployment.copy_catalog("copy")
    deployment.start_metad()
    deployment.publish("second")
    second_id = deployment.client.describe("second").space_id
    newer = deployment.publish("first", first=100)
    wait_until(lambda: deployment.version("first") == newer, "the newer version is served")
    graphs = {space: deployment.client.graph(space) for space in ("first", "second")}
    for graph in graphs.values():
        graph.sample_nodes(3, "n", seed=1)
    before = build_folders(deployment)

    deployment.restore_catalog("copy")
    assert_older(deployment)
    assert build_folders(deployment) == before
    served = {space: graph.sample_nodes(3, "n", seed=1).version for space, graph in graphs.items()}
    assert served == {"first": newer, "second": 1}, "what is served stays served"
    for change in (
        lambda: deployment.client.submit_job("first"),
        lambda: deployment.client.create_space("third", {"nodes": {"n": {}}}),
        lambda: deployment.client.begin_load("first"),
        lambda: deployment.client.drop_space("first"),
    ):
        with pytest.raises(NotReady, match="asterism metad adopt"):
            change()
    state = deployment.state()
    assert {f.role for f in state.followers_ahead} == {metad_pb.STORAGED, metad_pb.GRAPHD}

    wait_until(
        lambda: len(deployment.state().unknown_data) == 6,
        "two storageds report a space, a version and a load each",
    )
    adoption = deployment.adopt()
    assert {u.space for u in adoption.unknown_data if not u.job_id and not u.loads} == {"second"}
    assert {u.version for u in adoption.unknown_data if u.job_id} == {newer}
    assert all(u.bytes > 0 for u in adoption.unknown_data if u.space_id == second_id)
    deployment.wait_ready()
    wait_until(
        lambda: all(second_id not in deployment.spaces(name) for name in deployment.storageds),
        "no storaged holds the second space",
    )
    wait_until(lambda: deployment.version("first") == first, "the first version is served")
    for name in deployment.storageds:
        wait_until(
            lambda name=name: len(deployment.quarantined(name)) >= 3,
            f"{name} has quarantined what was given up",
        )  # type: ignore[misc]
        assert f"spaces/{second_id}" in deployment.quarantined(name)
        assert "spaces/1/graph" in deployment.quarantined(name), (
            "a copy of the blocks that were given up"
        )
    with pytest.raises(NotFound):
        deployment.client.describe("second")

    # Work continues, and no identifier that was given up is assigned again.
    assert deployment.publish("first", first=200) == newer
    wait_until(lambda: deployment.version("first") == newer, "the newer version is served")
    deployment.publish("third")
    assert deployment.client.describe("third").space_id > second_id
    deployment.restore_catalog("copy")
    assert_older(deployment)


def test_the_newer_catalog_put_back_is_followed_at_once(deployment: Deployment) -> None:
    deployment.publish("first")
    deployment.copy_catalog("older")  # copied while metad runs
    deployment.publish("first", first=100)
    deployment.stop_metad()
    deployment.copy_catalog("newer")
    deployment.start_metad()
    deployment.restore_catalog("older")
    assert_older(deployment)
    deployment.restore_catalog("newer")
    deployment.wait_ready()
    assert deployment.publish("first", first=200) == 3
    assert deployment.state().fault == ""


def test_older_copy_with_a_higher_revision_is_detected(deployment: Deployment) -> None:
    deployment.publish("first")
    deployment.copy_catalog("copy")
    deployment.publish("first", first=100)
    followed_revision = deployment.state().position.revision
    for name in list(deployment.storageds):
        deployment.stop_storaged(name)
    deployment.restore_catalog("copy")
    # A pin is a write of the catalog for which no storaged is needed.
    while deployment.state().position.revision <= followed_revision + 10:
        deployment.client.session.catalog("pin_version", metad_pb.PinVersionRequest(space="first"))
    for name in ("s0", "s1"):
        deployment.start_storaged(name)
    assert_older(deployment)
    assert all(
        f.followed_position.revision < deployment.state().position.revision
        for f in deployment.state().followers_ahead
    )
    deployment.adopt()
    deployment.wait_ready()
    assert deployment.publish("first", first=200) == 2


def test_two_restores_in_a_row_while_a_storaged_is_down(deployment: Deployment) -> None:
    deployment.publish("first")
    deployment.copy_catalog("copy")
    deployment.publish("second")
    deployment.stop_storaged("s1")
    deployment.wait_caught_up("s0")  # so that s0 has followed more than s1
    for _ in range(2):
        deployment.restore_catalog("copy")
        assert_older(deployment)
        deployment.adopt()
        deployment.wait_ready()
        wait_until(lambda: deployment.spaces("s0") == {1}, "s0 holds the first space alone")
    assert deployment.spaces("s1") == {1, 2}
    deployment.start_storaged("s1")
    deployment.wait_ready()
    wait_until(lambda: deployment.spaces("s1") == {1}, "s1 holds the first space alone")
    assert "spaces/2" in deployment.quarantined("s1"), "ordered away when it came back"
    assert deployment.publish("first", first=100) == 2


def test_an_emptied_catalog_folder_can_be_adopted(deployment: Deployment) -> None:
    deployment.publish("first")
    cluster = deployment.state().cluster
    deployment.stop_metad()
    shutil.rmtree(deployment.metad_folder)
    metad = deployment.start_metad()
    wait_until(
        lambda: all(
            any("belongs to the cluster" in word for word in s.ready())
            for s in deployment.storageds.values()
        ),
        "every storaged refuses the other cluster",
    )
    wait_until(
        lambda: any("belong to another cluster" in word for word in metad.ready()),
        "metad knows that storageds belong to another cluster",
    )
    assert all(deployment.spaces(name) == {1} for name in deployment.storageds)
    deployment.adopt(cluster)
    deployment.wait_ready()
    assert deployment.state().cluster == cluster
    wait_until(
        lambda: all(deployment.spaces(name) == set() for name in deployment.storageds),
        "no storaged holds a space",
    )
    assert all(deployment.quarantined(name) == ["spaces/1"] for name in deployment.storageds)
    assert deployment.publish("first") == 1
    assert deployment.client.describe("first").space_id > 1


def publish(folder: Path, first: int) -> int:
    """Write nodes to the only space of an embedded folder and publish; return the version."""
    with asterism.open(folder) as client:
        if not client.spaces():
            client.create_space("g", {"parts": 2, "nodes": {"n": {}}})
        load = client.begin_load("g", source=f"nodes from {first}")
        load.write_nodes(0, "n", np.arange(first, first + 20))
        load.commit()
        return client.graph("g").build().version


def test_an_embedded_folder_detects_an_older_metad_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, copy = tmp_path / "data", tmp_path / "copy"
    assert publish(folder, 0) == 1
    # The state that an earlier release leaves: no history, no position.
    store = RocksStore(folder / "metad" / "catalog")
    store.write(
        {
            key: None
            for key, _ in [*store.range(keys.TERMS), (keys.HISTORY, b""), (keys.REVISION, b"")]
        }
    )
    store.close()
    (folder / "storaged" / "position").unlink()
    assert publish(folder, 100) == 2
    shutil.copytree(folder, copy)
    assert publish(folder, 200) == 3
    shutil.rmtree(folder / "metad")
    shutil.copytree(copy / "metad", folder / "metad")
    with pytest.raises(NotReady, match="asterism metad adopt"):
        asterism.open(folder)
    assert run(["--path", str(folder), "--json", "metad", "adopt", "--dry-run"]) == ExitCode.DONE
    listing = json.loads(capsys.readouterr().out)
    assert [item["loads"] for item in listing["unknown"] if item["loads"]] == [[3]]
    assert [item["job"] for item in listing["unknown"] if item["job"]] == [3]
    assert run(["--path", str(folder), "--json", "metad", "adopt"]) == ExitCode.USAGE
    capsys.readouterr()
    assert run(["--path", str(folder), "--json", "metad", "adopt", "--yes"]) == ExitCode.DONE
    assert json.loads(capsys.readouterr().out)["adopted"] is True
    assert publish(folder, 300) == 3
    with asterism.open(folder, space="g") as graph:
        assert len(np.unique(graph.sample_nodes(2000, "n", seed=1).nodes)) == 60
    assert publish(copy, 400) == 3, "a copy of the whole folder is consistent in itself"

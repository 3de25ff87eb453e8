"""Restore metad from a snapshot with real processes and the commands of docs/backup.md."""

from __future__ import annotations

import json
import shlex
import subprocess
import urllib.error
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.kit import zygote
from tests.kit.cluster import LocalCluster
from tests.kit.waiting import HANG_S, wait_until

from asterism import Client
from asterism.cli.exit_codes import ExitCode
from asterism_proto.errors import NotFound, NotReady

PAGE = Path(__file__).parents[3] / "docs" / "backup.md"
SECTION = "## Restoring metad from a snapshot"
NODES = 40
STORAGEDS = ("storaged-0", "storaged-1")
POLL_INTERVAL_S = 0.1
"""Half of a heartbeat interval: what these tests wait for comes with heartbeats."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    lease = ["--lease-s", "2", "--heartbeat-interval-s", "0.2"]
    with LocalCluster(
        storageds=2,
        folder=tmp_path,
        flags={"metad": lease, "storaged": ["--quarantine-free-mib", "0"]},
    ) as running:
        yield running


def publish(client: Client, space: str, first: int) -> int:
    """Write nodes to a space and publish them; return the version.

    Creates the space if it does not exist.
    """
    if space not in {existing.name for existing in client.spaces()}:
        client.create_space(space, {"parts": 4, "nodes": {"n": {"weighted": True}}})
    load = client.begin_load(space, source=f"nodes from {first}")
    load.write_nodes(0, "n", np.arange(first, first + NODES), weights=np.ones(NODES))
    load.commit()
    return client.graph(space).build(timeout_s=HANG_S).version


def sample_space(client: Client, space: str) -> tuple[int, list[int]]:
    """Return the version and the nodes of a sample."""
    sample = client.graph(space).sample_nodes(20, "n", seed=5)
    return sample.version, sample.nodes.tolist()


def documented_commands(step_index: int) -> list[str]:
    """Return the commands of one step of the page."""
    section = PAGE.read_text().partition(SECTION)[2].partition("\n## ")[0]
    steps = section.partition("1. ")[2].partition("After step 6")[0]
    blocks = [block.partition("```")[0] for block in steps.split("```sh\n")[1:]]
    return [line.strip() for line in blocks[step_index].splitlines() if line.strip()]


COPY_ASIDE, PUT_BACK, STATUS, LIST, UNDO, ADOPT = range(6)


class Operator:
    """Runner for the documented commands, with a cluster's own folders and address."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._folders = {
            "/srv/metad": str(cluster.folder_of("metad")),
            "/srv/snapshots": str(cluster.folder / "snapshots"),
        }
        self._address = cluster["graphd-0"].address
        (cluster.folder / "snapshots").mkdir()

    def run(self, step_index: int, *arguments: str, allowed: tuple[int, ...] = (0,)) -> str:
        """Run the commands of a step; return the output of the last one."""
        out = ""
        for line in documented_commands(step_index):
            for documented_path, actual_path in self._folders.items():
                line = line.replace(documented_path, actual_path)
            command, *words = shlex.split(line)
            if command == "asterism":
                completed = zygote.run(
                    "asterism.cli", "--address", self._address, *words, *arguments
                )
            else:
                completed = subprocess.run(
                    ["bash", "-ec", line],
                    capture_output=True,
                    text=True,
                    timeout=HANG_S,
                    check=False,
                )
            assert completed.returncode in allowed, (
                f"{line}: {completed.returncode}\n{completed.stdout}\n{completed.stderr}"
            )
            out = completed.stdout
        return out

    def list_unknown(self) -> dict[str, Any]:
        """Return the documented listing, once both storageds have reported."""

        def read_listing() -> dict[str, Any]:
            listing: dict[str, Any] = json.loads(self.run(LIST, "--json"))
            ahead = [item for item in listing["ahead"] if item["role"] == "STORAGED"]
            return listing if len(ahead) == 2 and all(item["reported"] for item in ahead) else {}

        return wait_until(
            read_listing,
            "both storageds have reported their inventories",
            poll_interval_s=POLL_INTERVAL_S,
        )


def build_folders(cluster: LocalCluster) -> list[str]:
    return sorted(
        str(path.relative_to(cluster.folder))
        for name in STORAGEDS
        for path in cluster.folder_of(name).glob("spaces/*/builds/*")
    )


def not_ready_reason(cluster: LocalCluster, name: str) -> str:
    """Return why a daemon is not ready; empty while it is ready or does not listen yet."""
    try:
        return cluster.missing(name)
    except urllib.error.URLError:
        return ""


def wait_older(cluster: LocalCluster) -> None:
    """Wait until `/readyz` of every daemon reports the older catalog and the remedy."""
    for name in ("metad", "graphd-0", *STORAGEDS):
        wait_until(
            lambda name=name: "older than" in not_ready_reason(cluster, name),
            f"{name} reports an older catalog",
            poll_interval_s=POLL_INTERVAL_S,
        )  # type: ignore[misc]
        assert "asterism metad adopt" in not_ready_reason(cluster, name)


def snapshot(cluster: LocalCluster) -> None:
    """Take a snapshot of metad's folder as documented: with metad stopped."""
    assert cluster["metad"].stop() == 0
    subprocess.run(
        ["cp", "-a", str(cluster.folder_of("metad")), str(cluster.folder / "snapshots" / "metad")],
        check=True,
    )
    cluster.restart("metad")


def put_back(cluster: LocalCluster, operator: Operator) -> None:
    """Restore metad's folder from the snapshot as documented.

    Waits until daemons report an older catalog.
    """
    assert cluster["metad"].stop() == 0
    operator.run(COPY_ASIDE)
    operator.run(PUT_BACK)
    cluster["metad"].start()
    wait_older(cluster)


def test_a_snapshot_is_restored_by_the_documented_commands(cluster: LocalCluster) -> None:
    client, operator = cluster.client(timeout_s=HANG_S), Operator(cluster)
    first = publish(client, "kept", 0)
    snapshot(cluster)
    newer = publish(client, "kept", 1000)
    publish(client, "given-up", 0)
    served = {space: sample_space(client, space) for space in ("kept", "given-up")}
    assert served["kept"][0] == newer
    before = build_folders(cluster)

    put_back(cluster, operator)
    assert "older than" in " ".join(operator.run(STATUS, allowed=(ExitCode.UNAVAILABLE,)).split())
    assert {space: sample_space(client, space) for space in served} == served, (
        "served versions stay served"
    )
    with pytest.raises(NotReady, match="asterism metad adopt"):
        client.create_space("other", {"nodes": {"n": {}}})
    listing = operator.list_unknown()
    assert {item["space"] for item in listing["unknown"]} == {"kept", "given-up"}
    assert {
        item["version"] for item in listing["unknown"] if item["job"] and item["space"] == "kept"
    } == {newer}
    assert build_folders(cluster) == before, "nothing is removed before the adoption"
    assert not any(cluster.get(name, "/status")["quarantine"] for name in STORAGEDS)

    # The list has more than can be given up. Put the newer folder back: the daemons follow it at
    # once.
    assert cluster["metad"].stop() == 0
    operator.run(UNDO)
    cluster.restart("metad")
    assert {space: sample_space(client, space) for space in served} == served
    assert publish(client, "kept", 2000) == newer + 1

    # Restore once more, this time to the end.
    (cluster.folder_of("metad").with_name("metad.older")).rename(cluster.folder / "unused")
    put_back(cluster, operator)
    operator.list_unknown()
    operator.run(ADOPT)
    wait_until(
        cluster.all_ready,
        "every daemon follows the adopted catalog",
        poll_interval_s=POLL_INTERVAL_S,
    )
    with cluster.client(timeout_s=HANG_S) as fresh:
        wait_until(
            lambda: sample_space(fresh, "kept")[0] == first,
            "the version of the snapshot is served",
            poll_interval_s=POLL_INTERVAL_S,
        )
        with pytest.raises(NotFound):
            fresh.describe("given-up")
    for name in STORAGEDS:
        wait_until(
            lambda name=name: cluster.get(name, "/status")["quarantine"],
            f"{name} keeps what was given up in quarantine",
            poll_interval_s=POLL_INTERVAL_S,
        )  # type: ignore[misc]
    with cluster.client(timeout_s=HANG_S) as fresh:
        assert publish(fresh, "kept", 3000) == first + 1
        assert sample_space(fresh, "kept")[0] == first + 1


def test_storaged_restarted_under_older_catalog_keeps_its_data(cluster: LocalCluster) -> None:
    """A restarted storaged serves and removes nothing, and says so, until `adopt`."""
    client, operator = cluster.client(timeout_s=HANG_S), Operator(cluster)
    first = publish(client, "kept", 0)
    snapshot(cluster)
    publish(client, "kept", 1000)
    before = build_folders(cluster)
    put_back(cluster, operator)
    assert cluster["storaged-0"].stop() == 0
    cluster["storaged-0"].start()
    wait_older(cluster)
    assert cluster.get("storaged-0", "/status")["versions"] == []
    assert build_folders(cluster) == before
    operator.list_unknown()
    operator.run(ADOPT)
    wait_until(
        cluster.all_ready,
        "every daemon follows the adopted catalog",
        poll_interval_s=POLL_INTERVAL_S,
    )
    with cluster.client(timeout_s=HANG_S) as fresh:
        wait_until(
            lambda: sample_space(fresh, "kept")[0] == first,
            "the version of the snapshot is served",
            poll_interval_s=POLL_INTERVAL_S,
        )

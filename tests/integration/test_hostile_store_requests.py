"""Well-formed requests of hostile content: a storaged returns results or typed errors, and keeps working."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.kit import cases
from tests.kit.cluster import LocalCluster
from tests.kit.fuzzing import campaign, corpus
from tests.kit.fuzzing.mutations import Mutation
from tests.kit.fuzzing.services import Recorded, Services, services

from asterism_proto.arrays import Frame
from asterism_proto.errors import InvalidRequest, Unavailable
from asterism_proto.methods import STORE
from asterism_proto.v1 import storaged_pb2 as pb
from daemonkit.channels import RemoteTransport
from daemonkit.streams import StreamTransport

pytestmark = pytest.mark.timeout(1800)

SHORT, LONG, CHILD = 4000, 30_000, 6000
"""Requests of a campaign that always runs, of one that is slow, and of one in the checking build or against protected pages."""
EACH = 12
CHILD_S = 1200


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two storageds with half of the partitions each, and their recorded requests."""
    made = tmp_path_factory.mktemp("two")
    corpus.record(made, 2)
    shutil.copytree(made, made.with_name("two-of-a-child"))
    return made


@pytest.fixture(scope="module")
def copied(folder: Path) -> Path:
    """The same for a process of its own, while this one has the other open."""
    return folder.with_name("two-of-a-child")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One storaged with all partitions, which gets requests for whole walks, subgraphs and ranks."""
    made = tmp_path_factory.mktemp("one")
    corpus.record(made, 1, "mod")
    return made


@pytest.fixture(scope="module")
def running(folder: Path) -> Iterator[Services]:
    with services(folder, 2) as made:
        corpus.answers(made, corpus.read(folder, 1000))  # storageds know what satisfies every filter from then on
        yield made


def assert_survived(running: Services, requests: list[Recorded], count: int, seed: int) -> None:
    """Assert that a campaign has no fault, and that known requests have the same results after it."""

    def send(original: Recorded, changed: Mutation) -> object:
        return running.answer(original.host, original.method, Frame(changed.head, changed.arrays))

    before = corpus.answers(running, requests)
    found = campaign.run(requests, send, count=count, seed=seed)
    print(found.table())
    assert found.faults == {}
    assert found.requests == count
    assert found.counts.total() > sum(n for (_, outcome), n in found.counts.items() if outcome == campaign.ANSWERED) > 0
    assert corpus.answers(running, requests) == before


def test_hostile_requests_are_answered_or_refused(running: Services, folder: Path) -> None:
    assert_survived(running, corpus.read(folder, EACH), SHORT, seed=1)


@pytest.mark.slow
def test_many_hostile_requests_are_answered_or_refused(running: Services, folder: Path, whole: Path) -> None:
    assert_survived(running, corpus.read(folder, 100), LONG, seed=2)
    with services(whole, 1) as alone:
        assert_survived(alone, corpus.read(whole, 100), LONG, seed=3)


# -- in processes of their own ----------------------------------------------------------------------------------------


def run_child(folder: Path, storageds: int, *arguments: str, checked: bool = False) -> dict[str, Any]:
    """A campaign in a process of its own, which may crash; what it reports."""
    command = [sys.executable, "-m", "tests.kit.fuzzing", str(folder), "--storageds", str(storageds), *arguments]
    environment = {**os.environ, **({"ASTERISM_CHECK_BOUNDS": "1"} if checked else {})}  # noqa: TID251  # a child with one switch more
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=CHILD_S, check=False)
    last = (folder / "last-request").read_text()[:4000]
    assert done.returncode in (0, 1), f"it ended with {done.returncode} at {last}\n{done.stderr[-4000:]}"
    print(done.stderr)
    reported: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return reported


def assert_clean(reported: dict[str, Any], count: int, *, checked: bool = False) -> None:
    assert reported == {"checked": checked, "requests": count, "faults": [], "same": True}


@pytest.mark.slow
def test_kernels_read_nothing_past_arrays_of_images(whole: Path) -> None:
    count = 1500
    assert_clean(run_child(whole, 1, "--count", str(count), "--seed", "5", "--guard", "after"), count)


@pytest.mark.slow
@pytest.mark.parametrize("guard", ["after", "before"])
def test_kernels_stay_within_guarded_arrays(copied: Path, whole: Path, guard: str) -> None:
    for where, storageds in ((copied, 2), (whole, 1)):
        assert_clean(run_child(where, storageds, "--count", str(CHILD), "--seed", "6", "--guard", guard), CHILD)


@pytest.mark.slow
def test_kernels_stay_within_bounds_in_the_checking_build(copied: Path, whole: Path) -> None:
    for where, storageds in ((copied, 2), (whole, 1)):
        assert_clean(run_child(where, storageds, "--count", str(CHILD), "--seed", "7", "--timeout-s", "120", checked=True), CHILD, checked=True)


# -- a real storaged, over both of its ports --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(storageds=1) as made:
        cases.load(made.client(), "cases", "mod")
        yield made


def assert_daemon_survives(cluster: LocalCluster, whole: Path, count: int) -> None:
    """A storaged's process answers or refuses ``count`` requests over each port, and then a known one with the same bytes."""
    daemon = cluster["storaged-0"]
    manifest, pid = cluster.client().manifest("cases"), daemon.pid
    requests = corpus.read(whole, EACH)
    known = {one.head.at.digest for one in requests if "at" in one.head.DESCRIPTOR.fields_by_name}
    for one in requests:
        if "at" in one.head.DESCRIPTOR.fields_by_name:
            one.head.at.space_id, one.head.at.version, one.head.at.digest = manifest.space_id, manifest.version, manifest.digest
    remote = RemoteTransport(daemon.address)
    stream = StreamTransport(daemon.address, RemoteTransport(daemon.address))
    try:
        graph = cluster.client().graph("cases")
        before = cases.digest(graph.sample_neighbors(np.arange(40), "cites", 5, seed=3))
        for seed, transport in enumerate((remote, stream)):

            def send(original: Recorded, changed: Mutation, transport: Any = transport) -> object:
                return transport.call(STORE[original.method], Frame(changed.head, changed.arrays), 30)

            found = campaign.run(requests, send, count=count, seed=seed)
            print(found.table())
            assert found.faults == {}
            assert found.requests == count
        assert known
        assert daemon.ended() is None
        assert daemon.pid == pid
        assert cases.digest(graph.sample_neighbors(np.arange(40), "cites", 5, seed=3)) == before
    finally:
        remote.close()
        stream.close()


@pytest.mark.slow
def test_a_storaged_survives_hostile_requests(cluster: LocalCluster, whole: Path) -> None:
    assert_daemon_survives(cluster, whole, 1000)


@pytest.mark.slow
def test_a_storaged_survives_many_hostile_requests(cluster: LocalCluster, whole: Path) -> None:
    assert_daemon_survives(cluster, whole, 10_000)


# -- what campaigns found ---------------------------------------------------------------------------------------------


def original(folder: Path, method: str, *sections: str, where: bool = False, **fields: object) -> Recorded:
    """A recorded request of host 0 with these sections and fields."""
    for one in corpus.read(folder, 1000):
        if one.host or one.method != method or not set(sections) <= set(one.arrays) or (where and not one.head.at.HasField("where")):
            continue
        if all(getattr(one.head, name) == value for name, value in fields.items()):
            return Recorded(host=0, method=method, head=type(one.head).FromString(one.head.SerializeToString()), arrays=dict(one.arrays))
    raise LookupError(f"no {method} with {sections} and {fields} was recorded")


def assert_refused(running: Services, one: Recorded, match: str, error: type[Exception] = InvalidRequest) -> None:
    with pytest.raises(error, match=match):
        running.answer(0, one.method, Frame(one.head, one.arrays))


@pytest.mark.parametrize(
    ("name", "value"),
    [("weights", 7.0), ("weights", float("nan")), ("weights", -1.0), ("weights", 0.0), ("positives", 1 << 40), ("counts", -1), ("counts", 1 << 62)],
)
@pytest.mark.parametrize("method", ["draw_nodes", "draw_edges", "draw_neighbors", "expand", "walk"])
def test_forged_totals_of_a_filter_are_refused(running: Services, folder: Path, method: str, name: str, value: float) -> None:
    one = original(folder, method, where=True)
    if method == "draw_neighbors":
        one.head.different, one.head.replace, one.head.want_probabilities = True, False, False  # never answered from the order of an index
        one.head.ClearField("until")
    getattr(one.head.at.where, name)[:] = [value] * len(one.head.at.where.counts)
    assert_refused(running, one, "at.where")


def test_weight_of_rows_that_weigh_nothing_is_refused(running: Services, folder: Path) -> None:
    """Totals that fall on rows of weight 0: what let kernels read past the tables of an index."""
    for method in ("draw_nodes", "draw_edges"):
        one = original(folder, method, where=True, race=False, rest=False)
        totals = one.head.at.where
        totals.positives[:] = [count // 2 + 1 if count else 0 for count in totals.counts]
        totals.weights[:] = [1e3 if count else 0.0 for count in totals.counts]
        assert_refused(running, one, "at.where")


def test_a_filter_is_of_what_is_drawn(running: Services, folder: Path) -> None:
    """Rows of an index of edges are none of nodes, and those of one type none of another."""
    nodes = original(folder, "draw_nodes", where=False, race=False, rest=False)
    edges = original(folder, "draw_edges", where=True, race=False, rest=False)
    expected = running.answer(0, "draw_nodes", Frame(nodes.head, nodes.arrays))
    nodes.head.at.CopyFrom(edges.head.at)
    nodes.head.weight = nodes.head.at.where.weight = ""
    answered = running.answer(0, "draw_nodes", Frame(nodes.head, nodes.arrays))
    assert isinstance(expected, Frame)
    assert isinstance(answered, Frame)
    assert answered.arrays["ids"].tolist() == expected.arrays["ids"].tolist()


def test_parts_of_a_filter_are_in_range_and_here(running: Services, folder: Path) -> None:
    one = original(folder, "restrict")
    one.head.parts[:] = [255]
    assert_refused(running, one, "parts=255: expected a partition of the space, 0 to 9")
    held = running.storageds[1]._holdings.space(one.head.at.space_id).parts
    one.head.parts[:] = [held[0]]
    assert_refused(running, one, f"part {held[0]} of space", Unavailable)


def test_impossible_numbers_are_refused_by_name(running: Services, folder: Path) -> None:
    one = original(folder, "read_labels")
    one.head.cursor = -3
    assert_refused(running, one, "cursor=-3: expected 0 to")
    one = original(folder, "join")
    one.arrays["target_types"] = one.arrays["target_types"][:-1]
    assert_refused(running, one, r"target_types\.shape=")
    one = original(folder, "walk")
    one.head.length = (1 << 32) - 1
    assert_refused(running, one, "length=4294967295")
    one = original(folder, "draw_neighbors", "times")
    one.arrays["times"] = np.full(one.arrays["ids"].size, np.nan)
    assert_refused(running, one, r"times\[0\]=nan")
    one = original(folder, "draw_numbered", "kinds")
    one.arrays["kinds"] = np.full(one.arrays["kinds"].size, 77, np.int32)
    assert_refused(running, one, r"kinds\[0\]=77")
    one = original(folder, "raise_importances")
    name = f"levels.{one.head.along[0].edge_type}"
    near = next(section for section in one.arrays if section.startswith("ids."))
    one.arrays.update({name: np.full(one.arrays[near].size, -1.0), name.replace("levels", "importances"): np.ones(3)})
    assert_refused(running, one, r"levels\.\d\[0\]=-1.0")


def test_a_filter_by_other_weights_is_refused(running: Services, folder: Path) -> None:
    one = original(folder, "draw_nodes", where=True, weight="aged")
    one.head.at.where.weight = ""
    one.head.weight = "aged"
    assert_refused(running, one, "at.where|weight='aged'")


def test_the_rest_of_no_types_is_empty(running: Services, folder: Path) -> None:
    held = running.storageds[0]._holdings.space(1).parts
    at = original(folder, "draw_nodes").head.at
    head = pb.DrawNodesRequest(at=pb.At(space_id=at.space_id, version=at.version, digest=at.digest), parts=held, rest=True)
    answered = running.answer(0, "draw_nodes", Frame(head, {"taken": np.zeros(0, np.int64), "taken_types": np.zeros(0, np.int32)}))
    assert isinstance(answered, Frame)
    assert answered.arrays["rest"].shape == (0, len(held))

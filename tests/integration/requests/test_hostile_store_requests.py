"""Well-formed hostile requests: a storaged returns results or typed errors.

It keeps serving afterwards."""

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
from tests.kit.fuzzing.services import RecordedCall, Services, services

from asterism_daemonkit.rpc.grpc_client import RemoteTransport
from asterism_daemonkit.rpc.tcp_client import TcpTransport
from asterism_proto.errors import InvalidRequest, Unavailable
from asterism_proto.framing import Frame
from asterism_proto.methods import STORE
from asterism_proto.v1 import storaged_pb2 as storaged_pb

SHORT, LONG, CHILD = 4000, 30_000, 6000
"""Requests of a default campaign, of a slow one and of one in a child process.

The child runs with bounds checks or against protected pages.
"""
REQUESTS_PER_METHOD = 12
CHILD_S = 1200


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Record requests on two storageds with half of the partitions each; return their folder."""
    path = tmp_path_factory.mktemp("two")
    corpus.record(path, 2)
    shutil.copytree(path, path.with_name("two-of-a-child"))
    return path


@pytest.fixture(scope="module")
def folder_copy(folder: Path) -> Path:
    """Return a copy for a child process, because this process has the original open."""
    return folder.with_name("two-of-a-child")


@pytest.fixture(scope="module")
def single_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Record requests on one storaged with all partitions; return its folder.

    It gets requests for whole walks, subgraphs and ranks.
    """
    path = tmp_path_factory.mktemp("one")
    corpus.record(path, 1, "mod")
    return path


@pytest.fixture(scope="module")
def running_services(folder: Path) -> Iterator[Services]:
    with services(folder, 2) as opened:
        corpus.response_digests(
            opened, corpus.read(folder, 1000)
        )  # from here on, storageds have evaluated every filter
        yield opened


def assert_survived(
    running_services: Services, requests: list[RecordedCall], count: int, seed: int
) -> None:
    """Assert that a campaign has no faults and that known requests keep their results."""

    def send(original: RecordedCall, mutation: Mutation) -> object:
        return running_services.call_storaged(
            original.host, original.method, Frame(mutation.head, mutation.arrays)
        )

    before = corpus.response_digests(running_services, requests)
    report = campaign.run(requests, send, count=count, seed=seed)
    print(report.table())
    assert report.faults == {}
    assert report.requests == count
    assert (
        report.counts.total()
        > sum(n for (_, outcome), n in report.counts.items() if outcome == campaign.ANSWERED)
        > 0
    )
    assert corpus.response_digests(running_services, requests) == before


def test_hostile_requests_are_answered_or_refused(running_services: Services, folder: Path) -> None:
    assert_survived(running_services, corpus.read(folder, REQUESTS_PER_METHOD), SHORT, seed=1)


@pytest.mark.slow
def test_many_hostile_requests_are_answered_or_refused(
    running_services: Services, folder: Path, single_folder: Path
) -> None:
    assert_survived(running_services, corpus.read(folder, 100), LONG, seed=2)
    with services(single_folder, 1) as alone:
        assert_survived(alone, corpus.read(single_folder, 100), LONG, seed=3)


# -- in child processes ----------------------------------------------------------------------------


def run_child(
    folder: Path, storageds: int, *arguments: str, checked: bool = False
) -> dict[str, Any]:
    """Run a campaign in a child process, which may crash; return its report."""
    command = [
        sys.executable,
        "-m",
        "tests.kit.fuzzing",
        str(folder),
        "--storageds",
        str(storageds),
        *arguments,
    ]
    # The child's environment, with bounds checks if requested.
    environment = {**os.environ, **({"ASTERISM_CHECK_BOUNDS": "1"} if checked else {})}  # noqa: TID251
    process = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=CHILD_S, check=False
    )
    last_request = (folder / "last-request").read_text()[:4000]
    assert process.returncode in (0, 1), (
        f"it ended with {process.returncode} at {last_request}\n{process.stderr[-4000:]}"
    )
    print(process.stderr)
    report: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return report


def assert_clean(report: dict[str, Any], count: int, *, checked: bool = False) -> None:
    assert report == {"checked": checked, "requests": count, "faults": [], "same": True}


@pytest.mark.slow
def test_kernels_read_nothing_past_arrays_of_images(single_folder: Path) -> None:
    count = 1500
    assert_clean(
        run_child(single_folder, 1, "--count", str(count), "--seed", "5", "--guard", "after"), count
    )


@pytest.mark.slow
@pytest.mark.parametrize("guard", ["after", "before"])
def test_kernels_stay_within_guarded_arrays(
    folder_copy: Path, single_folder: Path, guard: str
) -> None:
    for folder, storageds in ((folder_copy, 2), (single_folder, 1)):
        assert_clean(
            run_child(folder, storageds, "--count", str(CHILD), "--seed", "6", "--guard", guard),
            CHILD,
        )


@pytest.mark.slow
def test_kernels_stay_within_bounds_in_the_checking_build(
    folder_copy: Path, single_folder: Path
) -> None:
    for folder, storageds in ((folder_copy, 2), (single_folder, 1)):
        assert_clean(
            run_child(
                folder,
                storageds,
                "--count",
                str(CHILD),
                "--seed",
                "7",
                "--timeout-s",
                "120",
                checked=True,
            ),
            CHILD,
            checked=True,
        )


# -- a real storaged, over both of its ports -------------------------------------------------------


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(storageds=1) as local_cluster:
        cases.load(local_cluster.client(), "cases", "mod")
        yield local_cluster


def assert_daemon_survives(cluster: LocalCluster, single_folder: Path, count: int) -> None:
    """Assert that a storaged survives `count` requests over each port.

    Afterwards a known request returns the same bytes.
    """
    daemon = cluster["storaged-0"]
    manifest, pid = cluster.client().manifest("cases"), daemon.pid
    requests = corpus.read(single_folder, REQUESTS_PER_METHOD)
    known_digests = {
        request.head.version_ref.digest
        for request in requests
        if "version_ref" in request.head.DESCRIPTOR.fields_by_name
    }
    for request in requests:
        if "version_ref" in request.head.DESCRIPTOR.fields_by_name:
            (
                request.head.version_ref.space_id,
                request.head.version_ref.version,
                request.head.version_ref.digest,
            ) = (
                manifest.space_id,
                manifest.version,
                manifest.digest,
            )
    remote = RemoteTransport(daemon.address)
    stream = TcpTransport(daemon.address, RemoteTransport(daemon.address))
    try:
        graph = cluster.client().graph("cases")
        before = cases.digest(graph.sample_neighbors(np.arange(40), "cites", 5, seed=3))
        for seed, transport in enumerate((remote, stream)):

            def send(
                original: RecordedCall, mutation: Mutation, transport: Any = transport
            ) -> object:
                return transport.call(
                    STORE[original.method], Frame(mutation.head, mutation.arrays), 30
                )

            report = campaign.run(requests, send, count=count, seed=seed)
            print(report.table())
            assert report.faults == {}
            assert report.requests == count
        assert known_digests
        assert daemon.exit_status() is None
        assert daemon.pid == pid
        assert cases.digest(graph.sample_neighbors(np.arange(40), "cites", 5, seed=3)) == before
    finally:
        remote.close()
        stream.close()


@pytest.mark.slow
def test_a_storaged_survives_hostile_requests(cluster: LocalCluster, single_folder: Path) -> None:
    assert_daemon_survives(cluster, single_folder, 1000)


@pytest.mark.slow
def test_a_storaged_survives_many_hostile_requests(
    cluster: LocalCluster, single_folder: Path
) -> None:
    assert_daemon_survives(cluster, single_folder, 10_000)


# -- regressions found by campaigns ----------------------------------------------------------------


def recorded_request(
    folder: Path, method: str, *sections: str, where: bool = False, **fields: object
) -> RecordedCall:
    """Return a recorded request of host 0 with these sections and fields."""
    for request in corpus.read(folder, 1000):
        if (
            request.host
            or request.method != method
            or not set(sections) <= set(request.arrays)
            or (where and not request.head.version_ref.HasField("where"))
        ):
            continue
        if all(getattr(request.head, name) == value for name, value in fields.items()):
            return RecordedCall(
                host=0,
                method=method,
                head=type(request.head).FromString(request.head.SerializeToString()),
                arrays=dict(request.arrays),
            )
    raise LookupError(f"no {method} with {sections} and {fields} was recorded")


def assert_refused(
    running_services: Services,
    request: RecordedCall,
    match: str,
    error: type[Exception] = InvalidRequest,
) -> None:
    with pytest.raises(error, match=match):
        running_services.call_storaged(0, request.method, Frame(request.head, request.arrays))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("weights", 7.0),
        ("weights", float("nan")),
        ("weights", -1.0),
        ("weights", 0.0),
        ("positives", 1 << 40),
        ("counts", -1),
        ("counts", 1 << 62),
    ],
)
@pytest.mark.parametrize("method", ["draw_nodes", "draw_edges", "draw_neighbors", "expand", "walk"])
def test_forged_totals_of_a_filter_are_refused(
    running_services: Services, folder: Path, method: str, name: str, value: float
) -> None:
    request = recorded_request(folder, method, where=True)
    if method == "draw_neighbors":
        request.head.distinct_neighbors, request.head.replace, request.head.want_probabilities = (
            True,
            False,
            False,
        )  # an index order never answers such a request
        request.head.ClearField("temporal_filter")
    getattr(request.head.version_ref.where, name)[:] = [value] * len(
        request.head.version_ref.where.counts
    )
    assert_refused(running_services, request, "version_ref.where")


def test_weight_of_rows_that_weigh_nothing_is_refused(
    running_services: Services, folder: Path
) -> None:
    """Send totals that select rows of weight 0; they made kernels read past index tables."""
    for method in ("draw_nodes", "draw_edges"):
        request = recorded_request(
            folder, method, where=True, exponential_keys=False, remaining_weight=False
        )
        totals = request.head.version_ref.where
        totals.positives[:] = [count // 2 + 1 if count else 0 for count in totals.counts]
        totals.weights[:] = [1e3 if count else 0.0 for count in totals.counts]
        assert_refused(running_services, request, "version_ref.where")


def test_filter_of_edges_does_not_apply_to_nodes(running_services: Services, folder: Path) -> None:
    """Index rows of edges are not valid for nodes, nor rows of one type for another."""
    nodes = recorded_request(
        folder, "draw_nodes", where=False, exponential_keys=False, remaining_weight=False
    )
    edges = recorded_request(
        folder, "draw_edges", where=True, exponential_keys=False, remaining_weight=False
    )
    expected = running_services.call_storaged(0, "draw_nodes", Frame(nodes.head, nodes.arrays))
    nodes.head.version_ref.CopyFrom(edges.head.version_ref)
    nodes.head.weight = nodes.head.version_ref.where.weight = ""
    reply = running_services.call_storaged(0, "draw_nodes", Frame(nodes.head, nodes.arrays))
    assert isinstance(expected, Frame)
    assert isinstance(reply, Frame)
    assert reply.arrays["ids"].tolist() == expected.arrays["ids"].tolist()


def test_filter_partitions_are_in_range_and_local(running_services: Services, folder: Path) -> None:
    request = recorded_request(folder, "filter_rows")
    request.head.parts[:] = [255]
    assert_refused(
        running_services, request, "parts=255: expected a partition of the space, 0 to 9"
    )
    remote_parts = (
        running_services.storageds[1]._local_spaces.space(request.head.version_ref.space_id).parts
    )
    request.head.parts[:] = [remote_parts[0]]
    assert_refused(running_services, request, f"part {remote_parts[0]} of space", Unavailable)


def test_impossible_numbers_are_refused_by_name(running_services: Services, folder: Path) -> None:
    request = recorded_request(folder, "read_graph_labels")
    request.head.cursor = -3
    assert_refused(running_services, request, "cursor=-3: expected 0 to")
    request = recorded_request(folder, "has_edge")
    request.arrays["target_types"] = request.arrays["target_types"][:-1]
    assert_refused(running_services, request, r"target_types\.shape=")
    request = recorded_request(folder, "walk")
    request.head.length = (1 << 32) - 1
    assert_refused(running_services, request, "length=4294967295")
    request = recorded_request(folder, "draw_neighbors", "times")
    request.arrays["times"] = np.full(request.arrays["ids"].size, np.nan)
    assert_refused(running_services, request, r"times\[0\]=nan")
    request = recorded_request(folder, "draw_nodes_by_number", "kinds")
    request.arrays["kinds"] = np.full(request.arrays["kinds"].size, 77, np.int32)
    assert_refused(running_services, request, r"kinds\[0\]=77")
    request = recorded_request(folder, "update_importance")
    name = f"levels.{request.head.fanouts[0].edge_type}"
    ids_section = next(section for section in request.arrays if section.startswith("ids."))
    request.arrays.update(
        {
            name: np.full(request.arrays[ids_section].size, -1.0),
            name.replace("levels", "importances"): np.ones(3),
        }
    )
    assert_refused(running_services, request, r"levels\.\d\[0\]=-1.0")


def test_a_filter_by_other_weights_is_refused(running_services: Services, folder: Path) -> None:
    request = recorded_request(folder, "draw_nodes", where=True, weight="aged")
    request.head.version_ref.where.weight = ""
    request.head.weight = "aged"
    assert_refused(running_services, request, "version_ref.where|weight='aged'")


def test_the_rest_of_no_types_is_empty(running_services: Services, folder: Path) -> None:
    parts = running_services.storageds[0]._local_spaces.space(1).parts
    version_ref = recorded_request(folder, "draw_nodes").head.version_ref
    head = storaged_pb.DrawNodesRequest(
        version_ref=storaged_pb.VersionRef(
            space_id=version_ref.space_id, version=version_ref.version, digest=version_ref.digest
        ),
        parts=parts,
        remaining_weight=True,
    )
    reply = running_services.call_storaged(
        0,
        "draw_nodes",
        Frame(
            head, {"excluded_ids": np.zeros(0, np.int64), "excluded_types": np.zeros(0, np.int32)}
        ),
    )
    assert isinstance(reply, Frame)
    assert reply.arrays["remaining_weight"].shape == (0, len(parts))

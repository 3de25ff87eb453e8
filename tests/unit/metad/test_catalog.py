"""Tests of spaces, loads and versions, through the handlers over the memory store."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from tests.kit.metad import SCHEMA, InProcessMetad, edge_chunk
from tests.kit.waiting import HANG_S

from asterism_model.schema import Schema
from asterism_proto.errors import AsterismError, Conflict, InvalidRequest, NotFound, NotReady, Stale
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from metad.catalog.catalog import Catalog
from metad.store.memory_store import MemoryStore


@pytest.fixture
def metad() -> InProcessMetad:
    metad = InProcessMetad()
    for uuid in ("s2", "s1", "s3"):
        metad.heartbeat(uuid)
    return metad


# Spaces.


def test_parts_go_round_robin_to_online_storageds_by_uuid(metad: InProcessMetad) -> None:
    assert [list(part.hosts) for part in metad.create().parts] == [["s1"], ["s2"], ["s3"], ["s1"]]


def test_space_needs_an_online_storaged() -> None:
    metad = InProcessMetad()
    with pytest.raises(NotReady, match="none is online"):
        metad.create()
    metad.heartbeat("s1")
    metad.heartbeat("g1", role=metad_pb.GRAPHD)
    metad.advance_clock(60)
    metad.components.followers.lease_s = -1.0  # avoids the wait
    with pytest.raises(NotReady, match="none is online"):
        metad.create()


def test_a_new_space_waits_for_storageds_that_are_known(metad: InProcessMetad) -> None:
    """Storageds report late after a restart of metad, or on a busy machine."""
    metad.advance_clock(60)
    metad.components.followers.lease_s = HANG_S
    with ThreadPoolExecutor(1) as pool:
        space = pool.submit(metad.create)
        with pytest.raises(TimeoutError):
            space.result(0.3)
        metad.heartbeat("s3")
        assert [list(part.hosts) for part in space.result(HANG_S).parts] == [["s3"]] * 4


def test_an_existing_space_waits_for_no_storaged(metad: InProcessMetad) -> None:
    created = metad.create()
    metad.advance_clock(60)
    metad.components.followers.lease_s = HANG_S
    assert metad.create(if_not_exists=True) == created
    with pytest.raises(Conflict, match="exists already"):
        metad.create()


@pytest.mark.parametrize("name", ["", "1st", "a b", "x" * 129, "a/b"])
def test_a_bad_name_is_refused_with_the_name(metad: InProcessMetad, name: str) -> None:
    with pytest.raises(InvalidRequest, match="expected a letter or _"):
        metad.create(name)


def test_invalid_schema_is_refused(metad: InProcessMetad) -> None:
    with pytest.raises(InvalidRequest, match="at least one node type"):
        metad.ask("create_space", metad_pb.CreateSpaceRequest(name="g"))
    bad = SCHEMA.to_proto()
    bad.placement = 9  # type: ignore[assignment]
    with pytest.raises(InvalidRequest, match="Placement 9"):
        metad.ask("create_space", metad_pb.CreateSpaceRequest(name="g", schema=bad))


def test_existing_name_is_refused_unless_equal_and_allowed(metad: InProcessMetad) -> None:
    first = metad.create()
    with pytest.raises(Conflict, match="exists already"):
        metad.create()
    assert metad.create(if_not_exists=True) == first
    with pytest.raises(Conflict, match="another schema"):
        metad.create(schema=replace(SCHEMA, parts=2), if_not_exists=True)


def test_schema_round_trips(metad: InProcessMetad) -> None:
    metad.create()
    assert (
        Schema.from_proto(metad.ask("describe_space", metad_pb.SpaceRequest(space="graph")).schema)
        == SCHEMA
    )


def test_unknown_space_is_refused_with_existing_ones(metad: InProcessMetad) -> None:
    metad.create("one")
    with pytest.raises(NotFound, match="'nine' does not exist; there is one"):
        metad.ask("describe_space", metad_pb.SpaceRequest(space="nine"))
    with pytest.raises(InvalidRequest, match="space='': expected the name"):
        metad.ask("describe_space", metad_pb.SpaceRequest())


def test_dropped_space_is_removed_and_its_id_not_reused(metad: InProcessMetad) -> None:
    initial = dict(metad.store.range(b""))
    first = metad.create()
    load = metad.begin()
    metad.register(load, edge_chunk(0), written=[0])
    metad.commit(load)
    metad.begin()
    metad.ask("abandon_load", metad_pb.LoadRequest(load_id=metad.begin().load_id))
    metad.submit()
    metad.build("s1", "s2", "s3")
    metad.submit()
    metad.ask("drop_space", metad_pb.DropSpaceRequest(space="graph"))
    with pytest.raises(NotFound):
        metad.ask("drop_space", metad_pb.DropSpaceRequest(space="graph"))
    metad.ask("drop_space", metad_pb.DropSpaceRequest(space="graph", if_exists=True))
    with pytest.raises(NotFound, match="load 1 does not exist"):
        metad.ask("get_load", metad_pb.LoadRequest(load_id=load.load_id))
    assert [metad.job(i).state for i in (1, 2)] == [common_pb.FINISHED, common_pb.STOPPED]
    assert list(metad.poll("s1").spaces) == list(metad.poll("s1").task_assignments) == []
    new_keys = {key for key, _ in metad.store.range(b"") if key not in initial}
    assert {key.split(b"/")[1] for key in new_keys} == {b"next", b"job", b"removal"}, (
        "the orders to remove its data stay until they are carried out"
    )
    assert metad.create().space_id > first.space_id


# Versions.


def test_manifest_digest_covers_all_other_fields(metad: InProcessMetad) -> None:
    metad.create()
    metad.load()
    metad.submit()
    metad.build("s1", "s2", "s3")
    manifest = metad.ask("get_manifest", metad_pb.ManifestRequest(space="graph"))
    assert (manifest.version, manifest.watermark, manifest.job_id, len(manifest.images)) == (
        1,
        1,
        1,
        4,
    )
    digest = manifest.digest
    manifest.digest = ""
    assert hashlib.sha256(manifest.SerializeToString(deterministic=True)).hexdigest() == digest
    assert metad.ask("describe_space", metad_pb.SpaceRequest(space="graph")).version == 1


def test_versions_are_listed_newest_first_without_totals(metad: InProcessMetad) -> None:
    metad.create()
    for _ in range(2):
        metad.load()
        metad.submit()
        metad.build("s1", "s2", "s3")
    versions = metad.ask("list_versions", metad_pb.SpaceRequest(space="graph")).versions
    assert [manifest.version for manifest in versions] == [2, 1]
    assert not any(manifest.totals for manifest in versions)
    assert all(manifest.images for manifest in versions)


def test_unknown_version_is_refused_with_existing_ones(metad: InProcessMetad) -> None:
    metad.create()
    with pytest.raises(NotFound, match="no published version yet"):
        metad.ask("get_manifest", metad_pb.ManifestRequest(space="graph"))
    metad.load()
    metad.submit()
    metad.build("s1", "s2", "s3")
    with pytest.raises(NotFound, match="version 9 of space 'graph' does not exist; there are 1"):
        metad.ask("get_manifest", metad_pb.ManifestRequest(space="graph", version=9))


def test_old_versions_retire_when_surplus_and_unused() -> None:
    metad = InProcessMetad(keep_versions=2, retire_after_s=60)

    def send_heartbeats(routed_version: int) -> None:
        metad.heartbeat("s1")
        metad.heartbeat(
            "g1",
            role=metad_pb.GRAPHD,
            held_versions=[metad_pb.HeldVersion(space_id=1, version=routed_version)],
        )

    def served_versions() -> list[int]:
        return [manifest.version for manifest in metad.poll("s1").spaces[0].versions]

    send_heartbeats(1)
    metad.create()
    for _ in range(3):
        metad.load()
        metad.submit()
        metad.build("s1")
        metad.now_ms += 1_000
    assert served_versions() == [1, 2, 3]
    metad.now_ms += 60_000
    send_heartbeats(1)
    metad.advance_clock(0)
    assert served_versions() == [1, 2, 3], "a graphd still routes by version 1"
    send_heartbeats(3)
    known_revision = metad.poll("s1").revision
    for _ in range(59):
        metad.advance_clock(1)
        send_heartbeats(3)
    assert served_versions() == [1, 2, 3], (
        "a request that the graphd began before it heard of a newer one may still be under way"
    )
    metad.advance_clock(1)
    assert served_versions() == [2, 3]
    assert metad.poll("s1", known_revision=known_revision, wait_s=5).revision > known_revision
    with pytest.raises(NotFound, match="version 1"):
        metad.ask("get_manifest", metad_pb.ManifestRequest(space="graph", version=1))


# Jobs through the endpoint.


@pytest.mark.parametrize(
    ("call", "words", "kind"),
    [
        (
            lambda d: d.ask("list_jobs", metad_pb.ListJobsRequest(states=[9])),
            "job state 9",
            InvalidRequest,
        ),
        (
            lambda d: d.ask("list_jobs", metad_pb.ListJobsRequest(states=[0])),
            "job state 0",
            InvalidRequest,
        ),
        (
            lambda d: d.ask("list_jobs", metad_pb.ListJobsRequest(limit=1001)),
            "limit 1001",
            InvalidRequest,
        ),
        (
            lambda d: d.ask("list_jobs", metad_pb.ListJobsRequest(space="nine")),
            "'nine' does not exist",
            NotFound,
        ),
        (lambda d: d.job(0), "job 0 does not exist", NotFound),
        (
            lambda d: d.ask("stop_job", metad_pb.JobRequest(job_id=99)),
            "job 99 does not exist",
            NotFound,
        ),
        (
            lambda d: d.ask("recover_job", metad_pb.JobRequest(job_id=99)),
            "job 99 does not exist",
            NotFound,
        ),
        (
            lambda d: d.ask("submit_job", metad_pb.SubmitJobRequest(space="graph")),
            "job kind ''",
            InvalidRequest,
        ),
        (lambda d: d.submit("nine"), "'nine' does not exist", NotFound),
        (lambda d: d.heartbeat("s1", role=0), "role 0", InvalidRequest),
        (
            lambda d: d.heartbeat("s1", role=metad_pb.GRAPHD),
            "uuid=s1: belongs to a storaged, not to a graphd",
            InvalidRequest,
        ),
        (lambda d: d.heartbeat(""), "uuid='': expected the uuid", InvalidRequest),
        (lambda d: d.heartbeat("s1", incarnation=0), "incarnation=0", InvalidRequest),
        (
            lambda d: d.heartbeat("s1", metad_pb.TaskReport(task_id=1, attempt=1)),
            "task 1: state 0",
            InvalidRequest,
        ),
        (lambda d: d.poll("", wait_s=1), "uuid='': expected the uuid", InvalidRequest),
        (lambda d: d.poll("s1", role=7), "role 7", InvalidRequest),
    ],
)
def test_invalid_requests_are_refused_with_their_value(
    metad: InProcessMetad,
    call: Callable[[InProcessMetad], object],
    words: str,
    kind: type[AsterismError],
) -> None:
    metad.create()
    with pytest.raises(kind, match=words):
        call(metad)


def test_jobs_are_paged_newest_first(metad: InProcessMetad) -> None:
    metad.create()
    for _ in range(5):
        metad.load()
        metad.submit()
    first = metad.ask("list_jobs", metad_pb.ListJobsRequest(space="graph", limit=2))
    assert ([job.job_id for job in first.jobs], first.next_before) == ([5, 4], 4)
    second = metad.ask("list_jobs", metad_pb.ListJobsRequest(limit=3, before=first.next_before))
    assert ([job.job_id for job in second.jobs], second.next_before) == ([3, 2, 1], 0)
    running = metad.ask("list_jobs", metad_pb.ListJobsRequest(states=[common_pb.RUNNING]))
    assert [job.job_id for job in running.jobs] == [1]


def test_older_incarnation_of_a_daemon_is_fenced(metad: InProcessMetad) -> None:
    metad.heartbeat("s1", incarnation=5)
    with pytest.raises(
        Stale, match="incarnation=4: expected 5, because the daemon has restarted since"
    ):
        metad.heartbeat("s1", incarnation=4)
    with pytest.raises(Stale):
        metad.poll("s1", incarnation=4)


def test_a_catalog_of_another_format_is_not_read() -> None:
    store = MemoryStore()
    store.write({b"1/format": b"2"})
    with pytest.raises(AsterismError, match="format"):
        Catalog(store, folder_uuid="m1")


def test_version_is_retired_a_time_after_the_next_one() -> None:
    metad = InProcessMetad(keep_versions=1, retire_after_s=60)
    metad.heartbeat("s1")
    metad.create()
    for wait_s in (0, 3600):
        metad.now_ms += 1000 * wait_s
        metad.heartbeat("s1")
        metad.load()
        metad.submit()
        metad.build("s1")
    served = []
    for _ in range(2):
        metad.advance_clock(0)
        served.append([manifest.version for manifest in metad.poll("s1").spaces[0].versions])
        metad.now_ms += 60_000
    assert served == [[1, 2], [2]]


def test_restarted_graphd_may_route_by_an_older_version() -> None:
    metad = InProcessMetad(keep_versions=1, retire_after_s=1)

    def send_heartbeats(version: int, incarnation: int) -> None:
        metad.heartbeat("s1")
        metad.heartbeat(
            "g1",
            role=metad_pb.GRAPHD,
            incarnation=incarnation,
            held_versions=[metad_pb.HeldVersion(space_id=1, version=version)],
        )

    metad.heartbeat("s1")
    metad.create()
    for version in (1, 2):
        metad.load()
        metad.submit()
        metad.build("s1")
        send_heartbeats(version, 1)
    for _ in range(70):
        send_heartbeats(1, 2)
        metad.advance_clock(1)
    assert [manifest.version for manifest in metad.poll("s1").spaces[0].versions] == [1, 2]

"""Spaces, loads and versions, asked through the handlers over the memory store."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.kit.metad import SCHEMA, Desk, edges

from asterism_proto.errors import AsterismError, Conflict, InvalidRequest, NotFound, NotReady, Stale
from asterism_proto.schema import Schema
from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.v1 import metad_pb2 as mpb
from metad.catalog.catalog import Catalog
from metad.store.memory import MemoryStore


@pytest.fixture
def desk() -> Desk:
    desk = Desk()
    for uuid in ("s2", "s1", "s3"):
        desk.beat(uuid)
    return desk


# Spaces.


def test_parts_are_dealt_round_robin_to_the_storageds_that_are_there_by_uuid(desk: Desk) -> None:
    assert [list(part.hosts) for part in desk.create().parts] == [["s1"], ["s2"], ["s3"], ["s1"]]


def test_a_space_needs_a_storaged_that_is_there() -> None:
    desk = Desk()
    with pytest.raises(NotReady, match="none is online"):
        desk.create()
    desk.beat("s1")
    desk.beat("g1", role=mpb.GRAPHD)
    desk.passes(60)
    with pytest.raises(NotReady):
        desk.create()


@pytest.mark.parametrize("name", ["", "1st", "a b", "x" * 129, "a/b"])
def test_a_bad_name_is_refused_with_the_name(desk: Desk, name: str) -> None:
    with pytest.raises(InvalidRequest, match="a name is a letter or _"):
        desk.create(name)


def test_a_schema_that_makes_no_sense_is_refused(desk: Desk) -> None:
    with pytest.raises(InvalidRequest, match="at least one node type"):
        desk.ask("create_space", mpb.CreateSpaceRequest(name="g"))
    bad = SCHEMA.to_proto()
    bad.placement = 9  # type: ignore[assignment]
    with pytest.raises(InvalidRequest, match="Placement 9"):
        desk.ask("create_space", mpb.CreateSpaceRequest(name="g", schema=bad))


def test_a_name_is_taken_once_unless_the_schema_is_equal_and_that_is_fine(desk: Desk) -> None:
    first = desk.create()
    with pytest.raises(Conflict, match="exists already"):
        desk.create()
    assert desk.create(if_not_exists=True) == first
    with pytest.raises(Conflict, match="another schema"):
        desk.create(schema=replace(SCHEMA, parts=2), if_not_exists=True)


def test_a_schema_comes_back_as_it_went_in(desk: Desk) -> None:
    desk.create()
    assert Schema.from_proto(desk.ask("describe_space", mpb.SpaceRequest(space="graph")).schema) == SCHEMA


def test_a_space_that_is_not_there_is_refused_with_those_that_are(desk: Desk) -> None:
    desk.create("one")
    with pytest.raises(NotFound, match="'nine' does not exist; there is one"):
        desk.ask("describe_space", mpb.SpaceRequest(space="nine"))
    with pytest.raises(InvalidRequest, match="empty"):
        desk.ask("describe_space", mpb.SpaceRequest())


def test_a_dropped_space_is_gone_with_its_loads_versions_and_keys_and_its_id_never_comes_back(desk: Desk) -> None:
    empty = dict(desk.store.range(b""))
    first = desk.create()
    load = desk.begin()
    desk.register(load, edges(0), written=[0])
    desk.commit(load)
    desk.begin()
    desk.ask("abandon_load", mpb.LoadRequest(load_id=desk.begin().load_id))
    desk.submit()
    desk.build("s1", "s2", "s3")
    desk.submit()
    desk.ask("drop_space", mpb.DropSpaceRequest(space="graph"))
    with pytest.raises(NotFound):
        desk.ask("drop_space", mpb.DropSpaceRequest(space="graph"))
    desk.ask("drop_space", mpb.DropSpaceRequest(space="graph", if_exists=True))
    with pytest.raises(NotFound, match="load 1 does not exist"):
        desk.ask("get_load", mpb.LoadRequest(load_id=load.load_id))
    assert [desk.job(i).state for i in (1, 2)] == [pb.FINISHED, pb.STOPPED]
    assert list(desk.poll("s1").spaces) == list(desk.poll("s1").orders) == []
    left = {key for key, _ in desk.store.range(b"") if key not in empty}
    assert {key.split(b"/")[1] for key in left} == {b"next", b"job", b"removal"}, "the orders to remove its data stay until they are carried out"
    assert desk.create().space_id > first.space_id


# Versions.


def test_a_manifest_is_sealed_over_everything_but_its_digest(desk: Desk) -> None:
    desk.create()
    desk.load()
    desk.submit()
    desk.build("s1", "s2", "s3")
    manifest = desk.ask("get_manifest", mpb.ManifestRequest(space="graph"))
    assert (manifest.version, manifest.cut, manifest.job_id, len(manifest.images)) == (1, 1, 1, 4)
    digest = manifest.digest
    manifest.digest = ""
    assert hashlib.sha256(manifest.SerializeToString(deterministic=True)).hexdigest() == digest
    assert desk.ask("describe_space", mpb.SpaceRequest(space="graph")).version == 1


def test_versions_are_listed_newest_first_without_totals(desk: Desk) -> None:
    desk.create()
    for _ in range(2):
        desk.load()
        desk.submit()
        desk.build("s1", "s2", "s3")
    listed = desk.ask("list_versions", mpb.SpaceRequest(space="graph")).versions
    assert [manifest.version for manifest in listed] == [2, 1]
    assert not any(manifest.totals for manifest in listed)
    assert all(manifest.images for manifest in listed)


def test_a_version_that_is_not_there_is_refused_with_those_that_are(desk: Desk) -> None:
    desk.create()
    with pytest.raises(NotFound, match="no published version yet"):
        desk.ask("get_manifest", mpb.ManifestRequest(space="graph"))
    desk.load()
    desk.submit()
    desk.build("s1", "s2", "s3")
    with pytest.raises(NotFound, match="version 9 of space 'graph' is not there; there are 1"):
        desk.ask("get_manifest", mpb.ManifestRequest(space="graph", version=9))


def test_old_versions_go_once_they_are_too_many_long_enough_and_no_graphd_routes_by_them() -> None:
    desk = Desk(keep_versions=2, retire_after_s=60)

    def beats(seen: int) -> None:
        desk.beat("s1")
        desk.beat("g1", role=mpb.GRAPHD, held=[mpb.HeldVersion(space_id=1, version=seen)])

    def served() -> list[int]:
        return [manifest.version for manifest in desk.poll("s1").spaces[0].versions]

    beats(1)
    desk.create()
    for _ in range(3):
        desk.load()
        desk.submit()
        desk.build("s1")
        desk.now_ms += 1_000
    assert served() == [1, 2, 3]
    desk.now_ms += 60_000
    beats(1)
    desk.passes(0)
    assert served() == [1, 2, 3], "a graphd still routes by version 1"
    beats(3)
    known = desk.poll("s1").revision
    for _ in range(59):
        desk.passes(1)
        beats(3)
    assert served() == [1, 2, 3], "a request that the graphd began before it heard of a newer one may still be under way"
    desk.passes(1)
    assert served() == [2, 3]
    assert desk.poll("s1", known=known, wait_s=5).revision > known
    with pytest.raises(NotFound, match="version 1"):
        desk.ask("get_manifest", mpb.ManifestRequest(space="graph", version=1))


# Jobs through the door.


@pytest.mark.parametrize(
    ("call", "words", "kind"),
    [
        (lambda d: d.ask("list_jobs", mpb.ListJobsRequest(states=[9])), "job state 9", InvalidRequest),
        (lambda d: d.ask("list_jobs", mpb.ListJobsRequest(states=[0])), "job state 0", InvalidRequest),
        (lambda d: d.ask("list_jobs", mpb.ListJobsRequest(limit=1001)), "limit 1001", InvalidRequest),
        (lambda d: d.ask("list_jobs", mpb.ListJobsRequest(space="nine")), "'nine' does not exist", NotFound),
        (lambda d: d.job(0), "job 0 does not exist", NotFound),
        (lambda d: d.ask("stop_job", mpb.JobRequest(job_id=99)), "job 99 does not exist", NotFound),
        (lambda d: d.ask("recover_job", mpb.JobRequest(job_id=99)), "job 99 does not exist", NotFound),
        (lambda d: d.ask("submit_job", mpb.SubmitJobRequest(space="graph")), "job kind ''", InvalidRequest),
        (lambda d: d.submit("nine"), "'nine' does not exist", NotFound),
        (lambda d: d.beat("s1", role=0), "role 0", InvalidRequest),
        (lambda d: d.beat("s1", role=mpb.GRAPHD), "uuid=s1: belongs to a storaged, not to a graphd", InvalidRequest),
        (lambda d: d.beat(""), "without a uuid", InvalidRequest),
        (lambda d: d.beat("s1", incarnation=0), "incarnation 0", InvalidRequest),
        (lambda d: d.beat("s1", mpb.TaskReport(task_id=1, attempt=1)), "task 1: state 0", InvalidRequest),
        (lambda d: d.poll("", wait_s=1), "without a uuid", InvalidRequest),
        (lambda d: d.poll("s1", role=7), "role 7", InvalidRequest),
    ],
)
def test_what_can_not_be_is_refused_with_its_value(desk: Desk, call: Callable[[Desk], object], words: str, kind: type[AsterismError]) -> None:
    desk.create()
    with pytest.raises(kind, match=words):
        call(desk)


def test_jobs_are_paged_newest_first(desk: Desk) -> None:
    desk.create()
    for _ in range(5):
        desk.load()
        desk.submit()
    first = desk.ask("list_jobs", mpb.ListJobsRequest(space="graph", limit=2))
    assert ([job.job_id for job in first.jobs], first.next_before) == ([5, 4], 4)
    second = desk.ask("list_jobs", mpb.ListJobsRequest(limit=3, before=first.next_before))
    assert ([job.job_id for job in second.jobs], second.next_before) == ([3, 2, 1], 0)
    running = desk.ask("list_jobs", mpb.ListJobsRequest(states=[pb.RUNNING]))
    assert [job.job_id for job in running.jobs] == [1]


def test_an_older_start_of_a_daemon_is_fenced(desk: Desk) -> None:
    desk.beat("s1", incarnation=5)
    with pytest.raises(Stale, match="incarnation=4: expected 5, which has started since"):
        desk.beat("s1", incarnation=4)
    with pytest.raises(Stale):
        desk.poll("s1", incarnation=4)


def test_a_catalog_of_another_format_is_not_read() -> None:
    store = MemoryStore()
    store.write({b"1/format": b"2"})
    with pytest.raises(AsterismError, match="format"):
        Catalog(store, folder_uuid="m1")

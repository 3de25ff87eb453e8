"""Tests of quotas on pins and jobs in flight, by principal and space."""

from __future__ import annotations

from typing import Any

import pytest
from tests.kit.metad import InProcessMetad, node_chunk
from tests.kit.waiting import HANG_S

from asterism_access.principals import LOCAL, Principal, PrincipalKind
from asterism_daemonkit.rpc.call_context import CallContext
from asterism_proto.errors import Conflict, QuotaExceeded
from asterism_proto.methods import CATALOG
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from metad.model.jobs import JobState
from metad.store import keys
from metad.wire import record_encoding

ALICE = Principal(name="alice", kind=PrincipalKind.API_KEY)
BOB = Principal(name="bob", kind=PrincipalKind.TOKEN)
DAEMON = Principal(name="graphd", kind=PrincipalKind.DAEMON)


@pytest.fixture
def metad() -> InProcessMetad:
    """Return a metad with two spaces that have a version."""
    metad = InProcessMetad(pin_limit_s=600)
    metad.heartbeat("s1")
    for name in ("graph", "other"):
        metad.create(name)
        metad.load(name)
        metad.submit(name)
        metad.build("s1")
    return metad


def call(metad: InProcessMetad, principal: Principal, name: str, request: Any) -> Any:
    context = CallContext(CallContext.with_timeout(HANG_S).deadline, principal=principal)
    return metad.handlers[CATALOG[name].path](request, context)


def pin(metad: InProcessMetad, principal: Principal = ALICE, space: str = "graph") -> Any:
    return call(metad, principal, "pin_version", metad_pb.PinVersionRequest(space=space, term_s=10))


def submit(
    metad: InProcessMetad, principal: Principal = ALICE, space: str = "graph", kind: str = "build"
) -> Any:
    request = metad_pb.SubmitJobRequest(space=space, kind=kind)
    return call(metad, principal, "submit_job", request)


def limit(metad: InProcessMetad, principal: str, space: str, **values: Any) -> None:
    request = metad_pb.AccessLimits(principal=principal, space=space, **values)
    metad.access("set_access_limits", request)


def restarted(metad: InProcessMetad) -> InProcessMetad:
    return InProcessMetad(metad.store, now_ms=metad.now_ms)


def test_pins_of_a_principal_in_a_space_are_limited(metad: InProcessMetad) -> None:
    limit(metad, "alice", "graph", pins=2)
    pins = [pin(metad) for _ in range(2)]
    assert {created.principal for created in pins} == {"alice"}
    with pytest.raises(
        QuotaExceeded,
        match="pins=2: expected fewer than 2, the limit of 'alice' in space 'graph'; release a pin",
    ):
        pin(metad)
    pin(metad, space="other")
    pin(metad, BOB)
    call(metad, ALICE, "release_pin", metad_pb.PinRequest(pin_id=pins[0].pin_id))
    pin(metad)


def test_pins_count_until_they_end_and_over_a_restart(metad: InProcessMetad) -> None:
    limit(metad, "alice", "graph", pins=1)
    pin(metad)
    metad = restarted(metad)
    with pytest.raises(QuotaExceeded):
        pin(metad)
    metad.now_ms += 10_000  # the next tick removes the pin
    pin(metad)


def test_limits_of_all_spaces_count_them_together(metad: InProcessMetad) -> None:
    limit(metad, "alice", "*", pins=2)
    pin(metad)
    pin(metad, space="other")
    with pytest.raises(QuotaExceeded, match=r"pins=2: .* of 'alice' in all spaces together"):
        pin(metad)
    pin(metad, BOB)


def test_own_limits_replace_those_of_every_principal(metad: InProcessMetad) -> None:
    limit(metad, "*", "graph", pins=1)
    limit(metad, "alice", "graph", pins=2)
    for principal, count in ((ALICE, 2), (BOB, 1)):
        for _ in range(count):
            pin(metad, principal)
        with pytest.raises(QuotaExceeded, match=f"pins={count}: expected fewer than {count}, "):
            pin(metad, principal)
    limit(metad, "alice", "graph", share=1)  # limits of its own, without one on pins
    for _ in range(3):
        pin(metad)


def test_trusted_callers_have_no_quotas(metad: InProcessMetad) -> None:
    limit(metad, "*", "*", pins=1, jobs=1)
    for principal in (LOCAL, DAEMON):
        for _ in range(2):
            assert pin(metad, principal).principal == ""
    metad.load()
    metad.load("other")
    for space in ("graph", "other"):
        submit(metad, LOCAL, space)


def test_jobs_in_flight_of_a_principal_are_limited(metad: InProcessMetad) -> None:
    limit(metad, "alice", "graph", jobs=1)
    metad.load()
    job = submit(metad)
    assert submit(metad).job_id == job.job_id, "the identical job in flight is no new job"
    with pytest.raises(
        QuotaExceeded,
        match="jobs=1: expected fewer than 1, the limit of 'alice' in space 'graph'; stop a job or",
    ):
        submit(metad, kind="audit")
    assert len(metad.ask("list_jobs", metad_pb.ListJobsRequest(space="graph")).jobs) == 2
    assert submit(metad, BOB).job_id == job.job_id
    submit(metad, BOB, kind="audit")
    metad = restarted(metad)
    with pytest.raises(QuotaExceeded):
        submit(metad, kind="compact")
    metad.build("s1")
    assert metad.job(job.job_id).state == common_pb.FINISHED
    submit(metad, kind="compact")


def test_jobs_of_all_spaces_are_limited_together(metad: InProcessMetad) -> None:
    limit(metad, "*", "*", jobs=1)
    metad.load()
    submit(metad)
    with pytest.raises(QuotaExceeded, match=r"jobs=1: .* of 'alice' in all spaces together; stop"):
        submit(metad, space="other", kind="audit")
    submit(metad, BOB, space="other", kind="audit")


def test_a_recovered_job_counts_for_its_recoverer(metad: InProcessMetad) -> None:
    limit(metad, "*", "graph", jobs=1)
    metad.load()
    stopped = submit(metad, kind="audit")
    request = metad_pb.JobRequest(job_id=stopped.job_id)
    call(metad, ALICE, "stop_job", request)
    metad.heartbeat("s1")
    metad.advance_clock(6)
    metad.heartbeat("s1")
    assert metad.job(stopped.job_id).state == common_pb.STOPPED
    submit(metad)
    with pytest.raises(QuotaExceeded, match="of 'alice'"):
        call(metad, ALICE, "recover_job", request)
    assert metad.job(stopped.job_id).state == common_pb.STOPPED
    call(metad, BOB, "recover_job", request)
    with pytest.raises(QuotaExceeded, match="of 'bob'"):
        submit(metad, BOB, kind="compact")
    with pytest.raises(Conflict, match="only FAILED and STOPPED"):
        call(metad, LOCAL, "recover_job", request)


def test_a_dropped_space_ends_what_is_counted_in_it(metad: InProcessMetad) -> None:
    limit(metad, "alice", "*", jobs=1, pins=1)
    metad.load()
    submit(metad)
    pin(metad)
    metad.ask("drop_space", metad_pb.DropSpaceRequest(space="graph"))
    submit(metad, space="other", kind="audit")
    pin(metad, space="other")


def report_sizes(metad: InProcessMetad, uuid: str, **sizes: int) -> None:
    """Send the heartbeat of a storaged with the bytes that spaces take there."""
    ids = {
        name: metad.ask("describe_space", metad_pb.SpaceRequest(space=name)).space_id
        for name in sizes
    }
    usages = [metad_pb.SpaceUsage(space_id=ids[name], bytes=size) for name, size in sizes.items()]
    metad.heartbeat(uuid, resources=metad_pb.HostResources(spaces=usages))


def test_a_space_of_its_maximum_size_takes_no_writes(metad: InProcessMetad) -> None:
    limit(metad, "*", "graph", stored_bytes=1000)
    load = metad.begin()
    report_sizes(metad, "s1", graph=600, other=9000)
    metad.register(load, node_chunk(0))
    report_sizes(metad, "s2", graph=400)
    chunks = metad_pb.RegisterChunksRequest(load_id=load.load_id, chunks=[node_chunk(1)])
    full = (
        "stored_bytes=1000: expected less than 1000, the limit of space 'graph'; free disk space "
        "with a compact job, release pins"
    )
    for principal in (ALICE, DAEMON, LOCAL):
        with pytest.raises(QuotaExceeded, match=full):
            call(metad, principal, "begin_load", metad_pb.BeginLoadRequest(space="graph"))
        with pytest.raises(QuotaExceeded, match=full):
            call(metad, principal, "register_chunks", chunks)
    metad.load("other")
    metad.commit(load, 0)
    assert metad.ask("get_load", metad_pb.LoadRequest(load_id=load.load_id)).commit > 0
    report_sizes(metad, "s2", graph=399)
    metad.load()
    report_sizes(metad, "s2", graph=400)
    limit(metad, "*", "graph", stored_bytes=1001)
    metad.load()


def test_all_spaces_of_their_maximum_size_take_no_writes(metad: InProcessMetad) -> None:
    record = metad.ask("export_space", metad_pb.ExportSpaceRequest(space="graph"))
    restore = metad_pb.ImportSpaceRequest(name="copy", record=record)
    limit(metad, "*", "*", stored_bytes=1000)
    limit(metad, "alice", "*", stored_bytes=1)
    report_sizes(metad, "s1", graph=600, other=400)
    with pytest.raises(QuotaExceeded, match=r"stored_bytes=1000: .* of all spaces together"):
        call(metad, ALICE, "begin_load", metad_pb.BeginLoadRequest(space="other"))
    with pytest.raises(QuotaExceeded, match=r"stored_bytes=1000: .* of all spaces together"):
        call(metad, LOCAL, "import_space", restore)
    metad.ask("drop_space", metad_pb.DropSpaceRequest(space="other"))
    metad.heartbeat("s1", resources=metad_pb.HostResources())
    call(metad, ALICE, "begin_load", metad_pb.BeginLoadRequest(space="graph"))
    call(metad, LOCAL, "import_space", restore)


def test_pins_and_jobs_of_earlier_releases_count_for_none(metad: InProcessMetad) -> None:
    pin(metad, LOCAL)
    ((pin_key, stored_pin),) = metad.store.range(keys.PINS)
    assert record_encoding.decode_pin(stored_pin).principal == ""
    job_key, stored_job = metad.store.range(keys.JOBS)[0]
    old_job = stored_job.replace(b'"principal":"",', b"")
    assert old_job != stored_job
    metad.store.write({job_key: old_job})
    assert record_encoding.decode_job(old_job) == record_encoding.decode_job(stored_job)
    assert record_encoding.decode_job(old_job).state is JobState.FINISHED
    assert restarted(metad).job(1).state == common_pb.FINISHED
    assert metad.store.get(pin_key) == stored_pin

"""Tests of retention: output of failed and stopped builds is removed after a time.

metad's clock decides; then storageds get removal requests.
"""

from __future__ import annotations

from tests.kit.metad import InProcessMetad

from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb

DAY_S = 86_400.0


def kept_job_ids(metad: InProcessMetad, uuid: str = "s1", incarnation: int = 1) -> list[int]:
    return [job.job_id for job in metad.poll(uuid, incarnation=incarnation).retained_jobs]


def failure_report(order: metad_pb.TaskAssignment) -> metad_pb.TaskReport:
    return metad_pb.TaskReport(
        task_id=order.task_id,
        attempt=order.attempt,
        state=common_pb.FAILED,
        cause="the disk is full",
    )


def start_build(**settings: float) -> tuple[InProcessMetad, int]:
    """Start a build on two hosts."""
    metad = InProcessMetad(**{"max_attempts": 1, **settings})
    metad.heartbeat("s1")
    metad.heartbeat("s2")
    metad.create()
    metad.load()
    return metad, metad.submit().job_id


def fail_build(metad: InProcessMetad) -> None:
    """Report the build as failed on both hosts."""
    for uuid in ("s1", "s2"):
        orders = metad.poll(uuid).task_assignments
        metad.heartbeat(uuid, *(failure_report(order) for order in orders))


def test_failed_build_keeps_its_output_for_a_day() -> None:
    metad, job_id = start_build()
    assert kept_job_ids(metad) == kept_job_ids(metad, "s2") == [job_id]
    fail_build(metad)
    assert metad.job(job_id).state == common_pb.FAILED
    assert kept_job_ids(metad) == kept_job_ids(metad, "s2") == [job_id]
    metad.advance_clock(DAY_S - 1)
    assert kept_job_ids(metad) == [job_id]
    known_revision = metad.poll("s1").revision
    metad.advance_clock(1)
    assert metad.poll("s1", known_revision=known_revision, wait_s=5).revision > known_revision, (
        "storageds get a new revision, without any other change"
    )
    assert kept_job_ids(metad) == kept_job_ids(metad, "s2") == []


def test_stopped_and_recovered_builds_keep_their_output() -> None:
    metad, job_id = start_build()
    metad.ask("stop_job", metad_pb.JobRequest(job_id=job_id))
    assert kept_job_ids(metad) == [job_id], "on its way to its end"
    metad.heartbeat("s1")
    metad.heartbeat("s2")
    assert metad.job(job_id).state == common_pb.STOPPED
    metad.advance_clock(DAY_S - 1)
    assert kept_job_ids(metad) == [job_id]
    metad.ask("recover_job", metad_pb.JobRequest(job_id=job_id))
    metad.heartbeat("s1")
    metad.heartbeat("s2")
    metad.advance_clock(1)
    assert kept_job_ids(metad) == [job_id]


def test_build_keeps_its_output_between_attempts() -> None:
    metad, job_id = start_build(max_attempts=3)
    fail_build(metad)
    assert list(metad.poll("s1").task_assignments) == []
    assert kept_job_ids(metad) == [job_id]


def test_later_published_build_supersedes_failed_output() -> None:
    metad, first = start_build()
    fail_build(metad)
    metad.load()
    second = metad.submit().job_id
    assert kept_job_ids(metad) == [first, second]
    metad.now_ms += 1
    metad.build("s1", "s2")
    assert metad.job(second).state == common_pb.FINISHED
    assert kept_job_ids(metad) == []


def test_same_commit_supersedes_failed_build_only_if_later() -> None:
    metad, first = start_build()
    metad.build("s1", "s2")
    metad.now_ms += 1000
    again = metad.submit().job_id
    assert again != first
    fail_build(metad)
    assert kept_job_ids(metad) == [again], (
        "what was published before is no reason to give up what came after"
    )
    metad.now_ms += 1000
    third = metad.submit().job_id
    metad.build("s1", "s2")
    assert metad.job(third).state == common_pb.FINISHED
    assert kept_job_ids(metad) == []


def test_unstarted_and_finished_builds_keep_nothing() -> None:
    metad, first = start_build()
    metad.load()
    waiting = metad.submit().job_id
    assert kept_job_ids(metad) == [first]
    metad.ask("stop_job", metad_pb.JobRequest(job_id=waiting))
    metad.build("s1", "s2")
    assert kept_job_ids(metad) == []


def test_kept_jobs_are_listed_only_to_their_hosts() -> None:
    metad, job_id = start_build()
    metad.heartbeat("s3")
    assert (kept_job_ids(metad), kept_job_ids(metad, "s3")) == ([job_id], [])


def test_metad_restart_does_not_change_kept_jobs() -> None:
    metad, job_id = start_build()
    fail_build(metad)
    restarted = InProcessMetad(
        metad.store, now_ms=metad.now_ms + int((DAY_S - 10) * 1000), max_attempts=1
    )
    restarted.heartbeat("s1")
    assert kept_job_ids(restarted) == [job_id]
    restarted.advance_clock(10)
    assert kept_job_ids(restarted) == []


def test_leftovers_of_a_dropped_space_are_not_kept() -> None:
    metad, _ = start_build()
    metad.ask("drop_space", metad_pb.DropSpaceRequest(space="graph"))
    assert kept_job_ids(metad) == []

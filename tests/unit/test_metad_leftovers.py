"""What failed and stopped builds left stays while it can be of use, by metad's clock; then storageds are told that it goes."""

from __future__ import annotations

from tests.kit.metad import Desk

from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.v1 import metad_pb2 as mpb

DAY_S = 86_400.0


def kept(desk: Desk, uuid: str = "s1", incarnation: int = 1) -> list[int]:
    return [job.job_id for job in desk.poll(uuid, incarnation=incarnation).kept_jobs]


def failed(order: mpb.TaskOrder) -> mpb.TaskReport:
    return mpb.TaskReport(task_id=order.task_id, attempt=order.attempt, state=pb.FAILED, cause="the disk is full")


def begun(**settings: float) -> tuple[Desk, int]:
    """A build that runs on two hosts."""
    desk = Desk(**{"max_attempts": 1, **settings})
    desk.beat("s1")
    desk.beat("s2")
    desk.create()
    desk.load()
    return desk, desk.submit().job_id


def fail(desk: Desk) -> None:
    """Both hosts report that their build came to nothing."""
    for uuid in ("s1", "s2"):
        orders = desk.poll(uuid).orders
        desk.beat(uuid, *(failed(order) for order in orders))


def test_a_failed_build_keeps_what_it_left_for_a_day() -> None:
    desk, job_id = begun()
    assert kept(desk) == kept(desk, "s2") == [job_id]
    fail(desk)
    assert desk.job(job_id).state == pb.FAILED
    assert kept(desk) == kept(desk, "s2") == [job_id]
    desk.passes(DAY_S - 1)
    assert kept(desk) == [job_id]
    known = desk.poll("s1").revision
    desk.passes(1)
    assert desk.poll("s1", known=known, wait_s=5).revision > known, "storageds are told, without anything else happening"
    assert kept(desk) == kept(desk, "s2") == []


def test_a_stopped_build_keeps_what_it_left_and_a_recovered_one_for_as_long_as_it_takes() -> None:
    desk, job_id = begun()
    desk.ask("stop_job", mpb.JobRequest(job_id=job_id))
    assert kept(desk) == [job_id], "on its way to its end"
    desk.beat("s1")
    desk.beat("s2")
    assert desk.job(job_id).state == pb.STOPPED
    desk.passes(DAY_S - 1)
    assert kept(desk) == [job_id]
    desk.ask("recover_job", mpb.JobRequest(job_id=job_id))
    desk.beat("s1")
    desk.beat("s2")
    desk.passes(1)
    assert kept(desk) == [job_id]


def test_between_two_attempts_a_build_keeps_what_it_has() -> None:
    desk, job_id = begun(max_attempts=3)
    fail(desk)
    assert list(desk.poll("s1").orders) == []
    assert kept(desk) == [job_id]


def test_a_later_build_that_is_published_supersedes_what_a_failed_one_left() -> None:
    desk, first = begun()
    fail(desk)
    desk.load()
    second = desk.submit().job_id
    assert kept(desk) == [first, second]
    desk.now_ms += 1
    desk.build("s1", "s2")
    assert desk.job(second).state == pb.FINISHED
    assert kept(desk) == []


def test_a_build_of_the_same_commit_supersedes_a_failed_one_only_if_it_is_published_later() -> None:
    desk, first = begun()
    desk.build("s1", "s2")
    desk.now_ms += 1000
    again = desk.submit().job_id
    assert again != first
    fail(desk)
    assert kept(desk) == [again], "what was published before is no reason to give up what came after"
    desk.now_ms += 1000
    third = desk.submit().job_id
    desk.build("s1", "s2")
    assert desk.job(third).state == pb.FINISHED
    assert kept(desk) == []


def test_a_build_that_never_began_and_one_that_is_done_leave_nothing_to_keep() -> None:
    desk, first = begun()
    desk.load()
    waiting = desk.submit().job_id
    assert kept(desk) == [first]
    desk.ask("stop_job", mpb.JobRequest(job_id=waiting))
    desk.build("s1", "s2")
    assert kept(desk) == []


def test_only_hosts_with_a_share_of_a_job_are_told_of_it() -> None:
    desk, job_id = begun()
    desk.beat("s3")
    assert (kept(desk), kept(desk, "s3")) == ([job_id], [])


def test_a_restart_of_metad_changes_nothing_about_what_is_kept() -> None:
    desk, job_id = begun()
    fail(desk)
    after = Desk(desk.store, now_ms=desk.now_ms + int((DAY_S - 10) * 1000), max_attempts=1)
    after.beat("s1")
    assert kept(after) == [job_id]
    after.passes(10)
    assert kept(after) == []


def test_what_is_left_of_a_dropped_space_is_nobodys() -> None:
    desk, _ = begun()
    desk.ask("drop_space", mpb.DropSpaceRequest(space="graph"))
    assert kept(desk) == []

"""Tests of the life cycle of a job in the machine, without clock, disk or socket.

Jobs are submitted, published, stopped, recovered and forgotten.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.kit.jobs import EDGE, A, B, Scenario, outcome

from asterism_proto.errors import Conflict, InvalidRequest, NotFound, NotReady
from metad.jobs import state_machine
from metad.model import jobs
from metad.model.jobs import JobPolicy, JobState

# Submitting.


def test_submit_is_saved_and_assigned_to_all_hosts_at_once() -> None:
    scenario = Scenario()
    job = scenario.submit()
    assert (job.state, job.watermark, [task.parts for task in job.tasks]) == (
        JobState.RUNNING,
        1,
        [(0,), (1,)],
    )
    assert scenario.commands == [
        jobs.ReturnJob(job_id=job.job_id),
        jobs.SaveJob(job=job),
        jobs.NotifyStorageds(),
    ]
    assert scenario.assigned_tasks(A) == [(job.tasks[0].task_id, 1)]
    assert scenario.assigned_tasks(B) == [(job.tasks[1].task_id, 1)]


def test_submit_without_a_committed_load_is_refused() -> None:
    with pytest.raises(NotReady, match="no committed load"):
        Scenario().submit(watermark=0)


def test_unknown_kind_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidRequest, match="'bild': expected build"):
        Scenario().submit(kind="bild")


def test_identical_job_in_flight_is_returned() -> None:
    scenario = Scenario()
    first = scenario.submit(watermark=4)
    assert scenario.submit(watermark=4).job_id == first.job_id
    assert scenario.commands == [jobs.ReturnJob(job_id=first.job_id)]


def test_submit_after_a_newer_commit_queues_a_new_job() -> None:
    scenario = Scenario()
    first = scenario.submit(watermark=4)
    second = scenario.submit(watermark=5)
    assert second.job_id != first.job_id
    assert second.state is JobState.QUEUE
    assert scenario.assigned_tasks(A) == [(scenario.task(first, A).task_id, 1)]
    scenario.report_finished(first)
    assert scenario.job(second.job_id).state is JobState.RUNNING
    assert scenario.assigned_tasks(A) == [(scenario.task(second, A).task_id, 1)]


def test_stopping_job_is_not_returned_for_an_identical_one() -> None:
    scenario = Scenario()
    first = scenario.submit(watermark=4)
    scenario.heartbeat(A, scenario.make_report(first, A, JobState.RUNNING))
    scenario.stop(first)
    assert scenario.submit(watermark=4).job_id != first.job_id


def test_same_commit_after_a_publication_is_a_new_job() -> None:
    scenario = Scenario()
    first = scenario.submit(watermark=4)
    scenario.report_finished(first)
    second = scenario.submit(watermark=4)
    scenario.report_finished(second)
    assert [scenario.job(1).version, scenario.job(2).version] == [1, 2]


def test_spaces_build_side_by_side() -> None:
    scenario = Scenario()
    assert scenario.submit(space=1).state is JobState.RUNNING
    assert scenario.submit(space=2).state is JobState.RUNNING


# Finishing.


def test_job_is_published_together_with_its_last_task() -> None:
    scenario = Scenario()
    job = scenario.submit(watermark=7)
    scenario.report_finished(job, A)
    assert scenario.job(job.job_id).state is JobState.RUNNING
    assert scenario.commands_of(jobs.SaveOutcome) == [
        jobs.SaveOutcome(job_id=job.job_id, task_id=job.tasks[0].task_id, outcome=outcome([0]))
    ]
    scenario.report_finished(job, B)
    finished = scenario.job(job.job_id)
    assert (finished.state, finished.version) == (JobState.FINISHED, 1)
    (publish,) = scenario.commands_of(jobs.PublishVersion)
    assert isinstance(publish, jobs.PublishVersion)
    assert (publish.job.version, publish.job.watermark) == (1, 7)
    assert [total.part for total in publish.outcome.totals] == [0, 1]
    assert [image.digest for image in publish.outcome.images] == ["digest-0", "digest-1"]
    assert scenario.commands_of(jobs.SaveJob) == [jobs.SaveJob(job=finished)]
    assert scenario.assigned_tasks(A) == scenario.assigned_tasks(B) == []


def test_finished_task_stays_assigned_until_its_job_ends() -> None:
    """A host would remove output that no assignment lists as a leftover."""
    scenario = Scenario()
    job = scenario.submit()
    scenario.report_finished(job, A)
    assert scenario.assigned_tasks(A) == [(job.tasks[0].task_id, 1)]


def test_published_totals_do_not_depend_on_report_order() -> None:
    one, other = Scenario(), Scenario()
    for scenario, hosts in ((one, (A, B)), (other, (B, A))):
        scenario.report_finished(scenario.submit(), *hosts)
    assert (
        one.commands_of(jobs.PublishVersion)[0].outcome
        == other.commands_of(jobs.PublishVersion)[0].outcome
    )  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [({"count_in": 4}, "10 out-copies but 9 in-copies"), ({"mix_in": 78}, "differ in content")],
)
def test_copies_that_disagree_are_never_published(wrong: dict[str, int], words: str) -> None:
    scenario = Scenario()
    job = scenario.submit()
    scenario.report_finished(job, A)
    scenario.heartbeat(
        B, scenario.make_report(job, B, JobState.FINISHED, outcome=outcome([1], **wrong))
    )
    failed = scenario.job(job.job_id)
    assert failed.state is JobState.FAILED
    assert EDGE in failed.cause
    assert words in failed.cause
    assert scenario.commands_of(jobs.PublishVersion) == []


def test_copies_may_differ_per_part_if_all_parts_agree() -> None:
    scenario = Scenario()
    job = scenario.submit()
    scenario.heartbeat(
        A,
        scenario.make_report(
            job, A, JobState.FINISHED, outcome=outcome([0], count_in=2, mix_in=2**64 - 1)
        ),
    )
    scenario.heartbeat(
        B,
        scenario.make_report(
            job, B, JobState.FINISHED, outcome=outcome([1], count_in=8, mix_in=155)
        ),
    )
    assert scenario.job(job.job_id).state is JobState.FINISHED


def test_absent_in_copies_are_not_compared() -> None:
    scenario = Scenario()
    job = scenario.submit(paired=())
    scenario.heartbeat(
        A,
        scenario.make_report(job, A, JobState.FINISHED, outcome=outcome([0], count_in=0, mix_in=0)),
    )
    scenario.heartbeat(
        B,
        scenario.make_report(job, B, JobState.FINISHED, outcome=outcome([1], count_in=0, mix_in=0)),
    )
    assert scenario.job(job.job_id).state is JobState.FINISHED


@pytest.mark.parametrize("parts", [[], [0], [0, 1], [1, 1]])
def test_result_of_wrong_parts_is_a_failed_attempt(parts: list[int]) -> None:
    scenario = Scenario()
    job = scenario.submit()
    scenario.heartbeat(B, scenario.make_report(job, B, JobState.FINISHED, outcome=outcome(parts)))
    task = scenario.task(job, B)
    assert (task.state, task.failures) == (JobState.QUEUE, 1)
    assert "of [1]" in task.causes[0]


# Stopping and recovering.


def test_stop_waits_for_confirmation_by_every_host() -> None:
    scenario = Scenario()
    job = scenario.submit()
    scenario.stop(job)
    assert scenario.commands_of(jobs.NotifyStorageds)
    assert scenario.assigned_tasks(A) == scenario.assigned_tasks(B) == []
    assert (scenario.job(job.job_id).state, scenario.job(job.job_id).ending) == (
        JobState.RUNNING,
        JobState.STOPPED,
    )
    scenario.heartbeat(A, scenario.make_report(job, A, JobState.RUNNING))
    scenario.heartbeat(B)
    assert scenario.job(job.job_id).state is JobState.RUNNING
    scenario.heartbeat(A, scenario.make_report(job, A, JobState.STOPPED))
    assert scenario.job(job.job_id).state is JobState.STOPPED
    assert {task.state for task in scenario.job(job.job_id).tasks} == {JobState.STOPPED}


def test_expired_lease_counts_as_confirmation() -> None:
    scenario = Scenario()
    job = scenario.submit()
    scenario.stop(job)
    scenario.heartbeat(A)
    scenario.host_lost(B)
    assert scenario.job(job.job_id).state is JobState.STOPPED


def test_queued_job_stops_at_once() -> None:
    scenario = Scenario()
    scenario.submit(watermark=1)
    waiting = scenario.submit(watermark=2)
    scenario.stop(waiting)
    assert scenario.job(waiting.job_id).state is JobState.STOPPED
    assert not scenario.commands_of(jobs.NotifyStorageds)


def test_stop_is_idempotent_but_refused_after_another_end() -> None:
    scenario = Scenario()
    job = scenario.submit()
    scenario.stop(job)
    scenario.stop(job)
    scenario.heartbeat(A)
    scenario.heartbeat(B)
    scenario.stop(job)
    assert scenario.job(job.job_id).state is JobState.STOPPED
    other = scenario.submit(watermark=2)
    scenario.report_finished(other)
    with pytest.raises(Conflict, match="FINISHED already"):
        scenario.stop(other)


def test_stop_during_the_last_task_prevents_publication() -> None:
    scenario = Scenario()
    job = scenario.submit()
    scenario.report_finished(job, A)
    scenario.stop(job)
    scenario.heartbeat(B, scenario.make_report(job, B, JobState.FINISHED))
    assert scenario.job(job.job_id).state is JobState.STOPPED
    assert scenario.commands_of(jobs.PublishVersion) == []


def test_recovered_job_keeps_its_commit_with_new_attempts() -> None:
    scenario = Scenario(JobPolicy(max_attempts=1))
    job = scenario.submit(watermark=3)
    scenario.report_finished(job, A)
    scenario.heartbeat(B, scenario.make_report(job, B, JobState.FAILED, cause="no memory"))
    assert scenario.job(job.job_id).state is JobState.FAILED
    scenario.recover(job)
    recovered = scenario.job(job.job_id)
    assert (recovered.state, recovered.watermark, recovered.cause, recovered.finished_ms) == (
        JobState.RUNNING,
        3,
        "",
        0,
    )
    # The finished task too: no assignment protected its output while the job was over.
    assert scenario.assigned_tasks(A) == [(job.tasks[0].task_id, 2)]
    assert scenario.assigned_tasks(B) == [(job.tasks[1].task_id, 2)]
    scenario.report_finished(recovered)
    assert scenario.job(job.job_id).state is JobState.FINISHED


def test_only_failed_and_stopped_jobs_are_recovered() -> None:
    scenario = Scenario()
    job = scenario.submit()
    with pytest.raises(Conflict, match="is RUNNING"):
        scenario.recover(job)
    scenario.report_finished(job)
    with pytest.raises(Conflict, match="is FINISHED"):
        scenario.recover(job)


def test_recovery_never_publishes_older_over_newer_state() -> None:
    scenario = Scenario()
    old = scenario.submit(watermark=1)
    scenario.stop(old)
    scenario.heartbeat(A)
    scenario.heartbeat(B)
    new = scenario.submit(watermark=2)
    with pytest.raises(Conflict, match=f"job {new.job_id} is RUNNING and builds commit 2"):
        scenario.recover(old)
    scenario.report_finished(new)
    with pytest.raises(Conflict, match="version 1 contains commit 2 already"):
        scenario.recover(old)


def test_unknown_job_is_refused_with_the_newest_id() -> None:
    scenario = Scenario()
    with pytest.raises(NotFound, match="job 99 does not exist; there are none"):
        state_machine.find_job(scenario.state, 99)
    scenario.submit()
    with pytest.raises(NotFound, match="job 99 does not exist; the newest is 1"):
        state_machine.find_job(scenario.state, 99)


# Dropping and forgetting.


def test_dropped_space_stops_only_its_own_jobs_at_once() -> None:
    scenario = Scenario()
    running, waiting, other = (
        scenario.submit(watermark=1),
        scenario.submit(watermark=2),
        scenario.submit(space=2),
    )
    scenario.drop_space(1)
    assert [scenario.job(job.job_id).state for job in (running, waiting, other)] == [
        JobState.STOPPED,
        JobState.STOPPED,
        JobState.RUNNING,
    ]
    assert scenario.assigned_tasks(A) == [(scenario.task(other, A).task_id, 1)]
    assert "dropped" in scenario.job(running.job_id).cause


def test_ended_jobs_expire_and_their_ids_are_not_reused() -> None:
    scenario = Scenario(JobPolicy(keep_jobs_ms=7 * 24 * 3_600_000))
    job = scenario.submit()
    scenario.report_finished(job)
    scenario.advance_clock(7 * 24 * 3600 - 1)
    assert scenario.commands == []
    scenario.advance_clock(1)
    assert scenario.commands == [jobs.DeleteJob(job_id=job.job_id)]
    assert scenario.state.jobs == {}
    assert scenario.submit(watermark=2).job_id > job.job_id


def test_handling_an_event_does_not_mutate_its_input_state() -> None:
    scenario = Scenario()
    job = scenario.submit()
    before, copy = (
        scenario.state,
        replace(scenario.state, jobs=dict(scenario.state.jobs), hosts=dict(scenario.state.hosts)),
    )
    scenario.report_finished(job)
    scenario.host_seen(A, incarnation=9)
    assert before == copy


def test_waiting_jobs_run_in_the_order_of_their_commits() -> None:
    scenario = Scenario(hosts=(A,))
    first = scenario.submit(watermark=4, hosts=(A,))
    later, earlier = (scenario.submit(watermark=watermark, hosts=(A,)) for watermark in (9, 5))
    scenario.report_finished(first, A)
    assert [scenario.job(job.job_id).state for job in (later, earlier)] == [
        JobState.QUEUE,
        JobState.RUNNING,
    ]


def test_jobs_are_remembered_from_their_end_on() -> None:
    scenario = Scenario(JobPolicy(keep_jobs_ms=60_000))
    job = scenario.submit()
    scenario.advance_clock(59)
    scenario.report_finished(job)
    scenario.advance_clock(59)
    assert scenario.job(job.job_id).state is JobState.FINISHED
    scenario.advance_clock(1)
    assert job.job_id not in scenario.state.jobs

"""Tests of attempts of a job after reports, failures and changes of hosts.

No clock, disk or socket is used.
"""

from __future__ import annotations

from dataclasses import replace

from tests.kit.jobs import A, B, Scenario

from metad.jobs.state_machine.host_events import backoff_ms
from metad.model import jobs
from metad.model.ids import TaskId
from metad.model.jobs import JobPolicy, JobState

# Fences.


def test_reports_that_do_not_match_the_attempt_are_ignored() -> None:
    scenario = Scenario()
    job = scenario.submit()
    finished = scenario.make_report(job, A, JobState.FINISHED)
    before = scenario.state
    scenario.heartbeat(A, replace(finished, attempt=2))
    scenario.heartbeat(A, replace(finished, attempt=0))
    scenario.heartbeat(B, finished)
    scenario.heartbeat(A, finished, incarnation=2)
    scenario.heartbeat(A, finished, incarnation=0)
    assert scenario.state.jobs == before.jobs
    scenario.heartbeat(A, finished)
    assert scenario.task(job, A).state is JobState.FINISHED


def test_duplicate_and_late_reports_change_nothing() -> None:
    scenario = Scenario()
    job = scenario.submit()
    scenario.report_finished(job, A)
    before = scenario.state
    for late in (JobState.FINISHED, JobState.RUNNING, JobState.FAILED, JobState.STOPPED):
        scenario.heartbeat(A, scenario.make_report(job, A, late, cause="late"))
        assert scenario.state.jobs == before.jobs


def test_progress_is_shown_at_once_but_saved_rarely() -> None:
    scenario = Scenario(JobPolicy(progress_interval_ms=10_000))
    job = scenario.submit()
    scenario.now_ms += 1_000
    scenario.heartbeat(
        A,
        scenario.make_report(job, A, JobState.RUNNING, phase="sort", rows_done=10, rows_total=100),
    )
    assert (scenario.task(job, A).phase, scenario.task(job, A).rows_done) == ("sort", 10)
    assert scenario.commands == []
    scenario.now_ms += 10_000
    scenario.heartbeat(
        A,
        scenario.make_report(job, A, JobState.RUNNING, phase="sort", rows_done=20, rows_total=100),
    )
    assert [type(command) for command in scenario.commands] == [jobs.SaveJob]


# Failing and retrying.


def test_failed_attempt_is_retried_after_a_backoff() -> None:
    scenario = Scenario(JobPolicy(backoff_ms=1_000))
    job = scenario.submit()
    scenario.heartbeat(A, scenario.make_report(job, A, JobState.FAILED, cause="disk full"))
    assert scenario.assigned_tasks(A) == []
    scenario.advance_clock(0.4)
    assert scenario.assigned_tasks(A) == []
    scenario.advance_clock(1.2)
    assert scenario.assigned_tasks(A) == [(job.tasks[0].task_id, 2)]
    assert scenario.task(job, A).causes == ("attempt 1: disk full",)
    assert jobs.NotifyStorageds() in scenario.commands


def test_backoffs_double_to_a_limit_and_differ_between_tasks() -> None:
    rules = JobPolicy(backoff_ms=1_000, backoff_limit_ms=8_000)
    task = jobs.Task(task_id=TaskId(1), host=A, parts=(0,))
    backoffs = [backoff_ms(rules, replace(task, failures=n, attempt=n)) for n in range(1, 9)]
    for n, backoff in enumerate(backoffs):
        longest = min(1_000 * 2**n, 8_000)
        assert longest // 2 <= backoff <= longest * 3 // 2
    spread = {
        backoff_ms(rules, replace(task, task_id=TaskId(i), failures=1, attempt=1))
        for i in range(1, 20)
    }
    assert len(spread) > 10


def test_job_fails_after_last_attempt_with_all_causes() -> None:
    scenario = Scenario(JobPolicy(max_attempts=3))
    job = scenario.submit()
    for cause in ("first", "second", "third"):
        scenario.heartbeat(A, scenario.make_report(job, A, JobState.FAILED, cause=cause))
        scenario.advance_clock(120)
    ending = scenario.job(job.job_id)
    assert (ending.state, ending.ending) == (JobState.RUNNING, JobState.FAILED)
    assert scenario.assigned_tasks(B) == []
    scenario.heartbeat(B)
    failed = scenario.job(job.job_id)
    assert failed.state is JobState.FAILED
    assert all(
        cause in failed.cause
        for cause in ("attempt 1: first", "attempt 2: second", "attempt 3: third")
    )
    assert (scenario.task(job, A).state, scenario.task(job, B).state) == (
        JobState.FAILED,
        JobState.STOPPED,
    )


def test_next_job_waits_until_failing_job_frees_its_hosts() -> None:
    scenario = Scenario(JobPolicy(max_attempts=1))
    first, second = scenario.submit(watermark=1), scenario.submit(watermark=2)
    scenario.heartbeat(A, scenario.make_report(first, A, JobState.FAILED, cause="x"))
    scenario.heartbeat(B, scenario.make_report(first, B, JobState.RUNNING))
    assert scenario.job(second.job_id).state is JobState.QUEUE
    scenario.heartbeat(B)
    assert scenario.job(second.job_id).state is JobState.RUNNING


def test_task_stopped_by_its_host_gets_a_new_attempt() -> None:
    scenario = Scenario()
    job = scenario.submit()
    scenario.heartbeat(A, scenario.make_report(job, A, JobState.STOPPED))
    assert scenario.assigned_tasks(A) == [(job.tasks[0].task_id, 2)]
    assert scenario.task(job, A).failures == 0


# Hosts.


def test_lost_host_resumes_its_task_on_return() -> None:
    scenario = Scenario()
    job = scenario.submit()
    scenario.host_lost(A)
    assert (scenario.task(job, A).state, scenario.task(job, A).attempt) == (JobState.RUNNING, 1)
    scenario.host_seen(A, incarnation=1)
    assert scenario.assigned_tasks(A) == [(job.tasks[0].task_id, 1)]
    scenario.report_finished(job)
    assert scenario.job(job.job_id).state is JobState.FINISHED


def test_restarted_host_gets_new_attempt_and_old_is_fenced() -> None:
    scenario = Scenario()
    job = scenario.submit()
    old = scenario.make_report(job, A, JobState.FINISHED)
    scenario.host_lost(A)
    scenario.host_seen(A, incarnation=2)
    assert scenario.assigned_tasks(A) == [(job.tasks[0].task_id, 2)]
    scenario.heartbeat(A, old, incarnation=2)
    scenario.heartbeat(A, old, incarnation=1)
    assert scenario.task(job, A).state is JobState.RUNNING
    assert "restarted" in scenario.task(job, A).causes[0]


def test_finished_task_reruns_if_host_restarts_before_publish() -> None:
    """Only the process that reported the output is known to hold it completely."""
    scenario = Scenario()
    job = scenario.submit()
    scenario.report_finished(job, A)
    scenario.host_seen(A, incarnation=2)
    assert scenario.assigned_tasks(A) == [(job.tasks[0].task_id, 2)]
    scenario.report_finished(job, B)
    assert scenario.job(job.job_id).state is JobState.RUNNING
    scenario.report_finished(job, A)
    assert scenario.job(job.job_id).state is JobState.FINISHED


def test_older_incarnation_is_not_taken_for_a_return() -> None:
    scenario = Scenario()
    scenario.host_seen(A, incarnation=5)
    job = scenario.submit()
    before = scenario.state
    scenario.host_seen(A, incarnation=4)
    assert scenario.state == before
    scenario.heartbeat(A, scenario.make_report(job, A, JobState.FINISHED), incarnation=4)
    assert scenario.state == before


def test_task_waits_for_a_host_absent_at_the_start() -> None:
    scenario = Scenario()
    scenario.host_lost(B)
    job = scenario.submit()
    assert (scenario.task(job, B).state, scenario.task(job, B).attempt) == (JobState.QUEUE, 0)
    scenario.advance_clock(60)
    scenario.host_seen(B, incarnation=2)
    assert scenario.assigned_tasks(B) == [(job.tasks[1].task_id, 1)]


def test_job_fails_and_names_the_partitions_that_stay_away() -> None:
    scenario = Scenario(JobPolicy(away_limit_ms=600_000))
    job = scenario.submit()
    scenario.report_finished(job, A)
    scenario.advance_clock(5)
    scenario.host_lost(B)
    scenario.advance_clock(599)
    assert scenario.job(job.job_id).state is JobState.RUNNING
    scenario.advance_clock(1)
    failed = scenario.job(job.job_id)
    assert failed.state is JobState.FAILED
    assert "the storaged of partitions 1 has been offline" in failed.cause
    assert "600 s" in failed.cause


def test_absence_of_a_host_counts_from_the_job_start() -> None:
    scenario = Scenario(JobPolicy(away_limit_ms=600_000))
    scenario.host_lost(B)
    scenario.advance_clock(100_000)
    job = scenario.submit()
    scenario.advance_clock(599)
    assert (scenario.job(job.job_id).state, scenario.job(job.job_id).ending) == (
        JobState.RUNNING,
        None,
    )
    scenario.advance_clock(1)
    assert scenario.job(job.job_id).ending is JobState.FAILED
    scenario.heartbeat(A)
    assert scenario.job(job.job_id).state is JobState.FAILED


def test_build_that_keeps_crashing_its_host_fails() -> None:
    scenario = Scenario(JobPolicy(max_losses=3))
    job = scenario.submit(hosts=(A,))
    for incarnation in (2, 3, 4):
        scenario.host_seen(A, incarnation=incarnation)
    assert scenario.job(job.job_id).state is JobState.FAILED
    assert "was lost 3 times" in scenario.job(job.job_id).cause


def test_finished_task_stays_if_its_host_returns_unrestarted() -> None:
    scenario = Scenario()
    job = scenario.submit()
    scenario.report_finished(job, A)
    scenario.host_lost(A)
    scenario.host_seen(A)
    assert scenario.task(job, A).state is JobState.FINISHED


def test_failures_before_a_recovery_do_not_count() -> None:
    scenario = Scenario(JobPolicy(max_attempts=1))
    job = scenario.submit(hosts=(A,))
    scenario.heartbeat(A, scenario.make_report(job, A, JobState.FAILED, cause="disk full"))
    assert scenario.job(job.job_id).state is JobState.FAILED
    scenario.state = replace(scenario.state, policy=JobPolicy(max_attempts=2))
    scenario.recover(job)
    scenario.heartbeat(A, scenario.make_report(job, A, JobState.FAILED, cause="disk full"))
    assert (scenario.job(job.job_id).state, scenario.task(job, A).failures) == (
        JobState.RUNNING,
        1,
    )


def test_recovered_task_has_no_outcome() -> None:
    scenario = Scenario()
    job = scenario.submit()
    scenario.report_finished(job, A)
    scenario.stop(job)
    scenario.heartbeat(B)
    scenario.recover(job)
    assert scenario.task(job, A).outcome is None


def test_timeout_of_a_host_does_not_change_a_requested_stop() -> None:
    scenario = Scenario(JobPolicy(away_limit_ms=1_000))
    job = scenario.submit()
    scenario.host_lost(B)
    scenario.stop(job)
    scenario.advance_clock(10)
    assert scenario.job(job.job_id).ending is JobState.STOPPED
    scenario.heartbeat(A)
    assert (scenario.job(job.job_id).state, scenario.job(job.job_id).cause) == (
        JobState.STOPPED,
        "stopped on request",
    )

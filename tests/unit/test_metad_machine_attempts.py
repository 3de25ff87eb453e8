"""What reports, failures and hosts that go and come do to a job's attempts; no clock, no disk, no socket."""

from __future__ import annotations

from dataclasses import replace

from tests.kit.jobs import A, B, Story

from metad.ids import TaskId
from metad.jobs import model
from metad.jobs.machine.attempts import backoff_ms
from metad.jobs.model import Rules, State

# Fences.


def test_reports_of_another_attempt_host_or_incarnation_are_ignored() -> None:
    story = Story()
    job = story.submit()
    finished = story.says(job, A, State.FINISHED)
    before = story.state
    story.beat(A, replace(finished, attempt=2))
    story.beat(A, replace(finished, attempt=0))
    story.beat(B, finished)
    story.beat(A, finished, incarnation=2)
    story.beat(A, finished, incarnation=0)
    assert story.state.jobs == before.jobs
    story.beat(A, finished)
    assert story.task(job, A).state is State.FINISHED


def test_a_report_that_comes_twice_or_late_changes_nothing() -> None:
    story = Story()
    job = story.submit()
    story.finishes(job, A)
    before = story.state
    for late in (State.FINISHED, State.RUNNING, State.FAILED, State.STOPPED):
        story.beat(A, story.says(job, A, late, cause="late"))
        assert story.state.jobs == before.jobs


def test_progress_is_shown_at_once_but_written_down_seldom() -> None:
    story = Story(Rules(progress_interval_ms=10_000))
    job = story.submit()
    story.now_ms += 1_000
    story.beat(A, story.says(job, A, State.RUNNING, phase="sort", rows_done=10, rows_total=100))
    assert (story.task(job, A).phase, story.task(job, A).rows_done) == ("sort", 10)
    assert story.commands == []
    story.now_ms += 10_000
    story.beat(A, story.says(job, A, State.RUNNING, phase="sort", rows_done=20, rows_total=100))
    assert [type(command) for command in story.commands] == [model.Keep]


# Failing and retrying.


def test_a_failed_attempt_is_ordered_again_after_a_back_off() -> None:
    story = Story(Rules(backoff_ms=1_000))
    job = story.submit()
    story.beat(A, story.says(job, A, State.FAILED, cause="disk full"))
    assert story.ordered(A) == []
    story.passes(0.4)
    assert story.ordered(A) == []
    story.passes(1.2)
    assert story.ordered(A) == [(job.tasks[0].task_id, 2)]
    assert story.task(job, A).causes == ("attempt 1: disk full",)
    assert model.Tell() in story.commands


def test_back_offs_double_up_to_a_limit_and_differ_between_tasks() -> None:
    rules = Rules(backoff_ms=1_000, backoff_limit_ms=8_000)
    task = model.Task(task_id=TaskId(1), host=A, parts=(0,))
    waits = [backoff_ms(rules, replace(task, failures=n, attempt=n)) for n in range(1, 9)]
    for n, wait in enumerate(waits):
        longest = min(1_000 * 2**n, 8_000)
        assert longest // 2 <= wait <= longest * 3 // 2
    spread = {backoff_ms(rules, replace(task, task_id=TaskId(i), failures=1, attempt=1)) for i in range(1, 20)}
    assert len(spread) > 10


def test_after_the_last_attempt_the_job_fails_with_every_attempts_cause() -> None:
    story = Story(Rules(max_attempts=3))
    job = story.submit()
    for cause in ("first", "second", "third"):
        story.beat(A, story.says(job, A, State.FAILED, cause=cause))
        story.passes(120)
    ending = story.job(job.job_id)
    assert (ending.state, ending.ending) == (State.RUNNING, State.FAILED)
    assert story.ordered(B) == []
    story.beat(B)
    failed = story.job(job.job_id)
    assert failed.state is State.FAILED
    assert all(cause in failed.cause for cause in ("attempt 1: first", "attempt 2: second", "attempt 3: third"))
    assert (story.task(job, A).state, story.task(job, B).state) == (State.FAILED, State.STOPPED)


def test_the_next_job_waits_until_the_failing_one_has_let_its_hosts_go() -> None:
    story = Story(Rules(max_attempts=1))
    first, second = story.submit(cut=1), story.submit(cut=2)
    story.beat(A, story.says(first, A, State.FAILED, cause="x"))
    story.beat(B, story.says(first, B, State.RUNNING))
    assert story.job(second.job_id).state is State.QUEUE
    story.beat(B)
    assert story.job(second.job_id).state is State.RUNNING


def test_a_host_that_stops_a_task_of_its_own_accord_gets_a_new_attempt() -> None:
    story = Story()
    job = story.submit()
    story.beat(A, story.says(job, A, State.STOPPED))
    assert story.ordered(A) == [(job.tasks[0].task_id, 2)]
    assert story.task(job, A).failures == 0


# Hosts.


def test_a_lost_host_keeps_its_task_and_goes_on_with_it_when_it_is_back() -> None:
    story = Story()
    job = story.submit()
    story.lost(A)
    assert (story.task(job, A).state, story.task(job, A).attempt) == (State.RUNNING, 1)
    story.seen(A, incarnation=1)
    assert story.ordered(A) == [(job.tasks[0].task_id, 1)]
    story.finishes(job)
    assert story.job(job.job_id).state is State.FINISHED


def test_a_restarted_host_gets_a_new_attempt_and_the_old_one_is_fenced() -> None:
    story = Story()
    job = story.submit()
    old = story.says(job, A, State.FINISHED)
    story.lost(A)
    story.seen(A, incarnation=2)
    assert story.ordered(A) == [(job.tasks[0].task_id, 2)]
    story.beat(A, old, incarnation=2)
    story.beat(A, old, incarnation=1)
    assert story.task(job, A).state is State.RUNNING
    assert "restarted" in story.task(job, A).causes[0]


def test_a_finished_share_is_ordered_anew_where_its_host_restarts_before_the_publication() -> None:
    """Only the start that reported the output is known to hold it whole."""
    story = Story()
    job = story.submit()
    story.finishes(job, A)
    story.seen(A, incarnation=2)
    assert story.ordered(A) == [(job.tasks[0].task_id, 2)]
    story.finishes(job, B)
    assert story.job(job.job_id).state is State.RUNNING
    story.finishes(job, A)
    assert story.job(job.job_id).state is State.FINISHED


def test_an_older_start_of_a_host_is_not_taken_for_its_return() -> None:
    story = Story()
    story.seen(A, incarnation=5)
    job = story.submit()
    before = story.state
    story.seen(A, incarnation=4)
    assert story.state == before
    story.beat(A, story.says(job, A, State.FINISHED), incarnation=4)
    assert story.state == before


def test_a_task_waits_for_a_host_that_is_away_at_the_start() -> None:
    story = Story()
    story.lost(B)
    job = story.submit()
    assert (story.task(job, B).state, story.task(job, B).attempt) == (State.QUEUE, 0)
    story.passes(60)
    story.seen(B, incarnation=2)
    assert story.ordered(B) == [(job.tasks[1].task_id, 1)]


def test_a_job_whose_host_stays_away_fails_and_says_whom_it_waited_for() -> None:
    story = Story(Rules(away_limit_ms=600_000))
    job = story.submit()
    story.finishes(job, A)
    story.passes(5)
    story.lost(B)
    story.passes(599)
    assert story.job(job.job_id).state is State.RUNNING
    story.passes(1)
    failed = story.job(job.job_id)
    assert failed.state is State.FAILED
    assert "host-b" in failed.cause
    assert "600 s" in failed.cause


def test_a_host_that_left_long_ago_counts_as_away_only_since_the_job_began() -> None:
    story = Story(Rules(away_limit_ms=600_000))
    story.lost(B)
    story.passes(100_000)
    job = story.submit()
    story.passes(599)
    assert story.job(job.job_id).state is State.RUNNING
    story.passes(1)
    assert story.job(job.job_id).ending is State.FAILED
    story.beat(A)
    assert story.job(job.job_id).state is State.FAILED


def test_a_build_that_takes_its_host_down_each_time_ends_too() -> None:
    story = Story(Rules(max_losses=3))
    job = story.submit(hosts=(A,))
    for incarnation in (2, 3, 4):
        story.seen(A, incarnation=incarnation)
    assert story.job(job.job_id).state is State.FAILED
    assert "was lost 3 times" in story.job(job.job_id).cause

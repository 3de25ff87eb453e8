"""The life of a job in the machine: submitted, published, stopped, recovered, forgotten; no clock, no disk, no socket."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.kit.jobs import EDGE, A, B, Story, result

from asterism_proto.errors import Conflict, InvalidRequest, NotFound, NotReady
from metad.jobs import machine, model
from metad.jobs.model import Rules, State

# Submitting.


def test_a_submit_is_kept_and_ordered_of_every_host_at_once() -> None:
    story = Story()
    job = story.submit()
    assert (job.state, job.cut, [task.parts for task in job.tasks]) == (State.RUNNING, 1, [(0,), (1,)])
    assert story.commands == [model.Answer(job_id=job.job_id), model.Keep(job=job), model.Tell()]
    assert story.ordered(A) == [(job.tasks[0].task_id, 1)]
    assert story.ordered(B) == [(job.tasks[1].task_id, 1)]


def test_a_submit_without_a_committed_load_has_nothing_to_build() -> None:
    with pytest.raises(NotReady, match="no committed load"):
        Story().submit(cut=0)


def test_an_unknown_kind_is_named_with_the_known_ones() -> None:
    with pytest.raises(InvalidRequest, match="'bild': expected build"):
        Story().submit(kind="bild")


def test_an_identical_job_in_flight_gives_its_id_back() -> None:
    story = Story()
    first = story.submit(cut=4)
    assert story.submit(cut=4).job_id == first.job_id
    assert story.commands == [model.Answer(job_id=first.job_id)]


def test_a_submit_after_a_newer_commit_never_gets_the_older_job_and_waits_behind_it() -> None:
    story = Story()
    first = story.submit(cut=4)
    second = story.submit(cut=5)
    assert second.job_id != first.job_id
    assert second.state is State.QUEUE
    assert story.ordered(A) == [(story.task(first, A).task_id, 1)]
    story.finishes(first)
    assert story.job(second.job_id).state is State.RUNNING
    assert story.ordered(A) == [(story.task(second, A).task_id, 1)]


def test_a_job_on_its_way_to_its_end_is_not_the_identical_one() -> None:
    story = Story()
    first = story.submit(cut=4)
    story.beat(A, story.says(first, A, State.RUNNING))
    story.stop(first)
    assert story.submit(cut=4).job_id != first.job_id


def test_the_same_cut_again_after_a_publication_is_a_new_job() -> None:
    story = Story()
    first = story.submit(cut=4)
    story.finishes(first)
    second = story.submit(cut=4)
    story.finishes(second)
    assert [story.job(1).version, story.job(2).version] == [1, 2]


def test_spaces_build_side_by_side() -> None:
    story = Story()
    assert story.submit(space=1).state is State.RUNNING
    assert story.submit(space=2).state is State.RUNNING


# Finishing.


def test_a_job_is_published_in_one_go_with_its_last_task() -> None:
    story = Story()
    job = story.submit(cut=7)
    story.finishes(job, A)
    assert story.job(job.job_id).state is State.RUNNING
    assert story.told(model.KeepResult) == [model.KeepResult(job_id=job.job_id, task_id=job.tasks[0].task_id, result=result([0]))]
    story.finishes(job, B)
    done = story.job(job.job_id)
    assert (done.state, done.version) == (State.FINISHED, 1)
    (publish,) = story.told(model.Publish)
    assert isinstance(publish, model.Publish)
    assert (publish.job.version, publish.job.cut) == (1, 7)
    assert [total.part for total in publish.result.totals] == [0, 1]
    assert [image.digest for image in publish.result.images] == ["digest-0", "digest-1"]
    assert story.told(model.Keep) == [model.Keep(job=done)]
    assert story.ordered(A) == story.ordered(B) == []


def test_a_finished_task_stays_ordered_until_its_job_ends() -> None:
    """What is not named is not wanted: its host would take the output for a leftover."""
    story = Story()
    job = story.submit()
    story.finishes(job, A)
    assert story.ordered(A) == [(job.tasks[0].task_id, 1)]


def test_totals_are_published_in_an_order_that_the_reports_do_not_have() -> None:
    one, other = Story(), Story()
    for story, hosts in ((one, (A, B)), (other, (B, A))):
        story.finishes(story.submit(), *hosts)
    assert one.told(model.Publish)[0].result == other.told(model.Publish)[0].result  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [({"count_in": 4}, "10 out-copies but 9 in-copies"), ({"mix_in": 78}, "differ in content")],
)
def test_copies_that_disagree_are_never_published(wrong: dict[str, int], words: str) -> None:
    story = Story()
    job = story.submit()
    story.finishes(job, A)
    story.beat(B, story.says(job, B, State.FINISHED, result=result([1], **wrong)))
    failed = story.job(job.job_id)
    assert failed.state is State.FAILED
    assert EDGE in failed.cause
    assert words in failed.cause
    assert story.told(model.Publish) == []


def test_copies_may_disagree_within_a_part_as_long_as_all_parts_together_agree() -> None:
    story = Story()
    job = story.submit()
    story.beat(A, story.says(job, A, State.FINISHED, result=result([0], count_in=2, mix_in=2**64 - 1)))
    story.beat(B, story.says(job, B, State.FINISHED, result=result([1], count_in=8, mix_in=155)))
    assert story.job(job.job_id).state is State.FINISHED


def test_where_no_in_copies_are_kept_none_are_compared() -> None:
    story = Story()
    job = story.submit(paired=())
    story.beat(A, story.says(job, A, State.FINISHED, result=result([0], count_in=0, mix_in=0)))
    story.beat(B, story.says(job, B, State.FINISHED, result=result([1], count_in=0, mix_in=0)))
    assert story.job(job.job_id).state is State.FINISHED


@pytest.mark.parametrize("parts", [[], [0], [0, 1], [1, 1]])
def test_a_result_of_other_parts_than_ordered_is_a_failed_attempt(parts: list[int]) -> None:
    story = Story()
    job = story.submit()
    story.beat(B, story.says(job, B, State.FINISHED, result=result(parts)))
    task = story.task(job, B)
    assert (task.state, task.failures) == (State.QUEUE, 1)
    assert "where parts [1] were ordered" in task.causes[0]


# Stopping and recovering.


def test_a_stop_waits_for_the_word_of_every_host() -> None:
    story = Story()
    job = story.submit()
    story.stop(job)
    assert story.told(model.Tell)
    assert story.ordered(A) == story.ordered(B) == []
    assert (story.job(job.job_id).state, story.job(job.job_id).ending) == (State.RUNNING, State.STOPPED)
    story.beat(A, story.says(job, A, State.RUNNING))
    story.beat(B)
    assert story.job(job.job_id).state is State.RUNNING
    story.beat(A, story.says(job, A, State.STOPPED))
    assert story.job(job.job_id).state is State.STOPPED
    assert {task.state for task in story.job(job.job_id).tasks} == {State.STOPPED}


def test_the_end_of_a_lease_stands_for_a_hosts_word() -> None:
    story = Story()
    job = story.submit()
    story.stop(job)
    story.beat(A)
    story.lost(B)
    assert story.job(job.job_id).state is State.STOPPED


def test_a_stop_of_a_waiting_job_is_done_at_once() -> None:
    story = Story()
    story.submit(cut=1)
    waiting = story.submit(cut=2)
    story.stop(waiting)
    assert story.job(waiting.job_id).state is State.STOPPED
    assert not story.told(model.Tell)


def test_a_stop_comes_twice_without_harm_but_not_after_another_end() -> None:
    story = Story()
    job = story.submit()
    story.stop(job)
    story.stop(job)
    story.beat(A)
    story.beat(B)
    story.stop(job)
    assert story.job(job.job_id).state is State.STOPPED
    other = story.submit(cut=2)
    story.finishes(other)
    with pytest.raises(Conflict, match="FINISHED already"):
        story.stop(other)


def test_a_stop_while_the_last_task_finishes_does_not_publish() -> None:
    story = Story()
    job = story.submit()
    story.finishes(job, A)
    story.stop(job)
    story.beat(B, story.says(job, B, State.FINISHED))
    assert story.job(job.job_id).state is State.STOPPED
    assert story.told(model.Publish) == []


def test_a_recovered_job_goes_on_with_the_same_cut_and_new_attempts() -> None:
    story = Story(Rules(max_attempts=1))
    job = story.submit(cut=3)
    story.finishes(job, A)
    story.beat(B, story.says(job, B, State.FAILED, cause="no memory"))
    assert story.job(job.job_id).state is State.FAILED
    story.recover(job)
    again = story.job(job.job_id)
    assert (again.state, again.cut, again.cause, again.finished_ms) == (State.RUNNING, 3, "", 0)
    # The finished one too: nobody ordered its output to be held while the job was over.
    assert story.ordered(A) == [(job.tasks[0].task_id, 2)]
    assert story.ordered(B) == [(job.tasks[1].task_id, 2)]
    story.finishes(again)
    assert story.job(job.job_id).state is State.FINISHED


def test_only_failed_and_stopped_jobs_are_recovered() -> None:
    story = Story()
    job = story.submit()
    with pytest.raises(Conflict, match="is RUNNING"):
        story.recover(job)
    story.finishes(job)
    with pytest.raises(Conflict, match="is FINISHED"):
        story.recover(job)


def test_a_recovery_never_publishes_an_older_state_over_a_newer_one() -> None:
    story = Story()
    old = story.submit(cut=1)
    story.stop(old)
    story.beat(A)
    story.beat(B)
    new = story.submit(cut=2)
    with pytest.raises(Conflict, match=f"job {new.job_id} is RUNNING and builds commit 2"):
        story.recover(old)
    story.finishes(new)
    with pytest.raises(Conflict, match="version 1 shows commit 2 already"):
        story.recover(old)


def test_a_job_that_is_not_there_is_refused_with_the_newest() -> None:
    story = Story()
    with pytest.raises(NotFound, match="job 99 does not exist; there are none"):
        machine.find(story.state, 99)
    story.submit()
    with pytest.raises(NotFound, match="job 99 does not exist; the newest is 1"):
        machine.find(story.state, 99)


# Dropping and forgetting.


def test_a_dropped_space_stops_its_jobs_at_once_and_no_others() -> None:
    story = Story()
    running, waiting, other = story.submit(cut=1), story.submit(cut=2), story.submit(space=2)
    story.drop(1)
    assert [story.job(job.job_id).state for job in (running, waiting, other)] == [State.STOPPED, State.STOPPED, State.RUNNING]
    assert story.ordered(A) == [(story.task(other, A).task_id, 1)]
    assert "dropped" in story.job(running.job_id).cause


def test_ended_jobs_are_forgotten_in_the_end_and_their_ids_never_come_back() -> None:
    story = Story(Rules(keep_jobs_ms=7 * 24 * 3_600_000))
    job = story.submit()
    story.finishes(job)
    story.passes(7 * 24 * 3600 - 1)
    assert story.commands == []
    story.passes(1)
    assert story.commands == [model.Forget(job_id=job.job_id)]
    assert story.state.jobs == {}
    assert story.submit(cut=2).job_id > job.job_id


def test_handling_an_event_never_changes_the_state_it_was_given() -> None:
    story = Story()
    job = story.submit()
    before, copy = story.state, replace(story.state, jobs=dict(story.state.jobs), hosts=dict(story.state.hosts))
    story.finishes(job)
    story.seen(A, incarnation=9)
    assert before == copy

"""What the kinds of jobs have of their own: options, versions that are read, ends without a publication, what is kept of results."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.kit.jobs import A, B, Story, result

from asterism_proto.errors import Conflict, InvalidRequest, NotReady
from asterism_proto.indexes import Index
from metad.jobs import model
from metad.jobs.kinds import KINDS, kind_of, settled
from metad.jobs.model import Job, Rules, State
from metad.jobs.pace import pace
from metad.store import codec
from metad.totals import Element, ExportedFile, Made, PartUnits, Result, TypeAudit


def published(story: Story) -> Job:
    """A build that is over."""
    job = story.submit()
    story.finishes(job)
    assert story.job(job.job_id).version == 1
    return story.job(job.job_id)


# What may be asked.


def test_options_are_part_of_what_a_job_is_and_defaults_are_filled_in() -> None:
    story = Story()
    published(story)
    first = story.submit(kind="export-tables", version=1)
    assert dict(first.options) == {"format": "parquet"}
    assert story.submit(kind="export-tables", version=1, options={"format": "parquet"}).job_id == first.job_id
    both = story.submit(kind="export-tables", version=1, options={"format": "parquet, csv"})
    assert both.job_id != first.job_id
    assert story.submit(kind="export-tables", version=1, options={"format": "csv,parquet"}).job_id == both.job_id
    assert story.submit(kind="export-tables", version=1, options={"to": "s3://bucket/a/"}).options == (("format", "parquet"), ("to", "s3://bucket/a"))


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_key_that_a_kind_does_not_know_is_refused_by_name(kind: str) -> None:
    with pytest.raises(InvalidRequest, match=f"'colour' of a job of kind {kind}"):
        settled(kind_of(kind), {"colour": "red"})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"format": ""}, "format=''"),
        ({"format": "csv,excel"}, "'csv,excel'"),
        ({"to": "folder"}, "to='folder'"),
        ({"to": "://x"}, "expected a protocol"),
        ({"to": "file:///"}, "expected a folder"),
        ({"to": "s3://a\nb"}, "control characters"),
        ({"to": "s3://" + "a" * 2000}, "found 2005"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused_with_it(options: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        settled(kind_of("export-tables"), options)


def test_what_reads_a_version_needs_one_and_what_reads_none_takes_none() -> None:
    story = Story()
    for kind in ("audit", "export-tables"):
        with pytest.raises(NotReady, match="no published version"):
            story.submit(kind=kind)
    published(story)
    for kind in ("build", "compact"):
        with pytest.raises(InvalidRequest, match="version 1"):
            story.submit(kind=kind, version=1)
    assert story.submit(kind="audit", version=1).target_version == 1


def test_a_space_without_a_load_can_be_compacted() -> None:
    assert Story().submit(kind="compact", cut=0).state is State.RUNNING


# How they go.


def test_jobs_of_all_kinds_of_a_space_wait_for_each_other_and_those_of_another_do_not() -> None:
    story = Story()
    published(story)
    jobs = [story.submit(kind="compact"), story.submit(kind="audit", version=1), story.submit(cut=2), story.submit(kind="compact", space=2)]
    assert [story.job(job.job_id).state.name for job in jobs] == ["RUNNING", "QUEUE", "QUEUE", "RUNNING"]
    story.stop(jobs[0])
    story.beat(A)
    story.beat(B)
    assert [story.job(job.job_id).state.name for job in jobs] == ["STOPPED", "RUNNING", "QUEUE", "RUNNING"]


def test_an_audit_ends_without_a_version_and_keeps_what_it_found() -> None:
    story = Story()
    built = published(story)
    job = story.submit(kind="audit", version=1)
    made = Made(audit=(TypeAudit(element=Element.EDGE, type_id=0, count=5, positive=5, weight=5.0, table_tv=1e-17),), files_read=3, bytes_read=99)
    for host in (A, B):
        story.beat(host, story.says(job, host, State.FINISHED, result=replace(result(story.task(job, host).parts), made=made)))
    ended = story.job(job.job_id)
    assert (ended.state, ended.version) == (State.FINISHED, 0)
    assert story.state.published[built.space_id] == model.Published(version=1, cut=1)
    assert story.told(model.Publish) == []
    assert [task.result for task in ended.tasks] == [Result(made=made)] * 2
    last = {command.task_id: command.result for command in story.commands if isinstance(command, model.KeepResult)}
    assert {codec.result_from(codec.result_to(kept)) for kept in last.values()} == {Result(made=made)}
    assert codec.job_from(codec.job_to(ended)).identity == ended.identity


def test_what_a_build_shared_and_made_is_kept_when_its_version_is_published_and_its_totals_are_not() -> None:
    story = Story()
    job = story.submit()
    made = Made(units=(PartUnits(part=0, linked=4, built=2, bytes_linked=900, bytes_built=30),))
    for host in (A, B):
        story.beat(host, story.says(job, host, State.FINISHED, result=replace(result(story.task(job, host).parts), made=made)))
    ended = story.job(job.job_id)
    assert (ended.state, ended.version) == (State.FINISHED, 1)
    assert [task.result for task in ended.tasks] == [Result(made=made)] * 2
    kept = [command for command in story.commands if isinstance(command, model.KeepResult)]
    assert [codec.result_from(codec.result_to(command.result)) for command in kept][-2:] == [Result(made=made)] * 2
    at = {type(command): i for i, command in enumerate(story.commands)}
    assert at[model.Publish] < at[model.KeepResult]  # publishing takes away what tasks reported: what is kept comes after


def test_a_build_that_is_to_link_nothing_is_another_job_than_one_that_may() -> None:
    story = Story()
    usual = story.submit()
    assert usual.options == ()
    anew = story.submit(options={"link": "no"})
    assert (anew.job_id != usual.job_id, anew.options) == (True, (("link", "no"),))
    assert story.submit(options={"link": "no"}).job_id == anew.job_id
    with pytest.raises(InvalidRequest, match="link='yes'"):
        story.submit(options={"link": "yes"})


def test_an_index_job_adds_to_what_the_version_before_has_and_builds_keep_it() -> None:
    story = Story()
    published(story)
    price, brand = (Index(element=1, type_id=0, column=column, kind="range") for column in ("price", "brand"))
    jobs = [story.submit_index(brand), story.submit_index(price), story.submit(cut=2), story.submit_index(brand, cut=2, drop="yes")]
    assert story.submit_index(price).job_id == jobs[1].job_id
    for job, expected in zip(jobs, ((brand,), (brand, price), (brand, price), (price,)), strict=True):
        assert story.job(job.job_id).state is State.RUNNING
        story.finishes(job)
        ended = story.job(job.job_id)
        assert (ended.state, ended.indexes) == (State.FINISHED, expected)
        assert story.state.published[ended.space_id].indexes == expected
        assert codec.job_from(codec.job_to(ended)).indexes == expected
    assert [story.job(job.job_id).version for job in jobs] == [2, 3, 4, 5]


def test_an_index_job_that_was_stopped_leaves_no_index_and_can_be_recovered_beside_another() -> None:
    story = Story()
    published(story)
    price, brand = (Index(element=1, type_id=0, column=column, kind="range") for column in ("price", "brand"))
    stopped, other = story.submit_index(price), story.submit_index(brand)
    story.stop(stopped)
    story.beat(A)
    story.beat(B)
    assert story.job(stopped.job_id).state is State.STOPPED
    story.recover(stopped)
    story.finishes(other)
    assert story.job(other.job_id).indexes == (brand,)
    story.finishes(stopped)
    assert story.job(stopped.job_id).indexes == (brand, price)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"type": "item", "on": "price"}, "option 'kind' is missing"),
        ({"type": "item", "on": " ", "kind": "range"}, "expected a name"),
        ({"type": "item", "on": "price", "kind": "tree"}, "kind='tree': expected hash or range"),
        ({"type": "item", "on": "price", "kind": "hash", "drop": "no"}, "drop='no'"),
    ],
)
def test_an_index_that_is_not_told_whole_is_refused(options: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        settled(kind_of("index"), options)


def test_an_audit_that_finds_copies_that_disagree_fails_with_both_numbers() -> None:
    story = Story()
    published(story)
    job = story.submit(kind="audit", version=1)
    story.beat(A, story.says(job, A, State.FINISHED))
    story.beat(B, story.says(job, B, State.FINISHED, result=result(story.task(job, B).parts, count_in=4)))
    assert story.job(job.job_id).state is State.FAILED
    assert "version 1: edge type n:to:n: 10 out-copies but 9 in-copies" in story.job(job.job_id).cause


@pytest.mark.parametrize("kind", ["audit", "export-tables", "compact"])
def test_a_share_that_is_done_is_not_ordered_again_where_nothing_is_to_be_published(kind: str) -> None:
    story = Story()
    published(story)
    job = story.submit(kind=kind, version=0 if kind == "compact" else 1)
    story.finishes(job, A)
    assert story.ordered(A) == []
    story.seen(A, incarnation=2)
    assert (story.ordered(A), story.task(job, A).state) == ([], State.FINISHED)
    story.finishes(job, B)
    assert story.job(job.job_id).state is State.FINISHED


def test_a_failure_for_good_ends_the_job_at_once_with_its_cause() -> None:
    story = Story(Rules(max_attempts=5))
    published(story)
    job = story.submit(kind="audit", version=1)
    story.beat(B, story.says(job, B, State.RUNNING))
    story.beat(A, story.says(job, A, State.FAILED, cause="mebibyte 3 is not what was written", permanent=True))
    assert story.job(job.job_id).ending is State.FAILED
    story.beat(B)
    assert story.job(job.job_id).state is State.FAILED
    assert story.task(job, A).causes == ("attempt 1: mebibyte 3 is not what was written",)


def test_a_job_that_failed_does_not_go_on_beside_one_that_does_the_same() -> None:
    story = Story(Rules(max_attempts=1))
    first = story.submit(kind="compact")
    story.beat(A, story.says(first, A, State.FAILED, cause="x"))
    story.beat(B)
    second = story.submit(kind="compact")
    with pytest.raises(Conflict, match=f"job {second.job_id} is RUNNING and does the same"):
        story.recover(first)
    story.finishes(second)
    story.recover(first)
    assert story.job(first.job_id).state is State.RUNNING


def test_the_cause_of_every_attempt_is_kept_however_many_are_allowed() -> None:
    story = Story(Rules(max_attempts=40, backoff_limit_ms=1_000))
    job = story.submit()
    for i in range(40):
        story.beat(A, story.says(job, A, State.FAILED, cause=f"reason {i}"))
        story.passes(5)
    story.beat(B)
    assert story.job(job.job_id).state is State.FAILED
    assert story.task(job, A).causes == tuple(f"attempt {i + 1}: reason {i}" for i in range(40))
    assert all(f"reason {i}" in story.job(job.job_id).cause for i in range(40))


def test_a_back_off_does_not_grow_where_the_clock_was_set_back() -> None:
    story = Story()
    job = story.submit()
    story.beat(A, story.says(job, A, State.FAILED, cause="x"))
    story.passes(-3600.0)
    assert story.ordered(A) == [(story.task(job, A).task_id, 2)]


def test_ended_jobs_of_every_kind_are_kept_for_seven_days_and_no_longer() -> None:
    story = Story()
    jobs = [published(story)]
    for kind in ("audit", "export-tables", "compact"):
        jobs.append(story.submit(kind=kind, version=0 if kind == "compact" else 1))
        story.finishes(jobs[-1])
    story.passes(7 * 86_400 - 1)
    assert set(story.state.jobs) == {job.job_id for job in jobs}
    story.passes(1)
    assert story.state.jobs == {}
    assert {command.job_id for command in story.commands if isinstance(command, model.Forget)} == {job.job_id for job in jobs}


# How fast.


def test_a_rate_is_what_lies_between_reports_and_forgets_what_is_long_ago() -> None:
    story = Story()
    job = story.submit(hosts=(A,))
    for second in range(1, 6):
        story.now_ms += 1_000
        story.beat(A, story.says(job, A, State.RUNNING, rows_done=1_000 * second, rows_total=100_000))
    far = pace(story.job(job.job_id))
    assert (far.rows_done, far.rows_total, far.rows_per_s) == (5_000, 100_000, pytest.approx(1_000))
    assert far.left_s == pytest.approx(95)
    for second in range(1, 31):
        story.now_ms += 1_000
        story.beat(A, story.says(job, A, State.RUNNING, rows_done=5_000 + 100 * second, rows_total=100_000))
    assert pace(story.job(job.job_id)).rows_per_s == pytest.approx(100, rel=0.05)


def test_the_slowest_task_says_how_long_a_job_takes_and_an_uncounted_one_that_nobody_knows() -> None:
    story = Story()
    job = story.submit()
    story.now_ms += 2_000
    story.beat(A, story.says(job, A, State.RUNNING, rows_done=200, rows_total=1_000))
    assert (pace(story.job(job.job_id)).rows_per_s, pace(story.job(job.job_id)).left_s) == (100, None)
    story.beat(B, story.says(job, B, State.RUNNING, rows_done=20, rows_total=1_000))
    assert pace(story.job(job.job_id)).rows_per_s == 110
    assert pace(story.job(job.job_id)).left_s == pytest.approx(98)
    story.finishes(job, B)
    assert pace(story.job(job.job_id)).left_s == pytest.approx(8)


def test_a_new_attempt_begins_without_the_rate_of_the_last_one() -> None:
    story = Story()
    job = story.submit(hosts=(A,))
    story.now_ms += 1_000
    story.beat(A, story.says(job, A, State.RUNNING, rows_done=500, rows_total=1_000))
    assert story.task(job, A).rows_per_s == 500
    story.beat(A, story.says(job, A, State.FAILED, cause="x"))
    assert (story.task(job, A).rows_per_s, pace(story.job(job.job_id)).left_s) == (0.0, None)
    story.passes(5)
    story.now_ms += 1_000
    story.beat(A, story.says(job, A, State.RUNNING, rows_done=10, rows_total=1_000))
    assert story.task(job, A).rows_per_s == 10


def test_what_an_export_made_survives_being_written_down() -> None:
    file = ExportedFile(
        path="p00000-n0-weight.csv", part=0, element=Element.NODE, type_id=0, weight_name="weight", format="csv", rows=3, bytes=99, sha256="ab" * 32
    )
    kept = Result(made=Made(folder="exports/a", files=(file,)))
    assert codec.result_from(codec.result_to(kept)) == kept

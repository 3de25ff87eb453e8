"""Tests of the kinds of jobs: options, versions read, unpublished ends, stored results."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.kit.jobs import A, B, Scenario, outcome

from asterism_model.elements import Element
from asterism_model.indexes import Index
from asterism_model.task_results import ExportedFile, PartUnits, TaskResult, TypeAudit
from asterism_proto.errors import Conflict, InvalidRequest, NotReady
from metad.jobs.progress import job_progress
from metad.model import jobs as model
from metad.model.ids import SpaceId
from metad.model.job_kinds import KINDS, find_kind, normalize_options
from metad.model.jobs import Job, JobPolicy, JobState
from metad.model.task_outcomes import TaskOutcome
from metad.wire import record_encoding


def publish_build(scenario: Scenario) -> Job:
    """Return a finished build."""
    job = scenario.submit()
    scenario.report_finished(job)
    assert scenario.job(job.job_id).version == 1
    return scenario.job(job.job_id)


# Accepted requests.


def test_options_identify_a_job_and_defaults_are_filled_in() -> None:
    scenario = Scenario()
    publish_build(scenario)
    first = scenario.submit(kind="export-tables", version=1)
    assert dict(first.options) == {"format": "parquet"}
    assert (
        scenario.submit(kind="export-tables", version=1, options={"format": "parquet"}).job_id
        == first.job_id
    )
    both = scenario.submit(kind="export-tables", version=1, options={"format": "parquet, csv"})
    assert both.job_id != first.job_id
    assert (
        scenario.submit(kind="export-tables", version=1, options={"format": "csv,parquet"}).job_id
        == both.job_id
    )
    assert scenario.submit(
        kind="export-tables", version=1, options={"to": "s3://bucket/a/"}
    ).options == (("format", "parquet"), ("to", "s3://bucket/a"))


@pytest.mark.parametrize("kind", list(KINDS))
def test_unknown_option_is_refused_by_name(kind: str) -> None:
    with pytest.raises(InvalidRequest, match=f"'colour' of a job of kind {kind}"):
        normalize_options(find_kind(kind), {"colour": "red"})


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
def test_invalid_option_value_is_refused_with_the_value(
    options: dict[str, str], words: str
) -> None:
    with pytest.raises(InvalidRequest, match=words):
        normalize_options(find_kind("export-tables"), options)


def test_version_is_required_or_refused_per_job_kind() -> None:
    scenario = Scenario()
    for kind in ("audit", "export-tables"):
        with pytest.raises(NotReady, match="no published version"):
            scenario.submit(kind=kind)
    publish_build(scenario)
    for kind in ("build", "compact"):
        with pytest.raises(InvalidRequest, match="version 1"):
            scenario.submit(kind=kind, version=1)
    assert scenario.submit(kind="audit", version=1).target_version == 1


def test_a_space_without_a_load_can_be_compacted() -> None:
    assert Scenario().submit(kind="compact", watermark=0).state is JobState.RUNNING


# Execution.


def test_jobs_of_all_kinds_queue_per_space() -> None:
    scenario = Scenario()
    publish_build(scenario)
    jobs = [
        scenario.submit(kind="compact"),
        scenario.submit(kind="audit", version=1),
        scenario.submit(watermark=2),
        scenario.submit(kind="compact", space=2),
    ]
    assert [scenario.job(job.job_id).state.name for job in jobs] == [
        "RUNNING",
        "QUEUE",
        "QUEUE",
        "RUNNING",
    ]
    scenario.stop(jobs[0])
    scenario.heartbeat(A)
    scenario.heartbeat(B)
    assert [scenario.job(job.job_id).state.name for job in jobs] == [
        "STOPPED",
        "RUNNING",
        "QUEUE",
        "RUNNING",
    ]


def test_audit_publishes_no_version_and_keeps_its_findings() -> None:
    scenario = Scenario()
    built = publish_build(scenario)
    job = scenario.submit(kind="audit", version=1)
    output = TaskResult(
        audit=(
            TypeAudit(
                element=Element.EDGE, type_id=0, count=5, positive=5, weight=5.0, table_tv=1e-17
            ),
        ),
        files_read=3,
        bytes_read=99,
    )
    for host in (A, B):
        scenario.heartbeat(
            host,
            scenario.make_report(
                job,
                host,
                JobState.FINISHED,
                outcome=replace(outcome(scenario.task(job, host).parts), result=output),
            ),
        )
    ended = scenario.job(job.job_id)
    assert (ended.state, ended.version) == (JobState.FINISHED, 0)
    assert scenario.state.published[built.space_id] == model.CurrentVersion(version=1, watermark=1)
    assert scenario.commands_of(model.PublishVersion) == []
    assert [task.outcome for task in ended.tasks] == [TaskOutcome(result=output)] * 2
    last = {
        command.task_id: command.outcome
        for command in scenario.commands
        if isinstance(command, model.SaveOutcome)
    }
    assert {
        record_encoding.decode_outcome(record_encoding.encode_outcome(stored))
        for stored in last.values()
    } == {TaskOutcome(result=output)}
    assert record_encoding.decode_job(record_encoding.encode_job(ended)).identity == ended.identity


def test_unit_counts_but_not_totals_are_kept_after_publication() -> None:
    scenario = Scenario()
    job = scenario.submit()
    output = TaskResult(
        units=(PartUnits(part=0, linked=4, built=2, bytes_linked=900, bytes_built=30),)
    )
    for host in (A, B):
        scenario.heartbeat(
            host,
            scenario.make_report(
                job,
                host,
                JobState.FINISHED,
                outcome=replace(outcome(scenario.task(job, host).parts), result=output),
            ),
        )
    ended = scenario.job(job.job_id)
    assert (ended.state, ended.version) == (JobState.FINISHED, 1)
    assert [task.outcome for task in ended.tasks] == [TaskOutcome(result=output)] * 2
    saves = [command for command in scenario.commands if isinstance(command, model.SaveOutcome)]
    assert [
        record_encoding.decode_outcome(record_encoding.encode_outcome(command.outcome))
        for command in saves
    ][-2:] == [TaskOutcome(result=output)] * 2
    last_index = {type(command): i for i, command in enumerate(scenario.commands)}
    assert (
        last_index[model.PublishVersion] < last_index[model.SaveOutcome]
    )  # publishing removes the reports of tasks, so the outcome is saved later


def test_build_without_linking_is_a_different_job() -> None:
    scenario = Scenario()
    usual = scenario.submit()
    assert usual.options == ()
    unlinked = scenario.submit(options={"link": "no"})
    assert (unlinked.job_id != usual.job_id, unlinked.options) == (True, (("link", "no"),))
    assert scenario.submit(options={"link": "no"}).job_id == unlinked.job_id
    with pytest.raises(InvalidRequest, match="link='yes'"):
        scenario.submit(options={"link": "yes"})


def test_index_jobs_extend_indexes_and_builds_keep_them() -> None:
    scenario = Scenario()
    publish_build(scenario)
    price, brand = (
        Index(element=1, type_id=0, column=column, kind="range") for column in ("price", "brand")
    )
    jobs = [
        scenario.submit_index(brand),
        scenario.submit_index(price),
        scenario.submit(watermark=2),
        scenario.submit_index(brand, watermark=2, drop="yes"),
    ]
    assert scenario.submit_index(price).job_id == jobs[1].job_id
    for job, expected in zip(
        jobs, ((brand,), (brand, price), (brand, price), (price,)), strict=True
    ):
        assert scenario.job(job.job_id).state is JobState.RUNNING
        scenario.report_finished(job)
        ended = scenario.job(job.job_id)
        assert (ended.state, ended.indexes) == (JobState.FINISHED, expected)
        assert scenario.state.published[ended.space_id].indexes == expected
        assert record_encoding.decode_job(record_encoding.encode_job(ended)).indexes == expected
    assert [scenario.job(job.job_id).version for job in jobs] == [2, 3, 4, 5]


def test_stopped_index_job_leaves_no_index_and_can_recover() -> None:
    scenario = Scenario()
    publish_build(scenario)
    price, brand = (
        Index(element=1, type_id=0, column=column, kind="range") for column in ("price", "brand")
    )
    stopped, other = scenario.submit_index(price), scenario.submit_index(brand)
    scenario.stop(stopped)
    scenario.heartbeat(A)
    scenario.heartbeat(B)
    assert scenario.job(stopped.job_id).state is JobState.STOPPED
    scenario.recover(stopped)
    scenario.report_finished(other)
    assert scenario.job(other.job_id).indexes == (brand,)
    scenario.report_finished(stopped)
    assert scenario.job(stopped.job_id).indexes == (brand, price)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"type": "item", "on": "price"}, "option 'kind' is missing"),
        ({"type": "item", "on": " ", "kind": "range"}, "expected a name"),
        ({"type": "item", "on": "price", "kind": "tree"}, "kind='tree': expected hash or range"),
        ({"type": "item", "on": "price", "kind": "hash", "drop": "no"}, "drop='no'"),
    ],
)
def test_incomplete_or_invalid_index_options_are_refused(
    options: dict[str, str], words: str
) -> None:
    with pytest.raises(InvalidRequest, match=words):
        normalize_options(find_kind("index"), options)


def test_audit_of_disagreeing_copies_fails_with_both_counts() -> None:
    scenario = Scenario()
    publish_build(scenario)
    job = scenario.submit(kind="audit", version=1)
    scenario.heartbeat(A, scenario.make_report(job, A, JobState.FINISHED))
    scenario.heartbeat(
        B,
        scenario.make_report(
            job, B, JobState.FINISHED, outcome=outcome(scenario.task(job, B).parts, count_in=4)
        ),
    )
    assert scenario.job(job.job_id).state is JobState.FAILED
    assert (
        "version 1: edge type n:to:n: 10 out-copies but 9 in-copies"
        in scenario.job(job.job_id).cause
    )


@pytest.mark.parametrize("kind", ["audit", "export-tables", "compact"])
def test_finished_task_is_not_rerun_if_nothing_is_published(kind: str) -> None:
    scenario = Scenario()
    publish_build(scenario)
    job = scenario.submit(kind=kind, version=0 if kind == "compact" else 1)
    scenario.report_finished(job, A)
    assert scenario.assigned_tasks(A) == []
    scenario.host_seen(A, incarnation=2)
    assert (scenario.assigned_tasks(A), scenario.task(job, A).state) == ([], JobState.FINISHED)
    scenario.report_finished(job, B)
    assert scenario.job(job.job_id).state is JobState.FINISHED


def test_permanent_failure_ends_the_job_at_once_with_cause() -> None:
    scenario = Scenario(JobPolicy(max_attempts=5))
    publish_build(scenario)
    job = scenario.submit(kind="audit", version=1)
    scenario.heartbeat(B, scenario.make_report(job, B, JobState.RUNNING))
    scenario.heartbeat(
        A,
        scenario.make_report(
            job, A, JobState.FAILED, cause="mebibyte 3 is not what was written", permanent=True
        ),
    )
    assert scenario.job(job.job_id).ending is JobState.FAILED
    scenario.heartbeat(B)
    assert scenario.job(job.job_id).state is JobState.FAILED
    assert scenario.task(job, A).causes == ("attempt 1: mebibyte 3 is not what was written",)


def test_failed_job_cannot_recover_beside_an_equal_job() -> None:
    scenario = Scenario(JobPolicy(max_attempts=1))
    first = scenario.submit(kind="compact")
    scenario.heartbeat(A, scenario.make_report(first, A, JobState.FAILED, cause="x"))
    scenario.heartbeat(B)
    second = scenario.submit(kind="compact")
    with pytest.raises(Conflict, match=f"job {second.job_id} is RUNNING and does the same"):
        scenario.recover(first)
    scenario.report_finished(second)
    scenario.recover(first)
    assert scenario.job(first.job_id).state is JobState.RUNNING


def test_causes_of_all_attempts_are_kept() -> None:
    scenario = Scenario(JobPolicy(max_attempts=40, backoff_limit_ms=1_000))
    job = scenario.submit()
    for i in range(40):
        scenario.heartbeat(A, scenario.make_report(job, A, JobState.FAILED, cause=f"reason {i}"))
        scenario.advance_clock(5)
    scenario.heartbeat(B)
    assert scenario.job(job.job_id).state is JobState.FAILED
    assert scenario.task(job, A).causes == tuple(f"attempt {i + 1}: reason {i}" for i in range(40))
    assert all(f"reason {i}" in scenario.job(job.job_id).cause for i in range(40))


def test_backoff_does_not_grow_if_the_clock_is_set_back() -> None:
    scenario = Scenario()
    job = scenario.submit()
    scenario.heartbeat(A, scenario.make_report(job, A, JobState.FAILED, cause="x"))
    scenario.advance_clock(-3600.0)
    assert scenario.assigned_tasks(A) == [(scenario.task(job, A).task_id, 2)]


def test_ended_jobs_of_every_kind_expire_after_seven_days() -> None:
    scenario = Scenario()
    submitted = [publish_build(scenario)]
    for kind in ("audit", "export-tables", "compact"):
        submitted.append(scenario.submit(kind=kind, version=0 if kind == "compact" else 1))
        scenario.report_finished(submitted[-1])
    scenario.advance_clock(7 * 86_400 - 1)
    assert set(scenario.state.jobs) == {job.job_id for job in submitted}
    scenario.advance_clock(1)
    assert scenario.state.jobs == {}
    assert {
        command.job_id for command in scenario.commands if isinstance(command, model.DeleteJob)
    } == {job.job_id for job in submitted}


# Speed.


def test_rate_follows_recent_reports() -> None:
    scenario = Scenario()
    job = scenario.submit(hosts=(A,))
    for second in range(1, 6):
        scenario.now_ms += 1_000
        scenario.heartbeat(
            A,
            scenario.make_report(
                job, A, JobState.RUNNING, rows_done=1_000 * second, rows_total=100_000
            ),
        )
    progress = job_progress(scenario.job(job.job_id))
    assert (progress.rows_done, progress.rows_total, progress.rows_per_s) == (
        5_000,
        100_000,
        pytest.approx(1_000),
    )
    assert progress.eta_s == pytest.approx(95)
    for second in range(1, 31):
        scenario.now_ms += 1_000
        scenario.heartbeat(
            A,
            scenario.make_report(
                job, A, JobState.RUNNING, rows_done=5_000 + 100 * second, rows_total=100_000
            ),
        )
    assert job_progress(scenario.job(job.job_id)).rows_per_s == pytest.approx(100, rel=0.05)


def test_slowest_task_determines_the_remaining_time() -> None:
    scenario = Scenario()
    job = scenario.submit()
    scenario.now_ms += 2_000
    scenario.heartbeat(
        A, scenario.make_report(job, A, JobState.RUNNING, rows_done=200, rows_total=1_000)
    )
    assert (
        job_progress(scenario.job(job.job_id)).rows_per_s,
        job_progress(scenario.job(job.job_id)).eta_s,
    ) == (100, None)
    scenario.heartbeat(
        B, scenario.make_report(job, B, JobState.RUNNING, rows_done=20, rows_total=1_000)
    )
    assert job_progress(scenario.job(job.job_id)).rows_per_s == 110
    assert job_progress(scenario.job(job.job_id)).eta_s == pytest.approx(98)
    scenario.report_finished(job, B)
    assert job_progress(scenario.job(job.job_id)).eta_s == pytest.approx(8)


def test_new_attempt_starts_without_the_previous_rate() -> None:
    scenario = Scenario()
    job = scenario.submit(hosts=(A,))
    scenario.now_ms += 1_000
    scenario.heartbeat(
        A, scenario.make_report(job, A, JobState.RUNNING, rows_done=500, rows_total=1_000)
    )
    assert scenario.task(job, A).rows_per_s == 500
    scenario.heartbeat(A, scenario.make_report(job, A, JobState.FAILED, cause="x"))
    assert (scenario.task(job, A).rows_per_s, job_progress(scenario.job(job.job_id)).eta_s) == (
        0.0,
        None,
    )
    scenario.advance_clock(5)
    scenario.now_ms += 1_000
    scenario.heartbeat(
        A, scenario.make_report(job, A, JobState.RUNNING, rows_done=10, rows_total=1_000)
    )
    assert scenario.task(job, A).rows_per_s == 10


def test_exported_files_survive_a_storage_round_trip() -> None:
    file = ExportedFile(
        path="p00000-n0-weight.csv",
        part=0,
        element=Element.NODE,
        type_id=0,
        weight_name="weight",
        format="csv",
        rows=3,
        bytes=99,
        sha256="ab" * 32,
    )
    stored = TaskOutcome(result=TaskResult(folder="exports/a", files=(file,)))
    assert record_encoding.decode_outcome(record_encoding.encode_outcome(stored)) == stored


def test_declared_indexes_are_in_every_version() -> None:
    declared = Index(element=1, type_id=0, column="id", kind="range")
    scenario = Scenario()
    scenario.feed(
        model.SubmitJob(
            now_ms=scenario.now_ms,
            space_id=SpaceId(1),
            space="space-1",
            kind="build",
            watermark=1,
            shares=(model.HostParts(host=A, parts=(0,)),),
            paired=(),
            declared=(declared,),
        )
    )
    (job,) = scenario.state.jobs.values()
    assert job.indexes == (declared,)


def test_rate_starts_again_if_rows_decrease() -> None:
    scenario = Scenario()
    job = scenario.submit(hosts=(A,))
    for rows_done, rate in ((1_000, 1_000.0), (100, 0.0), (300, 200.0)):
        scenario.now_ms += 1_000
        scenario.heartbeat(
            A,
            scenario.make_report(job, A, JobState.RUNNING, rows_done=rows_done, rows_total=10_000),
        )
        assert scenario.task(job, A).rows_per_s == rate


def test_remaining_time_is_unknown_while_a_task_waits() -> None:
    scenario = Scenario()
    job = scenario.submit()
    for host in (A, B):
        scenario.now_ms += 1_000
        scenario.heartbeat(
            host,
            scenario.make_report(job, host, JobState.RUNNING, rows_done=100, rows_total=1_000),
        )
    assert job_progress(scenario.job(job.job_id)).eta_s is not None
    scenario.heartbeat(A, scenario.make_report(job, A, JobState.FAILED, cause="x"))
    progress = job_progress(scenario.job(job.job_id))
    assert (progress.has_total, progress.eta_s) == (True, None)

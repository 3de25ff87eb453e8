"""Conversion of `metad.model.jobs` records to messages and back: jobs, tasks and results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from asterism_io.remote_storage import redact
from asterism_model.partition_stats import PartitionStats
from asterism_model.task_results import TaskResult
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from metad.jobs.progress import job_progress, task_eta_s
from metad.model.ids import TaskId
from metad.model.job_kinds import redacted_options
from metad.model.jobs import Job, JobState, Task, TaskReport
from metad.model.task_outcomes import TaskOutcome
from metad.wire.catalog import image_from_proto, image_to_proto


def job_to_proto(job: Job, *, files: bool = True) -> common_pb.Job:
    """Return a job as a message, with its tasks.

    ``files=False`` leaves out what grows with partitions (exported files, built units), for
    lists."""
    progress = job_progress(job)
    return common_pb.Job(
        job_id=job.job_id,
        space_id=job.space_id,
        space=job.space,
        kind=job.kind,
        state=job.state.name,
        watermark=job.watermark,
        version=job.version,
        submitted_ms=job.submitted_ms,
        started_ms=job.started_ms,
        finished_ms=job.finished_ms,
        cause=job.cause,
        tasks=[_task_to_proto(job, task, files=files) for task in job.tasks],
        options=redacted_options(job.options),
        target_version=job.target_version,
        rows_done=progress.rows_done,
        rows_total=progress.rows_total,
        rows_per_s=progress.rows_per_s or 0.0,
        eta_s=progress.eta_s or 0.0,
        ending=job.ending.name if job.ending else None,
    )


def _task_to_proto(job: Job, task: Task, *, files: bool) -> common_pb.Task:
    return common_pb.Task(
        task_id=task.task_id,
        job_id=job.job_id,
        host=task.host,
        attempt=task.attempt,
        state=task.state.name,
        phase=task.phase,
        rows_done=task.rows_done,
        rows_total=task.rows_total,
        causes=task.causes,
        started_ms=task.started_ms,
        finished_ms=task.finished_ms,
        parts=task.parts,
        rows_per_s=task.rows_per_s,
        eta_s=task_eta_s(task) or 0.0,
        retry_at_ms=task.retry_at_ms if task.state is JobState.QUEUE else 0,
        result=_shown_result(task.outcome.result, files=files).to_proto()
        if task.outcome is not None and task.outcome.result != TaskResult()
        else None,
    )


def _shown_result(result: TaskResult, *, files: bool) -> TaskResult:
    return result if files else replace(result, files=(), units=())


def outcome_to_proto(outcome: TaskOutcome) -> common_pb.TaskResult:
    """Return a task's outcome as it is stored: its result, with totals and images."""
    message = outcome.result.to_proto()
    message.totals.extend(stats.to_proto() for stats in outcome.totals)
    message.images.extend(image_to_proto(image) for image in outcome.images)
    return message


def outcome_from_proto(message: common_pb.TaskResult) -> TaskOutcome:
    """Return a task's outcome that was stored."""
    return _outcome(message.totals, message.images, message)


def _outcome(
    totals: Iterable[common_pb.PartitionStats],
    images: Iterable[common_pb.PartImage],
    result: common_pb.TaskResult,
) -> TaskOutcome:
    task_result = TaskResult.from_proto(result)
    return TaskOutcome(
        totals=tuple(map(PartitionStats.from_proto, totals)),
        images=tuple(map(image_from_proto, images)),
        result=replace(task_result, folder=redact(task_result.folder)),
    )


def states_from_proto(values: Iterable[int]) -> frozenset[JobState]:
    """Return the job states in a request; InvalidRequest for an unknown one."""
    states = set()
    for value in values:
        try:
            states.add(JobState(value))
        except ValueError as error:
            expected = ", ".join(f"{state.name} ({state.value})" for state in JobState)
            raise InvalidRequest(f"job state {value}: expected one of {expected}") from error
    return frozenset(states)


def task_report_from_proto(message: metad_pb.TaskReport) -> TaskReport:
    """Return a storaged's report on a task."""
    try:
        state = JobState(message.state)
    except ValueError as error:
        raise InvalidRequest(
            f"task {message.task_id}: state {message.state}: expected RUNNING, FINISHED, FAILED "
            "or STOPPED"
        ) from error
    outcome = None
    if state is JobState.FINISHED:
        outcome = _outcome(message.totals, message.images, message.result)
    return TaskReport(
        task_id=TaskId(message.task_id),
        attempt=message.attempt,
        state=state,
        phase=message.phase,
        rows_done=message.rows_done,
        rows_total=message.rows_total,
        cause=redact(message.cause),
        permanent=message.permanent,
        outcome=outcome,
    )

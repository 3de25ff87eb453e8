"""Jobs, tasks and what they made as messages, and messages as our records: `metad.wire.catalog` for
all that a job is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from asterism_io.remote_storage import redact
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.v1 import metad_pb2 as mpb
from metad.jobs.progress import job_progress, task_eta_s
from metad.model.ids import TaskId
from metad.model.job_kinds import redacted_options
from metad.model.jobs import Job, JobState, Task, TaskReport
from metad.model.task_results import ExportedFile, PartUnits, TaskOutput, TaskResult, TypeAudit
from metad.wire.catalog import (
    element_from_proto,
    image_from_proto,
    image_to_proto,
    stats_from_proto,
    stats_to_proto,
)


def job_to_proto(job: Job, *, files: bool = True) -> pb.Job:
    """A job as it travels, with its tasks; in lists without what grows with its parts: files that
    it exported, units that it built.
    """
    progress = job_progress(job)
    return pb.Job(
        job_id=job.job_id,
        space_id=job.space_id,
        space=job.space,
        kind=job.kind,
        state=job.state.name,
        cut=job.cut,
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


def _task_to_proto(job: Job, task: Task, *, files: bool) -> pb.Task:
    return pb.Task(
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
        result=_output_to_proto(task.result.output, files=files)
        if task.result is not None and task.result.output != TaskOutput()
        else None,
    )


def _output_to_proto(output: TaskOutput, *, files: bool = True) -> pb.TaskResult:
    return pb.TaskResult(
        audit=[
            pb.TypeAudit(
                element=audit.element.name,
                type_id=audit.type_id,
                count=audit.count,
                positive=audit.positive,
                weight=audit.weight,
                table_tv=audit.table_tv,
                table_rel=audit.table_rel,
                alias_rows=audit.alias_rows,
                row_tv=audit.row_tv,
                row_rel=audit.row_rel,
                underflow=audit.underflow,
            )
            for audit in output.audit
        ],
        files_read=output.files_read,
        bytes_read=output.bytes_read,
        folder=output.folder,
        files=[
            pb.ExportedFile(
                path=file.path,
                part=file.part,
                element=file.element.name,
                type_id=file.type_id,
                weight_name=file.weight_name,
                format=file.format,
                rows=file.rows,
                bytes=file.bytes,
                sha256=file.sha256,
            )
            for file in output.files
        ]
        if files
        else (),
        bytes_before=output.bytes_before,
        bytes_after=output.bytes_after,
        units=[pb.PartUnits(**asdict(units)) for units in output.units] if files else (),
    )


def _output_from_proto(message: pb.TaskResult) -> TaskOutput:
    return TaskOutput(
        audit=tuple(
            TypeAudit(
                element=element_from_proto("an audit", audit.element),
                type_id=audit.type_id,
                count=audit.count,
                positive=audit.positive,
                weight=audit.weight,
                table_tv=audit.table_tv,
                table_rel=audit.table_rel,
                alias_rows=audit.alias_rows,
                row_tv=audit.row_tv,
                row_rel=audit.row_rel,
                underflow=audit.underflow,
            )
            for audit in message.audit
        ),
        files_read=message.files_read,
        bytes_read=message.bytes_read,
        folder=redact(message.folder),
        files=tuple(
            ExportedFile(
                path=file.path,
                part=file.part,
                element=element_from_proto(f"exported file {file.path}", file.element),
                type_id=file.type_id,
                weight_name=file.weight_name,
                format=file.format,
                rows=file.rows,
                bytes=file.bytes,
                sha256=file.sha256,
            )
            for file in message.files
        ),
        bytes_before=message.bytes_before,
        bytes_after=message.bytes_after,
        units=tuple(
            PartUnits(
                part=units.part,
                linked=units.linked,
                built=units.built,
                bytes_linked=units.bytes_linked,
                bytes_built=units.bytes_built,
            )
            for units in message.units
        ),
    )


def result_to_proto(result: TaskResult) -> pb.TaskResult:
    """A task's result as it is kept."""
    message = _output_to_proto(result.output)
    message.totals.extend(stats_to_proto(stats) for stats in result.totals)
    message.images.extend(image_to_proto(image) for image in result.images)
    return message


def result_from_proto(message: pb.TaskResult) -> TaskResult:
    """A task's result that was kept."""
    return TaskResult(
        totals=tuple(stats_from_proto(stats) for stats in message.totals),
        images=tuple(image_from_proto(image) for image in message.images),
        output=_output_from_proto(message),
    )


def states_from_proto(values: Iterable[int]) -> frozenset[JobState]:
    """Job states that a client names; InvalidRequest for one that there is not."""
    states = set()
    for value in values:
        try:
            states.add(JobState(value))
        except ValueError as error:
            expected = ", ".join(f"{state.name} ({state.value})" for state in JobState)
            raise InvalidRequest(f"job state {value}: expected some of {expected}") from error
    return frozenset(states)


def task_report_from_proto(message: mpb.TaskReport) -> TaskReport:
    """A storaged's word on a task."""
    try:
        state = JobState(message.state)
    except ValueError as error:
        raise InvalidRequest(
            f"task {message.task_id}: state {message.state}; expected RUNNING, FINISHED, "
            "FAILED or STOPPED"
        ) from error
    result = None
    if state is JobState.FINISHED:
        result = TaskResult(
            totals=tuple(stats_from_proto(stats) for stats in message.totals),
            images=tuple(image_from_proto(image) for image in message.images),
            output=_output_from_proto(message.result),
        )
    return TaskReport(
        task_id=TaskId(message.task_id),
        attempt=message.attempt,
        state=state,
        phase=message.phase,
        rows_done=message.rows_done,
        rows_total=message.rows_total,
        cause=redact(message.cause),
        permanent=message.permanent,
        result=result,
    )

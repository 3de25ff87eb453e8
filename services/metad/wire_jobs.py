"""Jobs, tasks and what they made as messages, and messages as our records: `metad.wire` for all that a job is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from asterism_proto.errors import InvalidRequest
from asterism_proto.places import redacted
from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.v1 import metad_pb2 as mpb
from metad.ids import TaskId
from metad.jobs.kinds import shown
from metad.jobs.model import Job, Report, State, Task
from metad.jobs.pace import left_s, pace
from metad.totals import ExportedFile, Made, PartUnits, Result, TypeAudit
from metad.wire import element_of, image_of, image_to, total_of, total_to


def job_to(job: Job, *, files: bool = True) -> pb.Job:
    """A job as it travels, with its tasks; in lists without what grows with its parts: files that it exported, units that it built."""
    far = pace(job)
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
        tasks=[_task_to(job, task, files=files) for task in job.tasks],
        options=shown(job.options),
        target_version=job.target_version,
        rows_done=far.rows_done,
        rows_total=far.rows_total,
        rows_per_s=far.rows_per_s or 0.0,
        eta_s=far.left_s or 0.0,
        ending=job.ending.name if job.ending else None,
    )


def _task_to(job: Job, task: Task, *, files: bool) -> pb.Task:
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
        eta_s=left_s(task) or 0.0,
        retry_at_ms=task.retry_at_ms if task.state is State.QUEUE else 0,
        result=_made_to(task.result.made, files=files) if task.result is not None and task.result.made != Made() else None,
    )


def _made_to(made: Made, *, files: bool = True) -> pb.TaskResult:
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
            for audit in made.audit
        ],
        files_read=made.files_read,
        bytes_read=made.bytes_read,
        folder=made.folder,
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
            for file in made.files
        ]
        if files
        else (),
        bytes_before=made.bytes_before,
        bytes_after=made.bytes_after,
        units=[pb.PartUnits(**asdict(units)) for units in made.units] if files else (),
    )


def _made_of(message: pb.TaskResult) -> Made:
    return Made(
        audit=tuple(
            TypeAudit(
                element=element_of("an audit", audit.element),
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
        folder=redacted(message.folder),
        files=tuple(
            ExportedFile(
                path=file.path,
                part=file.part,
                element=element_of(f"exported file {file.path}", file.element),
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


def result_to(result: Result) -> pb.TaskResult:
    """A task's result as it is kept."""
    message = _made_to(result.made)
    message.totals.extend(total_to(total) for total in result.totals)
    message.images.extend(image_to(image) for image in result.images)
    return message


def result_of(message: pb.TaskResult) -> Result:
    """A task's result that was kept."""
    return Result(
        totals=tuple(total_of(total) for total in message.totals),
        images=tuple(image_of(image) for image in message.images),
        made=_made_of(message),
    )


def states_of(values: Iterable[int]) -> frozenset[State]:
    """Job states that a client names; InvalidRequest for one that there is not."""
    found = set()
    for value in values:
        try:
            found.add(State(value))
        except ValueError as error:
            known = ", ".join(f"{state.name} ({state.value})" for state in State)
            raise InvalidRequest(f"job state {value}: expected some of {known}") from error
    return frozenset(found)


def report_of(message: mpb.TaskReport) -> Report:
    """A storaged's word on a task."""
    try:
        state = State(message.state)
    except ValueError as error:
        raise InvalidRequest(f"task {message.task_id}: state {message.state}; expected RUNNING, FINISHED, FAILED or STOPPED") from error
    result = None
    if state is State.FINISHED:
        result = Result(
            totals=tuple(total_of(total) for total in message.totals),
            images=tuple(image_of(image) for image in message.images),
            made=_made_of(message.result),
        )
    return Report(
        task_id=TaskId(message.task_id),
        attempt=message.attempt,
        state=state,
        phase=message.phase,
        rows_done=message.rows_done,
        rows_total=message.rows_total,
        cause=redacted(message.cause),
        permanent=message.permanent,
        result=result,
    )

"""Requests of users: submit, stop, recover, and dropping a space."""

from __future__ import annotations

from dataclasses import replace

from asterism_proto.errors import Conflict, InvalidRequest, NotReady
from metad.jobs.progress import without_rate
from metad.jobs.state_machine.scheduling import ended_job
from metad.jobs.state_machine.transition import Transition, find_job
from metad.model import jobs
from metad.model.ids import JobId, SpaceId, TaskId
from metad.model.job_kinds import find_kind, normalize_options
from metad.model.jobs import Job, JobState, Task


def submit(transition: Transition, event: jobs.SubmitJob) -> None:
    """Create a job, or return the identical one in flight."""
    kind = find_kind(event.kind)
    options = normalize_options(kind, event.options)
    if event.version and not (kind.reads_version or kind.restores):
        raise InvalidRequest(
            f"version {event.version}: a job of kind {event.kind} does not read a version; omit it"
        )
    if kind.publishes and not kind.restores and event.watermark == 0:
        raise NotReady(f"space {event.space!r} has no committed load; load data first")
    if kind.reads_version and event.version == 0:
        raise NotReady(
            f"space {event.space!r} has no published version for {event.kind}; submit a build first"
        )
    tasks = tuple(
        Task(task_id=TaskId(transition.next_task + i), host=share.host, parts=share.parts)
        for i, share in enumerate(event.shares)
    )
    job = Job(
        job_id=JobId(transition.next_job),
        space_id=event.space_id,
        space=event.space,
        kind=event.kind,
        watermark=event.watermark,
        paired=event.paired,
        tasks=tasks,
        submitted_ms=event.now_ms,
        options=options,
        index=event.index,
        indexes=event.indexes,
        declared=event.declared,
        target_version=event.version,
        principal=event.principal,
    )
    duplicate = next(
        (
            other
            for other in transition.jobs.values()
            if other.identity == job.identity and not other.state.is_final and other.ending is None
        ),
        None,
    )
    if duplicate is not None:
        transition.commands.append(jobs.ReturnJob(job_id=duplicate.job_id))
        return
    transition.next_job += 1
    transition.next_task += len(tasks)
    transition.put_job(job)
    transition.commands.append(jobs.ReturnJob(job_id=job.job_id))


def stop(transition: Transition, job_id: JobId) -> None:
    """Request that a job stop; it is STOPPED once no host works on it any more."""
    job = find_job(transition.before, job_id)
    if job.state is JobState.STOPPED or job.ending is not None:
        return
    if job.state.is_final:
        raise Conflict(f"job {job_id} is {job.state.name} already and cannot be stopped")
    if job.state is JobState.QUEUE:
        transition.put_job(ended_job(transition, job, JobState.STOPPED, "stopped on request"))
    else:
        transition.put_job(replace(job, ending=JobState.STOPPED, cause="stopped on request"))


def recover(transition: Transition, job_id: JobId, principal: str) -> None:
    """Queue a failed or stopped job again, with the same input."""
    job = find_job(transition.before, job_id)
    if job.state not in (JobState.FAILED, JobState.STOPPED):
        raise Conflict(
            f"job {job_id} is {job.state.name}: only FAILED and STOPPED jobs can be recovered"
        )
    publishes = find_kind(job.kind).publishes
    current = transition.published.get(job.space_id)
    if publishes and current is not None and current.watermark > job.watermark:
        raise Conflict(
            f"job {job_id} builds commit {job.watermark}, but version {current.version} contains "
            f"commit {current.watermark} already; submit a new job"
        )
    for other in transition.jobs.values():
        if (
            other.state.is_final
            or other.ending is not None
            or (other.space_id, other.kind) != (job.space_id, job.kind)
        ):
            continue
        if publishes and other.watermark >= job.watermark and other.index == job.index:
            raise Conflict(
                f"job {other.job_id} is {other.state.name} and builds commit {other.watermark}; "
                f"recovering job {job_id} would change nothing"
            )
        if other.identity == job.identity:
            raise Conflict(
                f"job {other.job_id} is {other.state.name} and does the same; recovering job "
                f"{job_id} would change nothing"
            )
    transition.put_job(
        replace(
            job,
            state=JobState.QUEUE,
            cause="",
            finished_ms=0,
            principal=principal,
            tasks=tuple(_reset_task(task) for task in job.tasks),
        )
    )


def _reset_task(task: Task) -> Task:
    """Return a task of a recovered job in its initial state.

    Finished tasks are reset too: while the job was over, no assignment kept their output, so it
    may be gone. A host that still holds the output reports it at once."""
    return replace(
        without_rate(task),
        state=JobState.QUEUE,
        failures=0,
        losses=0,
        retry_at_ms=0,
        phase="",
        rows_done=0,
        finished_ms=0,
        outcome=None,
    )


def on_space_dropped(transition: Transition, space_id: SpaceId) -> None:
    """Stop the jobs of a dropped space."""
    transition.published = {
        key: value for key, value in transition.published.items() if key != space_id
    }
    for job in list(transition.jobs.values()):
        if job.space_id == space_id and not job.state.is_final:
            # No confirmation of hosts is needed: space ids are never reused, so a task that still
            # runs can do no harm.
            transition.put_job(
                ended_job(transition, job, JobState.STOPPED, f"space {job.space!r} was dropped")
            )

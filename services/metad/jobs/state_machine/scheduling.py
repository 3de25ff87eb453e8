"""Scheduling: next attempts, publications, ends and starts of jobs, and timeouts."""

from __future__ import annotations

from dataclasses import replace

from asterism_model.indexes import Index
from metad.jobs.progress import without_rate
from metad.jobs.state_machine.host_events import backoff_ms
from metad.jobs.state_machine.transition import Transition
from metad.model import jobs
from metad.model.job_kinds import find_kind
from metad.model.jobs import Job, JobState, Task
from metad.model.task_outcomes import TaskOutcome, copy_mismatch


def advance_jobs(transition: Transition) -> None:
    """Move every job as far as the facts allow."""
    for job in list(transition.jobs.values()):
        if job.state is JobState.RUNNING:
            _advance_job(transition, job)
    _start_next_jobs(transition)


def _advance_job(transition: Transition, job: Job) -> None:
    """Advance a running job: end it, publish its version, or assign further attempts."""
    if job.ending is not None:
        if all(_is_released(transition, task) for task in job.tasks):
            transition.put_job(ended_job(transition, job, job.ending, job.cause))
    elif all(task.state is JobState.FINISHED for task in job.tasks):
        (_publish_version if find_kind(job.kind).publishes else _finish_job)(transition, job)
    else:
        _assign_tasks(transition, job)


def _is_released(transition: Transition, task: Task) -> bool:
    """Return whether no host works on the task any more.

    It was never assigned, its host confirmed, or its host's lease is over."""
    return task.state is not JobState.RUNNING or not transition.is_online(task.host)


def _assign_tasks(transition: Transition, job: Job) -> None:
    for task in job.tasks:
        if (
            task.state is JobState.QUEUE
            and _is_due(transition, task)
            and transition.is_online(task.host)
        ):
            attempt = replace(
                without_rate(task),
                state=JobState.RUNNING,
                attempt=task.attempt + 1,
                incarnation=transition.hosts[task.host].incarnation,
                phase="assigned",
                rows_done=0,
                measured_ms=transition.now_ms,
                started_ms=transition.now_ms,
            )
            job = transition.put_task(job, attempt)


def _is_due(transition: Transition, task: Task) -> bool:
    """Return whether a task's back-off is over.

    If more than the full back-off remains, the clock was set back, and the task is due."""
    remaining_ms = task.retry_at_ms - transition.now_ms
    return remaining_ms <= 0 or remaining_ms > backoff_ms(transition.policy, task)


def _combined_outcome(job: Job) -> TaskOutcome:
    """Return the totals and images of all tasks of a job, by partition."""
    outcomes = [task.outcome for task in job.tasks if task.outcome is not None]
    return TaskOutcome(
        totals=tuple(
            sorted(
                (t for outcome in outcomes for t in outcome.totals),
                key=lambda t: (t.element.number, t.type_id, t.part, t.weight_name),
            )
        ),
        images=tuple(
            sorted((i for outcome in outcomes for i in outcome.images), key=lambda i: i.part)
        ),
    )


def _finish_job(transition: Transition, job: Job) -> None:
    """Finish a job that publishes nothing; keep the results of its tasks.

    The job fails if its tasks report that out- and in-copies differ."""
    mismatch = copy_mismatch(_combined_outcome(job).totals, job.paired) if job.paired else ""
    if mismatch:
        transition.put_job(
            ended_job(transition, job, JobState.FAILED, f"version {job.target_version}: {mismatch}")
        )
        return
    job = _with_results_only(ended_job(transition, job, JobState.FINISHED, ""))
    transition.put_job(job)
    _save_outcomes(transition, job)


def _with_results_only(job: Job) -> Job:
    """Return the job without totals and images, which are needed only until it ends."""
    return replace(
        job,
        tasks=tuple(
            replace(task, outcome=TaskOutcome(result=task.outcome.result))
            if task.outcome is not None
            else task
            for task in job.tasks
        ),
    )


def _save_outcomes(transition: Transition, job: Job) -> None:
    for task in job.tasks:
        if task.outcome is not None:
            transition.commands.append(
                jobs.SaveOutcome(job_id=job.job_id, task_id=task.task_id, outcome=task.outcome)
            )


def _publish_version(transition: Transition, job: Job) -> None:
    outcome = _combined_outcome(job)
    mismatch = copy_mismatch(outcome.totals, job.paired) if job.paired else ""
    if mismatch:
        transition.put_job(
            ended_job(transition, job, JobState.FAILED, f"not published: {mismatch}")
        )
        return
    current = transition.published.get(job.space_id)
    version = (
        job.target_version
        if find_kind(job.kind).restores
        else current.version + 1
        if current
        else 1
    )
    job = replace(
        _with_results_only(ended_job(transition, job, JobState.FINISHED, "")), version=version
    )
    transition.put_job(job)
    transition.published = {
        **transition.published,
        job.space_id: jobs.CurrentVersion(
            version=version, watermark=job.watermark, indexes=job.indexes
        ),
    }
    transition.commands.append(jobs.PublishVersion(job=job, outcome=outcome))
    _save_outcomes(transition, job)


def _start_next_jobs(transition: Transition) -> None:
    """Start the oldest waiting job of each idle space."""
    busy_spaces = {
        job.space_id for job in transition.jobs.values() if job.state is JobState.RUNNING
    }
    queued = [job for job in transition.jobs.values() if job.state is JobState.QUEUE]
    for job in sorted(queued, key=lambda job: (job.watermark, job.job_id)):
        if job.space_id not in busy_spaces:
            busy_spaces.add(job.space_id)
            job = replace(
                job,
                state=JobState.RUNNING,
                started_ms=transition.now_ms,
                indexes=_version_indexes(transition, job),
            )
            transition.put_job(job)
            _assign_tasks(transition, job)


def _version_indexes(transition: Transition, job: Job) -> tuple[Index, ...]:
    """Return the indexes of the version that a job produces.

    These are the indexes of the schema and of the previous version, plus or minus the one that
    an index job changes."""
    if not find_kind(job.kind).publishes or find_kind(job.kind).restores:
        return job.indexes
    current = transition.published.get(job.space_id)
    other_indexes = {*job.declared, *(current.indexes if current is not None else ())} - {job.index}
    return tuple(
        sorted(
            other_indexes
            if job.index is None or ("drop", "yes") in job.options
            else other_indexes | {job.index}
        )
    )


def ended_job(transition: Transition, job: Job, state: JobState, cause: str) -> Job:
    """Return ``job`` in its end state; waiting and running tasks are stopped."""
    tasks = tuple(
        replace(without_rate(task), state=JobState.STOPPED, finished_ms=transition.now_ms)
        if not task.state.is_final
        else task
        for task in job.tasks
    )
    return replace(
        job, state=state, ending=None, cause=cause, finished_ms=transition.now_ms, tasks=tasks
    )


def tick(transition: Transition) -> None:
    """Delete old jobs, and fail those that have waited too long for a host."""
    for job in list(transition.jobs.values()):
        if (
            job.state.is_final
            and transition.now_ms - job.finished_ms >= transition.policy.keep_jobs_ms
        ):
            transition.delete_job(job.job_id)
        elif job.state is JobState.RUNNING and job.ending is None:
            for task in job.tasks:
                away_ms = _away_ms(transition, job, task)
                if away_ms >= transition.policy.away_limit_ms:
                    cause = (
                        f"the storaged of partitions {', '.join(map(str, task.parts))} has been "
                        f"offline for {away_ms // 1000} s; start it and recover the job"
                    )
                    transition.put_job(replace(job, ending=JobState.FAILED, cause=cause))
                    break


def _away_ms(transition: Transition, job: Job, task: Task) -> int:
    """Return how long an unfinished task has waited for its host, in milliseconds."""
    if task.state is JobState.FINISHED or transition.is_online(task.host):
        return 0
    host_status = transition.hosts.get(task.host)
    return transition.now_ms - max(job.started_ms, host_status.since_ms if host_status else 0)

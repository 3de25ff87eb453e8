"""Events of hosts (arrival, loss, task reports) and failed attempts."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from metad.jobs.progress import with_rate, without_rate
from metad.jobs.state_machine.transition import Transition
from metad.model import jobs
from metad.model.ids import HostId
from metad.model.job_kinds import find_kind
from metad.model.jobs import Job, JobPolicy, JobState, Task
from metad.model.task_outcomes import TaskOutcome, coverage_fault

_LONGEST_CAUSE = 2000


def on_host_seen(transition: Transition, event: jobs.HostSeen) -> None:
    """Mark a storaged as online; the running tasks of an earlier start of it are lost."""
    current = transition.hosts.get(event.host)
    if current is not None and event.incarnation < current.incarnation:
        return
    transition.hosts = {
        **transition.hosts,
        event.host: jobs.HostStatus(
            incarnation=event.incarnation, online=True, since_ms=event.now_ms
        ),
    }
    for job, task in transition.running_on(event.host):
        if task.incarnation != event.incarnation:
            _count_loss(
                transition,
                job,
                task,
                (
                    f"its storaged restarted (incarnation {task.incarnation}, now "
                    f"{event.incarnation})"
                ),
            )
    for job_id in list(transition.jobs):
        for task in transition.jobs[job_id].tasks:
            _requeue_lost_output(transition, transition.jobs[job_id], task, event)


def _requeue_lost_output(
    transition: Transition, job: Job, task: Task, event: jobs.HostSeen
) -> None:
    """Requeue a finished task of a build if its host restarts.

    Only the process that reported the output is known to hold it completely."""
    if not find_kind(job.kind).publishes:
        return
    output_lost = (
        task.host == event.host
        and task.state is JobState.FINISHED
        and task.incarnation != event.incarnation
    )
    if output_lost and job.state is JobState.RUNNING and job.ending is None:
        transition.put_task(
            job,
            replace(
                task,
                state=JobState.QUEUE,
                retry_at_ms=transition.now_ms,
                outcome=None,
                finished_ms=0,
            ),
        )


def on_host_lost(transition: Transition, host: HostId) -> None:
    """Mark a storaged as offline. Its tasks wait for it, because only it has the partitions."""
    current = transition.hosts.get(host)
    if current is None or not current.online:
        return
    transition.hosts = {
        **transition.hosts,
        host: replace(current, online=False, since_ms=transition.now_ms),
    }


def on_tasks_reported(transition: Transition, event: jobs.TasksReported) -> None:
    """Apply the task reports of a heartbeat.

    Reports are ignored unless they come from the incarnation that the attempts were assigned to."""
    host_status = transition.hosts.get(event.host)
    if host_status is None or host_status.incarnation != event.incarnation:
        # All running attempts belong to the current incarnation; `on_host_seen` ensures that.
        return
    reports = {(report.task_id, report.attempt): report for report in event.reports}
    for job, task in transition.running_on(event.host):
        report = reports.get((task.task_id, task.attempt))
        if report is not None:
            _apply_report(transition, job, task, report)
        elif job.ending is not None:
            transition.put_task(
                job, replace(task, state=JobState.STOPPED, finished_ms=transition.now_ms)
            )


def _apply_report(transition: Transition, job: Job, task: Task, report: jobs.TaskReport) -> None:
    """Apply the report of a host on the current attempt."""
    match report.state:
        case JobState.QUEUE | JobState.RUNNING:
            updated = replace(
                with_rate(task, report.rows_done, transition.now_ms),
                phase=report.phase,
                rows_done=report.rows_done,
                rows_total=report.rows_total,
            )
            if updated != task:
                transition.put_task(
                    job,
                    updated,
                    durable=transition.now_ms - job.kept_ms
                    >= transition.policy.progress_interval_ms,
                )
        case JobState.FINISHED:
            outcome = report.outcome or TaskOutcome()
            covers_parts = find_kind(job.kind).covers_parts
            problem = coverage_fault(outcome, task.parts) if covers_parts else ""
            if problem:
                _count_failure(transition, job, task, problem)
                return
            finished = replace(
                without_rate(task),
                state=JobState.FINISHED,
                outcome=outcome,
                phase=report.phase,
                rows_done=report.rows_done,
                rows_total=report.rows_total,
                finished_ms=transition.now_ms,
            )
            transition.put_task(job, finished)
            transition.commands.append(
                jobs.SaveOutcome(job_id=job.job_id, task_id=task.task_id, outcome=outcome)
            )
        case JobState.FAILED:
            _count_failure(
                transition,
                job,
                task,
                report.cause or "its storaged reported no cause",
                permanent=report.permanent,
            )
        case JobState.STOPPED:
            _count_loss(
                transition,
                job,
                task,
                report.cause or "its storaged stopped it without a request",
            )


def _count_failure(
    transition: Transition, job: Job, task: Task, cause: str, *, permanent: bool = False
) -> None:
    """Count a failed attempt: retry after a back-off, or fail the job."""
    task = _with_cause(transition, task, cause, failures=task.failures + 1)
    if job.ending is not None:
        transition.put_task(
            job, replace(task, state=JobState.STOPPED, finished_ms=transition.now_ms)
        )
    elif permanent:
        _fail_job(transition, job, task, "cannot succeed")
    elif task.failures < transition.policy.max_attempts:
        transition.put_task(
            job,
            replace(
                task,
                state=JobState.QUEUE,
                retry_at_ms=transition.now_ms + backoff_ms(transition.policy, task),
            ),
        )
    else:
        _fail_job(transition, job, task, f"failed {task.failures} times")


def _count_loss(transition: Transition, job: Job, task: Task, cause: str) -> None:
    """Count an attempt that was lost without an error of its own."""
    if job.ending is not None:
        transition.put_task(
            job, replace(task, state=JobState.STOPPED, finished_ms=transition.now_ms)
        )
        return
    task = _with_cause(transition, task, cause, losses=task.losses + 1)
    if task.losses < transition.policy.max_losses:
        transition.put_task(job, replace(task, state=JobState.QUEUE, retry_at_ms=transition.now_ms))
    else:
        _fail_job(transition, job, task, f"was lost {task.losses} times")


def _with_cause(
    transition: Transition,
    task: Task,
    cause: str,
    *,
    failures: int | None = None,
    losses: int | None = None,
) -> Task:
    max_causes = (
        transition.policy.max_attempts + transition.policy.max_losses
    )  # every attempt since the job was submitted or recovered
    return replace(
        without_rate(task),
        failures=task.failures if failures is None else failures,
        losses=task.losses if losses is None else losses,
        causes=(*task.causes, f"attempt {task.attempt}: {cause[:_LONGEST_CAUSE]}")[-max_causes:],
    )


def _fail_job(transition: Transition, job: Job, task: Task, outcome: str) -> None:
    job = transition.put_task(
        job, replace(task, state=JobState.FAILED, finished_ms=transition.now_ms)
    )
    cause = (
        f"task {task.task_id} of partitions {', '.join(map(str, task.parts))} {outcome}: "
        f"{'; '.join(task.causes)}"
    )
    transition.put_job(replace(job, ending=JobState.FAILED, cause=cause))


def backoff_ms(policy: JobPolicy, task: Task) -> int:
    """Return the wait after a task's latest failure, in milliseconds.

    The wait doubles with each failure, and is spread over 0.5 to 1.5 times that by a hash of the
    attempt. The spread depends only on the task and its attempt: the machine stays pure, and
    tasks that failed together do not retry together."""
    base_ms = min(policy.backoff_ms << (max(task.failures, 1) - 1), policy.backoff_limit_ms)
    spread = int.from_bytes(
        hashlib.sha256(f"{task.task_id}/{task.attempt}".encode()).digest()[:4], "big"
    ) / (1 << 32)
    return int(base_ms * (0.5 + spread))

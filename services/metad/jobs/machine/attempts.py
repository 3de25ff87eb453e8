"""What hosts say and do: their coming and going, their reports, and what an attempt that came to nothing leads to."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from metad.ids import HostId
from metad.jobs import model
from metad.jobs.kinds import kind_of
from metad.jobs.machine.turn import Turn
from metad.jobs.model import Job, Rules, State, Task
from metad.jobs.pace import measured, unmeasured
from metad.totals import Result, fault

_LONGEST_CAUSE = 2000


def host_seen(turn: Turn, event: model.HostSeen) -> None:
    """Take a storaged for there; what an earlier start of it was working on is lost."""
    known = turn.hosts.get(event.host)
    if known is not None and event.incarnation < known.incarnation:
        return
    turn.hosts = {**turn.hosts, event.host: model.HostFact(incarnation=event.incarnation, online=True, since_ms=event.now_ms)}
    for job, task in turn.running_on(event.host):
        if task.incarnation != event.incarnation:
            _lose(turn, job, task, f"host {event.host} restarted (incarnation {task.incarnation}, now {event.incarnation})")
    for job_id in list(turn.jobs):
        for task in turn.jobs[job_id].tasks:
            _redo(turn, turn.jobs[job_id], task, event)


def _redo(turn: Turn, job: Job, task: Task, event: model.HostSeen) -> None:
    """Order a finished task of a build anew where its host restarts: only the start that reported the output is known to hold it whole."""
    if not kind_of(job.kind).publishes:
        return
    held_no_more = task.host == event.host and task.state is State.FINISHED and task.incarnation != event.incarnation
    if held_no_more and job.state is State.RUNNING and job.ending is None:
        turn.put_task(job, replace(task, state=State.QUEUE, retry_at_ms=turn.now_ms, result=None, finished_ms=0))


def host_lost(turn: Turn, host: HostId) -> None:
    """Take a storaged for gone. Its tasks wait for it: nobody else has its parts."""
    known = turn.hosts.get(host)
    if known is None or not known.online:
        return
    turn.hosts = {**turn.hosts, host: replace(known, online=False, since_ms=turn.now_ms)}


def reported(turn: Turn, event: model.Reported) -> None:
    """Take a beat's word on tasks, if it comes from the start of the host that the attempts were ordered of."""
    fact = turn.hosts.get(event.host)
    if fact is None or fact.incarnation != event.incarnation:
        return  # and what runs there was ordered of this very start: `host_seen` has seen to that
    words = {(report.task_id, report.attempt): report for report in event.reports}
    for job, task in turn.running_on(event.host):
        report = words.get((task.task_id, task.attempt))
        if report is not None:
            _take(turn, job, task, report)
        elif job.ending is not None:
            turn.put_task(job, replace(task, state=State.STOPPED, finished_ms=turn.now_ms))


def _take(turn: Turn, job: Job, task: Task, report: model.Report) -> None:
    """Believe a host's word on the current attempt."""
    match report.state:
        case State.QUEUE | State.RUNNING:
            told = replace(
                measured(task, report.rows_done, turn.now_ms), phase=report.phase, rows_done=report.rows_done, rows_total=report.rows_total
            )
            if told != task:
                turn.put_task(job, told, durable=turn.now_ms - job.kept_ms >= turn.rules.progress_interval_ms)
        case State.FINISHED:
            result = report.result or Result()
            wrong = fault(result, task.parts) if kind_of(job.kind).covers_parts else ""
            if wrong:
                _fail(turn, job, task, wrong)
                return
            done = replace(
                unmeasured(task),
                state=State.FINISHED,
                result=result,
                phase=report.phase,
                rows_done=report.rows_done,
                rows_total=report.rows_total,
                finished_ms=turn.now_ms,
            )
            turn.put_task(job, done)
            turn.commands.append(model.KeepResult(job_id=job.job_id, task_id=task.task_id, result=result))
        case State.FAILED:
            _fail(turn, job, task, report.cause or "the host gave no cause", permanent=report.permanent)
        case State.STOPPED:
            _lose(turn, job, task, report.cause or f"host {task.host} stopped it of its own accord")


def _fail(turn: Turn, job: Job, task: Task, cause: str, *, permanent: bool = False) -> None:
    """Count a failed attempt: another one after a back-off, or the end of the job."""
    task = _blamed(turn, task, cause, failures=task.failures + 1)
    if job.ending is not None:
        turn.put_task(job, replace(task, state=State.STOPPED, finished_ms=turn.now_ms))
    elif permanent:
        _give_up(turn, job, task, "can not succeed")
    elif task.failures < turn.rules.max_attempts:
        turn.put_task(job, replace(task, state=State.QUEUE, retry_at_ms=turn.now_ms + backoff_ms(turn.rules, task)))
    else:
        _give_up(turn, job, task, f"failed {task.failures} times")


def _lose(turn: Turn, job: Job, task: Task, cause: str) -> None:
    """Count an attempt that went down without a fault of its own."""
    if job.ending is not None:
        turn.put_task(job, replace(task, state=State.STOPPED, finished_ms=turn.now_ms))
        return
    task = _blamed(turn, task, cause, losses=task.losses + 1)
    if task.losses < turn.rules.max_losses:
        turn.put_task(job, replace(task, state=State.QUEUE, retry_at_ms=turn.now_ms))
    else:
        _give_up(turn, job, task, f"was lost {task.losses} times")


def _blamed(turn: Turn, task: Task, cause: str, *, failures: int | None = None, losses: int | None = None) -> Task:
    kept = turn.rules.max_attempts + turn.rules.max_losses  # every attempt since the job was submitted or recovered
    return replace(
        unmeasured(task),
        failures=task.failures if failures is None else failures,
        losses=task.losses if losses is None else losses,
        causes=(*task.causes, f"attempt {task.attempt}: {cause[:_LONGEST_CAUSE]}")[-kept:],
    )


def _give_up(turn: Turn, job: Job, task: Task, how: str) -> None:
    job = turn.put_task(job, replace(task, state=State.FAILED, finished_ms=turn.now_ms))
    cause = f"task {task.task_id} on host {task.host} {how}: {'; '.join(task.causes)}"
    turn.put(replace(job, ending=State.FAILED, cause=cause))


def backoff_ms(rules: Rules, task: Task) -> int:
    """How long a task waits after its latest failure: doubled each time, spread over 0.5 to 1.5 by a hash of the attempt.

    The spread is a function of the task and its attempt, so that the machine stays pure and tasks that failed together do not come back together.
    """
    longest = min(rules.backoff_ms << (max(task.failures, 1) - 1), rules.backoff_limit_ms)
    spread = int.from_bytes(hashlib.sha256(f"{task.task_id}/{task.attempt}".encode()).digest()[:4], "big") / (1 << 32)
    return int(longest * (0.5 + spread))

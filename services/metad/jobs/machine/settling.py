"""What follows from the facts: the next attempts, publications, ends, the next job of a space; and what time alone does."""

from __future__ import annotations

from dataclasses import replace

from asterism_proto.indexes import Index
from metad.jobs import model
from metad.jobs.kinds import kind_of
from metad.jobs.machine.attempts import backoff_ms
from metad.jobs.machine.turn import Turn
from metad.jobs.model import Job, State, Task
from metad.jobs.pace import unmeasured
from metad.totals import Result, disagreement


def settle(turn: Turn) -> None:
    """Move every job as far as the facts allow."""
    for job in list(turn.jobs.values()):
        if job.state is State.RUNNING:
            _advance(turn, job)
    _start_next(turn)


def _advance(turn: Turn, job: Job) -> None:
    """Move a running job as far as it goes: its end, its publication, the next attempts."""
    if job.ending is not None:
        if all(_let_go(turn, task) for task in job.tasks):
            turn.put(ended(turn, job, job.ending, job.cause))
    elif all(task.state is State.FINISHED for task in job.tasks):
        (_publish if kind_of(job.kind).publishes else _finish)(turn, job)
    else:
        _order(turn, job)


def _let_go(turn: Turn, task: Task) -> bool:
    """Whether nobody works on the task: never ordered, its host gave its word, or its host's lease is over."""
    return task.state is not State.RUNNING or not turn.online(task.host)


def _order(turn: Turn, job: Job) -> None:
    for task in job.tasks:
        if task.state is State.QUEUE and _due(turn, task) and turn.online(task.host):
            attempt = replace(
                unmeasured(task),
                state=State.RUNNING,
                attempt=task.attempt + 1,
                incarnation=turn.hosts[task.host].incarnation,
                phase="ordered",
                rows_done=0,
                measured_ms=turn.now_ms,
                started_ms=turn.now_ms,
            )
            job = turn.put_task(job, attempt)


def _due(turn: Turn, task: Task) -> bool:
    """Whether a task's back-off is over; where more than all of it is left, the clock was set back since."""
    left = task.retry_at_ms - turn.now_ms
    return left <= 0 or left > backoff_ms(turn.rules, task)


def _together(job: Job) -> Result:
    """What the tasks of a job report, by part."""
    results = [task.result for task in job.tasks if task.result is not None]
    return Result(
        totals=tuple(sorted((t for r in results for t in r.totals), key=lambda t: (t.element.value, t.type_id, t.part, t.weight_name))),
        images=tuple(sorted((i for r in results for i in r.images), key=lambda i: i.part)),
    )


def _finish(turn: Turn, job: Job) -> None:
    """The good end of a job that publishes nothing: of its tasks' results, what they made is kept."""
    wrong = disagreement(_together(job).totals, job.paired) if job.paired else ""
    if wrong:
        turn.put(ended(turn, job, State.FAILED, f"version {job.target_version}: {wrong}"))
        return
    job = _with_what_was_made(ended(turn, job, State.FINISHED, ""))
    turn.put(job)
    _keep_what_was_made(turn, job)


def _with_what_was_made(job: Job) -> Job:
    """The job without what its tasks' results are needed for until it ends."""
    return replace(job, tasks=tuple(replace(task, result=Result(made=task.result.made)) if task.result is not None else task for task in job.tasks))


def _keep_what_was_made(turn: Turn, job: Job) -> None:
    for task in job.tasks:
        if task.result is not None:
            turn.commands.append(model.KeepResult(job_id=job.job_id, task_id=task.task_id, result=task.result))


def _publish(turn: Turn, job: Job) -> None:
    result = _together(job)
    wrong = disagreement(result.totals, job.paired) if job.paired else ""
    if wrong:
        turn.put(ended(turn, job, State.FAILED, f"not published: {wrong}"))
        return
    current = turn.published.get(job.space_id)
    version = job.target_version if kind_of(job.kind).restores else current.version + 1 if current else 1
    job = replace(_with_what_was_made(ended(turn, job, State.FINISHED, "")), version=version)
    turn.put(job)
    turn.published = {**turn.published, job.space_id: model.Published(version=version, cut=job.cut, indexes=job.indexes)}
    turn.commands.append(model.Publish(job=job, result=result))
    _keep_what_was_made(turn, job)


def _start_next(turn: Turn) -> None:
    """Let the oldest waiting job of each idle space run."""
    busy = {job.space_id for job in turn.jobs.values() if job.state is State.RUNNING}
    waiting = [job for job in turn.jobs.values() if job.state is State.QUEUE]
    for job in sorted(waiting, key=lambda job: (job.cut, job.job_id)):
        if job.space_id not in busy:
            busy.add(job.space_id)
            job = replace(job, state=State.RUNNING, started_ms=turn.now_ms, indexes=_indexes(turn, job))
            turn.put(job)
            _order(turn, job)


def _indexes(turn: Turn, job: Job) -> tuple[Index, ...]:
    """What the version of a job is to have: what the schema declares, what the one before it has, and of an index job its own, or not that."""
    if not kind_of(job.kind).publishes or kind_of(job.kind).restores:
        return job.indexes
    current = turn.published.get(job.space_id)
    others = {*job.declared, *(current.indexes if current is not None else ())} - {job.index}
    return tuple(sorted(others if job.index is None or ("drop", "yes") in job.options else others | {job.index}))


def ended(turn: Turn, job: Job, state: State, cause: str) -> Job:
    """``job`` at its end; what was still waiting or running is stopped with it."""
    tasks = tuple(replace(unmeasured(task), state=State.STOPPED, finished_ms=turn.now_ms) if not task.state.ended else task for task in job.tasks)
    return replace(job, state=state, ending=None, cause=cause, finished_ms=turn.now_ms, tasks=tasks)


def tick(turn: Turn) -> None:
    """Forget old jobs, and give up those that waited too long for a host."""
    for job in list(turn.jobs.values()):
        if job.state.ended and turn.now_ms - job.finished_ms >= turn.rules.keep_jobs_ms:
            turn.forget(job.job_id)
        elif job.state is State.RUNNING and job.ending is None:
            for task in job.tasks:
                away = _away_ms(turn, job, task)
                if away >= turn.rules.away_limit_ms:
                    cause = f"host {task.host} of parts {list(task.parts)} is away for {away // 1000} s; bring it back and recover the job"
                    turn.put(replace(job, ending=State.FAILED, cause=cause))
                    break


def _away_ms(turn: Turn, job: Job, task: Task) -> int:
    """How long an unfinished task has been waiting for its host."""
    if task.state is State.FINISHED or turn.online(task.host):
        return 0
    fact = turn.hosts.get(task.host)
    return turn.now_ms - max(job.started_ms, fact.since_ms if fact else 0)

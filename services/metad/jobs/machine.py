"""The job scheduler as a pure function: ``handle(state, event) -> (state, commands)``; a quiet room.

Called by `metad.jobs.driver`, which writes the commands of one event in one batch and only then takes the new state on.
An event alters facts; then `_settle` moves every job of the spaces it touched as far as the facts allow, so that no
order of events leaves a job behind. Jobs go QUEUE -> RUNNING -> FINISHED | FAILED | STOPPED, at most one RUNNING in a
space, in the order of their cuts; only a recovery leads back from an end (and never from FINISHED).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace

from asterism_proto.errors import Conflict, InvalidRequest, NotFound, NotReady
from metad.ids import HostId, JobId, SpaceId, TaskId
from metad.jobs import model
from metad.jobs.model import Command, Event, Job, Jobs, Rules, State, Task
from metad.totals import Result, disagreement, fault

KINDS = ("build",)
_CAUSES_KEPT = 20


def handle(state: Jobs, event: Event) -> tuple[Jobs, list[Command]]:
    """The state after ``event``, and what is to be done; raises, and changes nothing, where a request is refused."""
    turn = _Turn(state, event.now_ms)
    match event:
        case model.Submit():
            _submit(turn, event)
        case model.Stop():
            _stop(turn, event.job_id)
        case model.Recover():
            _recover(turn, event.job_id)
        case model.SpaceDropped():
            _space_dropped(turn, event.space_id)
        case model.HostSeen():
            _host_seen(turn, event)
        case model.HostLost():
            _host_lost(turn, event.host)
        case model.Reported():
            _reported(turn, event)
        case model.Tick():
            _tick(turn)
    return turn.end()


def find(state: Jobs, job_id: int) -> Job:
    """Job ``job_id``; NotFound says which there are."""
    job = state.jobs.get(JobId(job_id))
    if job is None:
        newest = f"the newest is {max(state.jobs)}" if state.jobs else "there are none"
        raise NotFound(f"job {job_id} does not exist; {newest}")
    return job


def orders(state: Jobs, host: HostId) -> list[tuple[Job, Task]]:
    """The tasks that ``host`` should be working on or holding the output of, by task id.

    A finished task stays ordered until its job ends: its host is not to take the output for a leftover.
    """
    found = []
    for job in state.jobs.values():
        if job.state is State.RUNNING and job.ending is None:
            found += [(job, task) for task in job.tasks if task.host == host and task.state in (State.RUNNING, State.FINISHED)]
    return sorted(found, key=lambda pair: pair[1].task_id)


class _Turn:
    """One event under way: the jobs as they become, and the commands so far."""

    def __init__(self, before: Jobs, now_ms: int) -> None:
        self.before = before
        self.now_ms = now_ms
        self.jobs = before.jobs
        self.hosts = before.hosts
        self.published = before.published
        self.next_job = before.next_job
        self.next_task = before.next_task
        self.commands: list[Command] = []
        self._durable: set[JobId] = set()

    @property
    def rules(self) -> Rules:
        return self.before.rules

    def put(self, job: Job, *, durable: bool = True) -> None:
        """Let ``job`` be as given; ``durable`` unless only its progress differs."""
        if self.jobs is self.before.jobs:
            self.jobs = dict(self.jobs)
        self.jobs[job.job_id] = job
        if durable:
            self._durable.add(job.job_id)

    def put_task(self, job: Job, task: Task, *, durable: bool = True) -> Job:
        """``job`` with ``task`` in the place of its former self."""
        job = replace(job, tasks=tuple(task if t.task_id == task.task_id else t for t in job.tasks))
        self.put(job, durable=durable)
        return job

    def forget(self, job_id: JobId) -> None:
        self.jobs = {key: job for key, job in self.jobs.items() if key != job_id}
        self.commands.append(model.Forget(job_id=job_id))

    def online(self, host: HostId) -> bool:
        fact = self.hosts.get(host)
        return fact is not None and fact.online

    def running_on(self, host: HostId) -> Iterator[tuple[Job, Task]]:
        """Tasks with an order out to ``host``. Jobs may be put while this goes on, one task at a time."""
        for job_id in [job.job_id for job in self.jobs.values() if job.state is State.RUNNING]:
            for i in range(len(self.jobs[job_id].tasks)):
                job = self.jobs[job_id]
                if job.tasks[i].host == host and job.tasks[i].state is State.RUNNING:
                    yield job, job.tasks[i]

    def end(self) -> tuple[Jobs, list[Command]]:
        _settle(self)
        for job_id in sorted(self._durable & self.jobs.keys()):
            job = replace(self.jobs[job_id], kept_ms=self.now_ms)
            self.put(job)
            self.commands.append(model.Keep(job=job))
        if _orders_of_all(self.jobs) != _orders_of_all(self.before.jobs):
            self.commands.append(model.Tell())
        after = replace(
            self.before,
            jobs=self.jobs,
            hosts=self.hosts,
            published=self.published,
            next_job=self.next_job,
            next_task=self.next_task,
        )
        return after, self.commands


def _orders_of_all(jobs: dict[JobId, Job]) -> set[tuple[TaskId, int]]:
    return {
        (task.task_id, task.attempt)
        for job in jobs.values()
        if job.state is State.RUNNING and job.ending is None
        for task in job.tasks
        if task.state in (State.RUNNING, State.FINISHED)
    }


# Requests.


def _submit(turn: _Turn, event: model.Submit) -> None:
    if event.kind not in KINDS:
        raise InvalidRequest(f"job kind {event.kind!r}: expected {' or '.join(KINDS)}")
    if event.cut == 0:
        raise NotReady(f"space {event.space!r} has no committed load: there is nothing to build yet; load something first")
    for job in turn.jobs.values():
        same = (job.space_id, job.kind, job.cut) == (event.space_id, event.kind, event.cut)
        if same and not job.state.ended and job.ending is None:
            turn.commands.append(model.Answer(job_id=job.job_id))
            return
    tasks = tuple(Task(task_id=TaskId(turn.next_task + i), host=share.host, parts=share.parts) for i, share in enumerate(event.shares))
    job = Job(
        job_id=JobId(turn.next_job),
        space_id=event.space_id,
        space=event.space,
        kind=event.kind,
        cut=event.cut,
        paired=event.paired,
        tasks=tasks,
        submitted_ms=event.now_ms,
    )
    turn.next_job += 1
    turn.next_task += len(tasks)
    turn.put(job)
    turn.commands.append(model.Answer(job_id=job.job_id))


def _stop(turn: _Turn, job_id: JobId) -> None:
    job = find(turn.before, job_id)
    if job.state is State.STOPPED or job.ending is not None:
        return
    if job.state.ended:
        raise Conflict(f"job {job_id} is {job.state.name} already: there is nothing to stop")
    if job.state is State.QUEUE:
        turn.put(_ended(turn, job, State.STOPPED, "stopped on request"))
    else:
        turn.put(replace(job, ending=State.STOPPED, cause="stopped on request"))


def _recover(turn: _Turn, job_id: JobId) -> None:
    job = find(turn.before, job_id)
    if job.state not in (State.FAILED, State.STOPPED):
        raise Conflict(f"job {job_id} is {job.state.name}: only FAILED and STOPPED jobs can be recovered")
    current = turn.published.get(job.space_id)
    if current is not None and current.cut > job.cut:
        raise Conflict(f"job {job_id} builds commit {job.cut}, but version {current.version} shows commit {current.cut} already; submit a new job")
    for other in turn.jobs.values():
        if other.space_id == job.space_id and other.kind == job.kind and not other.state.ended and other.ending is None and other.cut >= job.cut:
            raise Conflict(f"job {other.job_id} is {other.state.name} and builds commit {other.cut}: recovering job {job_id} would add nothing")
    turn.put(replace(job, state=State.QUEUE, cause="", finished_ms=0, tasks=tuple(_anew(task) for task in job.tasks)))


def _anew(task: Task) -> Task:
    """A task of a recovered job, whatever became of it.

    Finished ones too: while the job was over nobody ordered their output to be held, so it may be gone. A host that still holds it says so at once.
    """
    return replace(task, state=State.QUEUE, failures=0, losses=0, retry_at_ms=0, phase="", rows_done=0, finished_ms=0, result=None)


def _space_dropped(turn: _Turn, space_id: SpaceId) -> None:
    turn.published = {key: value for key, value in turn.published.items() if key != space_id}
    for job in list(turn.jobs.values()):
        if job.space_id == space_id and not job.state.ended:
            # Nobody's word is waited for: ids of spaces never come back, so nothing that still runs can do harm.
            turn.put(_ended(turn, job, State.STOPPED, f"space {job.space!r} was dropped"))


# Hosts.


def _host_seen(turn: _Turn, event: model.HostSeen) -> None:
    known = turn.hosts.get(event.host)
    if known is not None and event.incarnation < known.incarnation:
        return
    turn.hosts = {**turn.hosts, event.host: model.HostFact(incarnation=event.incarnation, online=True, since_ms=event.now_ms)}
    for job, task in turn.running_on(event.host):
        if task.incarnation != event.incarnation:
            _lose(turn, job, task, f"host {event.host} restarted (incarnation {task.incarnation}, now {event.incarnation})")


def _host_lost(turn: _Turn, host: HostId) -> None:
    known = turn.hosts.get(host)
    if known is None or not known.online:
        return
    turn.hosts = {**turn.hosts, host: replace(known, online=False, since_ms=turn.now_ms)}


def _reported(turn: _Turn, event: model.Reported) -> None:
    fact = turn.hosts.get(event.host)
    if fact is None or not fact.online or fact.incarnation != event.incarnation:
        return
    words = {(report.task_id, report.attempt): report for report in event.reports}
    for job, task in turn.running_on(event.host):
        if task.incarnation != event.incarnation:
            continue
        report = words.get((task.task_id, task.attempt))
        if report is not None:
            _take(turn, job, task, report)
        elif job.ending is not None:
            turn.put_task(job, replace(task, state=State.STOPPED, finished_ms=turn.now_ms))


def _take(turn: _Turn, job: Job, task: Task, report: model.Report) -> None:
    """Believe a host's word on the current attempt."""
    match report.state:
        case State.QUEUE | State.RUNNING:
            told = replace(task, phase=report.phase, rows_done=report.rows_done, rows_total=report.rows_total)
            if told != task:
                turn.put_task(job, told, durable=turn.now_ms - job.kept_ms >= turn.rules.progress_interval_ms)
        case State.FINISHED:
            result = report.result or Result(totals=(), images=())
            wrong = fault(result, task.parts)
            if wrong:
                _fail(turn, job, task, wrong)
                return
            done = replace(
                task,
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
            _fail(turn, job, task, report.cause or "the host gave no cause")
        case State.STOPPED:
            _lose(turn, job, task, report.cause or f"host {task.host} stopped it of its own accord")


def _fail(turn: _Turn, job: Job, task: Task, cause: str) -> None:
    """Count a failed attempt: another one after a back-off, or the end of the job."""
    task = _blamed(task, cause, failures=task.failures + 1)
    if job.ending is not None:
        turn.put_task(job, replace(task, state=State.STOPPED, finished_ms=turn.now_ms))
    elif task.failures < turn.rules.max_attempts:
        turn.put_task(job, replace(task, state=State.QUEUE, retry_at_ms=turn.now_ms + backoff_ms(turn.rules, task)))
    else:
        _give_up(turn, job, task, f"failed {task.failures} times")


def _lose(turn: _Turn, job: Job, task: Task, cause: str) -> None:
    """Count an attempt that went down without a fault of its own."""
    if job.ending is not None:
        turn.put_task(job, replace(task, state=State.STOPPED, finished_ms=turn.now_ms))
        return
    task = _blamed(task, cause, losses=task.losses + 1)
    if task.losses < turn.rules.max_losses:
        turn.put_task(job, replace(task, state=State.QUEUE, retry_at_ms=turn.now_ms))
    else:
        _give_up(turn, job, task, f"was lost {task.losses} times")


def _blamed(task: Task, cause: str, *, failures: int | None = None, losses: int | None = None) -> Task:
    return replace(
        task,
        failures=task.failures if failures is None else failures,
        losses=task.losses if losses is None else losses,
        causes=(*task.causes, f"attempt {task.attempt}: {cause}")[-_CAUSES_KEPT:],
    )


def _give_up(turn: _Turn, job: Job, task: Task, how: str) -> None:
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


# Time.


def _tick(turn: _Turn) -> None:
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


def _away_ms(turn: _Turn, job: Job, task: Task) -> int:
    """How long an unfinished task has been waiting for its host."""
    if task.state is State.FINISHED or turn.online(task.host):
        return 0
    fact = turn.hosts.get(task.host)
    return turn.now_ms - max(job.started_ms, fact.since_ms if fact else 0)


# Settling: what follows from the facts.


def _settle(turn: _Turn) -> None:
    for job in list(turn.jobs.values()):
        if job.state is State.RUNNING:
            _advance(turn, job)
    _start_next(turn)


def _advance(turn: _Turn, job: Job) -> None:
    """Move a running job as far as it goes: its end, its publication, the next attempts."""
    if job.ending is not None:
        if all(_let_go(turn, task) for task in job.tasks):
            turn.put(_ended(turn, job, job.ending, job.cause))
    elif all(task.state is State.FINISHED for task in job.tasks):
        _publish(turn, job)
    else:
        _order(turn, job)


def _let_go(turn: _Turn, task: Task) -> bool:
    """Whether nobody works on the task: never ordered, its host gave its word, or its host's lease is over."""
    return task.state is not State.RUNNING or not turn.online(task.host)


def _order(turn: _Turn, job: Job) -> None:
    for task in job.tasks:
        if task.state is State.QUEUE and task.retry_at_ms <= turn.now_ms and turn.online(task.host):
            attempt = replace(
                task,
                state=State.RUNNING,
                attempt=task.attempt + 1,
                incarnation=turn.hosts[task.host].incarnation,
                phase="ordered",
                rows_done=0,
                started_ms=turn.now_ms,
            )
            job = turn.put_task(job, attempt)


def _publish(turn: _Turn, job: Job) -> None:
    results = [task.result for task in job.tasks if task.result is not None]
    result = Result(
        totals=tuple(sorted((t for r in results for t in r.totals), key=lambda t: (t.element.value, t.type_id, t.part, t.weight_name))),
        images=tuple(sorted((i for r in results for i in r.images), key=lambda i: i.part)),
    )
    wrong = disagreement(result.totals, job.paired) if job.paired else ""
    if wrong:
        turn.put(_ended(turn, job, State.FAILED, f"not published: {wrong}"))
        return
    current = turn.published.get(job.space_id)
    version = current.version + 1 if current else 1
    tasks = tuple(replace(task, result=None) for task in job.tasks)
    job = replace(_ended(turn, job, State.FINISHED, ""), version=version, tasks=tasks)
    turn.put(job)
    turn.published = {**turn.published, job.space_id: model.Published(version=version, cut=job.cut)}
    turn.commands.append(model.Publish(job=job, result=result))


def _start_next(turn: _Turn) -> None:
    """Let the oldest waiting job of each idle space run."""
    busy = {job.space_id for job in turn.jobs.values() if job.state is State.RUNNING}
    for job in sorted(turn.jobs.values(), key=lambda job: (job.cut, job.job_id)):
        if job.state is State.QUEUE and job.space_id not in busy:
            busy.add(job.space_id)
            job = replace(job, state=State.RUNNING, started_ms=turn.now_ms)
            turn.put(job)
            _order(turn, job)


def _ended(turn: _Turn, job: Job, state: State, cause: str) -> Job:
    """``job`` at its end; what was still waiting or running is stopped with it."""
    tasks = tuple(replace(task, state=State.STOPPED, finished_ms=turn.now_ms) if not task.state.ended else task for task in job.tasks)
    return replace(job, state=state, ending=None, cause=cause, finished_ms=turn.now_ms, tasks=tasks)

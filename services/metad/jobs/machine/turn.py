"""One event under way: the jobs as they become, and what is to be done so far; and how the machine's state is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from asterism_proto.errors import NotFound
from metad.ids import HostId, JobId, TaskId
from metad.jobs import model
from metad.jobs.kinds import kind_of
from metad.jobs.model import Command, Job, Jobs, Rules, State, Task


def find(state: Jobs, job_id: int) -> Job:
    """Job ``job_id``; NotFound says which there are."""
    job = state.jobs.get(JobId(job_id))
    if job is None:
        newest = f"the newest is {max(state.jobs)}" if state.jobs else "there are none"
        raise NotFound(f"job {job_id} does not exist; {newest}")
    return job


def orders(state: Jobs, host: HostId) -> list[tuple[Job, Task]]:
    """The tasks that ``host`` should be working on or holding the output of, by task id.

    A finished task of a build stays ordered until its job ends: its host is not to take the output for a leftover.
    """
    found = [(job, task) for job, task in _ordered(state.jobs) if task.host == host]
    return sorted(found, key=lambda pair: pair[1].task_id)


def _ordered(jobs: dict[JobId, Job]) -> Iterator[tuple[Job, Task]]:
    for job in jobs.values():
        if job.state is State.RUNNING and job.ending is None:
            held = (State.RUNNING, State.FINISHED) if kind_of(job.kind).publishes else (State.RUNNING,)
            yield from ((job, task) for task in job.tasks if task.state in held)


class Turn:
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
        """How patient to be."""
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
        """Remove a job."""
        self.jobs = {key: job for key, job in self.jobs.items() if key != job_id}
        self.commands.append(model.Forget(job_id=job_id))

    def online(self, host: HostId) -> bool:
        """Whether a host's lease holds."""
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
        """The state after the event, and the commands."""
        for job_id in sorted(self._durable & self.jobs.keys()):
            job = replace(self.jobs[job_id], kept_ms=self.now_ms)
            self.put(job)
            self.commands.append(model.Keep(job=job))
        if self.jobs is not self.before.jobs and _orders_of_all(self.jobs) != _orders_of_all(self.before.jobs):
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
    return {(task.task_id, task.attempt) for _, task in _ordered(jobs)}

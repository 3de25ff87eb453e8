"""State of one event in progress, and queries on the machine's state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from asterism_proto.errors import NotFound
from metad.model import jobs as model
from metad.model.ids import HostId, JobId, TaskId
from metad.model.job_kinds import find_kind
from metad.model.jobs import Command, Job, JobPolicy, JobState, MachineState, Task


def find_job(state: MachineState, job_id: int) -> Job:
    """Return job ``job_id``; NotFound gives the newest id."""
    job = state.jobs.get(JobId(job_id))
    if job is None:
        newest = f"the newest is {max(state.jobs)}" if state.jobs else "there are none"
        raise NotFound(f"job {job_id} does not exist; {newest}")
    return job


def assigned_tasks(state: MachineState, host: HostId) -> list[tuple[Job, Task]]:
    """Return the tasks that ``host`` should work on or keep the output of, by task id.

    A finished task of a build stays assigned until its job ends, so its host does not remove the
    output as a leftover."""
    assigned = [(job, task) for job, task in _iter_assigned(state.jobs) if task.host == host]
    return sorted(assigned, key=lambda pair: pair[1].task_id)


def _iter_assigned(jobs: dict[JobId, Job]) -> Iterator[tuple[Job, Task]]:
    for job in jobs.values():
        if job.state is JobState.RUNNING and job.ending is None:
            assigned_states = (
                (JobState.RUNNING, JobState.FINISHED)
                if find_kind(job.kind).publishes
                else (JobState.RUNNING,)
            )
            yield from ((job, task) for task in job.tasks if task.state in assigned_states)


class Transition:
    """One event in progress: the changed jobs, and the commands so far."""

    def __init__(self, before: MachineState, now_ms: int) -> None:
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
    def policy(self) -> JobPolicy:
        """Limits of the job machine."""
        return self.before.policy

    def put_job(self, job: Job, *, durable: bool = True) -> None:
        """Set a job; ``durable`` stores it, which may be skipped if only progress differs."""
        if self.jobs is self.before.jobs:
            self.jobs = dict(self.jobs)
        self.jobs[job.job_id] = job
        if durable:
            self._durable.add(job.job_id)

    def put_task(self, job: Job, task: Task, *, durable: bool = True) -> Job:
        """Set a task of ``job``, and return the changed job."""
        job = replace(job, tasks=tuple(task if t.task_id == task.task_id else t for t in job.tasks))
        self.put_job(job, durable=durable)
        return job

    def delete_job(self, job_id: JobId) -> None:
        """Delete a job."""
        self.jobs = {key: job for key, job in self.jobs.items() if key != job_id}
        self.commands.append(model.DeleteJob(job_id=job_id))

    def is_online(self, host: HostId) -> bool:
        """Return whether a host's lease holds."""
        host_status = self.hosts.get(host)
        return host_status is not None and host_status.online

    def running_on(self, host: HostId) -> Iterator[tuple[Job, Task]]:
        """Yield the running tasks of ``host``, each with its job.

        The caller may put the yielded job during the iteration."""
        for job_id in [job.job_id for job in self.jobs.values() if job.state is JobState.RUNNING]:
            for i in range(len(self.jobs[job_id].tasks)):
                job = self.jobs[job_id]
                if job.tasks[i].host == host and job.tasks[i].state is JobState.RUNNING:
                    yield job, job.tasks[i]

    def finish(self) -> tuple[MachineState, list[Command]]:
        """Return the state after the event, and the commands."""
        for job_id in sorted(self._durable & self.jobs.keys()):
            job = replace(self.jobs[job_id], kept_ms=self.now_ms)
            self.put_job(job)
            self.commands.append(model.SaveJob(job=job))
        if self.jobs is not self.before.jobs and _assignments(self.jobs) != _assignments(
            self.before.jobs
        ):
            self.commands.append(model.NotifyStorageds())
        after = replace(
            self.before,
            jobs=self.jobs,
            hosts=self.hosts,
            published=self.published,
            next_job=self.next_job,
            next_task=self.next_task,
        )
        return after, self.commands


def _assignments(jobs: dict[JobId, Job]) -> set[tuple[TaskId, int]]:
    return {(task.task_id, task.attempt) for _, task in _iter_assigned(jobs)}

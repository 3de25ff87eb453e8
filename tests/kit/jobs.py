"""A job machine driven by short events, with access to its state and last commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from asterism_model.elements import Element
from asterism_model.indexes import Index
from asterism_model.partition_stats import PartitionStats
from metad.jobs import state_machine
from metad.model import jobs
from metad.model.ids import HostId, JobId, SpaceId, TaskId
from metad.model.jobs import Command, Job, JobPolicy, JobState, MachineState, Task
from metad.model.task_outcomes import PartImageDigest, TaskOutcome

A, B = HostId("host-a"), HostId("host-b")
EDGE = "n:to:n"


def outcome(parts: Sequence[int], *, count_in: int = 5, mix_in: int = 77) -> TaskOutcome:
    """Return the outcome of a build of ``parts``, with five edges in each partition."""
    totals = [
        PartitionStats(
            part=p,
            element=Element.EDGE,
            type_id=0,
            count=5,
            positive=5,
            weight=5.0,
            mix_out=77,
            mix_in=mix_in,
            count_in=count_in,
        )
        for p in parts
    ]
    return TaskOutcome(
        totals=tuple(totals),
        images=tuple(PartImageDigest(part=p, digest=f"digest-{p}") for p in parts),
    )


class Scenario:
    """A job machine, its clock, and two hosts that are online from the start."""

    def __init__(self, rules: JobPolicy | None = None, hosts: Sequence[HostId] = (A, B)) -> None:
        self.state = MachineState(policy=rules or JobPolicy())
        self.now_ms = 1_000_000
        self.commands: list[Command] = []
        for host in hosts:
            self.host_seen(host)

    def feed(self, event: jobs.Event) -> list[Command]:
        """Feed an event to the machine and return its commands."""
        self.state, self.commands = state_machine.handle(self.state, event)
        return self.commands

    def submit(
        self,
        *,
        watermark: int = 1,
        space: int = 1,
        paired: Sequence[str] = (EDGE,),
        kind: str = "build",
        hosts: Sequence[HostId] = (A, B),
        options: Mapping[str, str] | None = None,
        version: int = 0,
        index: Index | None = None,
    ) -> Job:
        """Submit a job of a space with partition i on ``hosts[i]``."""
        self.feed(
            jobs.SubmitJob(
                now_ms=self.now_ms,
                space_id=SpaceId(space),
                space=f"space-{space}",
                kind=kind,
                watermark=watermark,
                shares=tuple(jobs.HostParts(host=host, parts=(i,)) for i, host in enumerate(hosts)),
                paired=tuple(paired),
                options=options or {},
                version=version,
                index=index,
            )
        )
        return self.job(
            next(command.job_id for command in self.commands if isinstance(command, jobs.ReturnJob))
        )

    def submit_index(self, index: Index, *, watermark: int = 1, **more: str) -> Job:
        """Submit a job that adds an index or, with ``drop``, removes it."""
        options = {"type": str(index.type_id), "on": index.column, "kind": index.kind, **more}
        return self.submit(kind="index", watermark=watermark, options=options, index=index)

    def host_seen(self, host: HostId, incarnation: int = 1) -> None:
        """Report that a host joined, returned or restarted."""
        self.feed(jobs.HostSeen(now_ms=self.now_ms, host=host, incarnation=incarnation))

    def host_lost(self, host: HostId) -> None:
        """Report that the lease of a host expired."""
        self.feed(jobs.HostLost(now_ms=self.now_ms, host=host))

    def heartbeat(self, host: HostId, *reports: jobs.TaskReport, incarnation: int = 1) -> None:
        """Report all tasks of a host in a heartbeat."""
        self.feed(
            jobs.TasksReported(
                now_ms=self.now_ms, host=host, incarnation=incarnation, reports=reports
            )
        )

    def advance_clock(self, seconds: float) -> None:
        """Advance the clock, and run the driver's timer."""
        self.now_ms += int(seconds * 1000)
        self.feed(jobs.Tick(now_ms=self.now_ms))

    def stop(self, job: Job) -> None:
        """Request that the job stops."""
        self.feed(jobs.StopJob(now_ms=self.now_ms, job_id=job.job_id))

    def recover(self, job: Job) -> None:
        """Request that the job resumes."""
        self.feed(jobs.RecoverJob(now_ms=self.now_ms, job_id=job.job_id))

    def drop_space(self, space: int = 1) -> None:
        """Report that the graph space was dropped."""
        self.feed(jobs.SpaceDropped(now_ms=self.now_ms, space_id=SpaceId(space)))

    def job(self, job_id: int) -> Job:
        """Return the current state of the job."""
        return self.state.jobs[JobId(job_id)]

    def task(self, job: Job, host: HostId) -> Task:
        """Return the current state of the job's task on a host."""
        return next(task for task in self.job(job.job_id).tasks if task.host == host)

    def assigned_tasks(self, host: HostId) -> list[tuple[TaskId, int]]:
        """Return (task, attempt) of the task assignments of a host."""
        return [
            (task.task_id, task.attempt)
            for _, task in state_machine.assigned_tasks(self.state, host)
        ]

    def make_report(
        self, job: Job, host: HostId, state: JobState, *, attempt: int = 0, **more: object
    ) -> jobs.TaskReport:
        """Return a report of a host on its task, by default for the current attempt."""
        task = self.task(job, host)
        if state is JobState.FINISHED:
            more.setdefault("outcome", outcome(task.parts))
        return jobs.TaskReport(
            task_id=task.task_id, attempt=attempt or task.attempt, state=state, **more
        )  # type: ignore[arg-type]

    def report_finished(self, job: Job, *hosts: HostId) -> None:
        """Report the tasks of hosts as finished, one after the other."""
        for host in hosts or tuple(task.host for task in job.tasks):
            self.heartbeat(
                host,
                self.make_report(job, host, JobState.FINISHED),
                incarnation=self.state.hosts[host].incarnation,
            )

    def commands_of(self, kind: type[Command]) -> list[Command]:
        """Return the commands of one kind from the last event."""
        return [command for command in self.commands if isinstance(command, kind)]

"""A job machine that is told stories: short events in, its state and last commands out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from asterism_model.indexes import Index
from asterism_model.partition_stats import Element, PartitionStats
from metad.jobs import machine
from metad.model import jobs
from metad.model.ids import HostId, JobId, SpaceId, TaskId
from metad.model.jobs import Command, Job, JobPolicy, JobState, MachineState, Task
from metad.model.task_outcomes import PartImageDigest, TaskOutcome

A, B = HostId("host-a"), HostId("host-b")
EDGE = "n:to:n"


def outcome(parts: Sequence[int], *, count_in: int = 5, mix_in: int = 77) -> TaskOutcome:
    """What a build of ``parts`` reports, with five edges in each part."""
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
    """A machine, its clock, and two hosts that are there from the start."""

    def __init__(self, rules: JobPolicy | None = None, hosts: Sequence[HostId] = (A, B)) -> None:
        self.state = MachineState(policy=rules or JobPolicy())
        self.now_ms = 1_000_000
        self.commands: list[Command] = []
        for host in hosts:
            self.host_seen(host)

    def feed(self, event: jobs.Event) -> list[Command]:
        """Let the machine decide."""
        self.state, self.commands = machine.handle(self.state, event)
        return self.commands

    def submit(
        self,
        *,
        cut: int = 1,
        space: int = 1,
        paired: Sequence[str] = (EDGE,),
        kind: str = "build",
        hosts: Sequence[HostId] = (A, B),
        options: Mapping[str, str] | None = None,
        version: int = 0,
        index: Index | None = None,
    ) -> Job:
        """Ask for a job of a space whose part i is at ``hosts[i]``."""
        self.feed(
            jobs.SubmitJob(
                now_ms=self.now_ms,
                space_id=SpaceId(space),
                space=f"space-{space}",
                kind=kind,
                cut=cut,
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

    def submit_index(self, index: Index, *, cut: int = 1, **more: str) -> Job:
        """Ask for a job that adds an index, or with ``drop`` takes it away."""
        options = {"type": str(index.type_id), "on": index.column, "kind": index.kind, **more}
        return self.submit(kind="index", cut=cut, options=options, index=index)

    def host_seen(self, host: HostId, incarnation: int = 1) -> None:
        """The host came, came back or restarted."""
        self.feed(jobs.HostSeen(now_ms=self.now_ms, host=host, incarnation=incarnation))

    def host_lost(self, host: HostId) -> None:
        """The host's lease is over."""
        self.feed(jobs.HostLost(now_ms=self.now_ms, host=host))

    def heartbeat(self, host: HostId, *reports: jobs.TaskReport, incarnation: int = 1) -> None:
        """The host's whole word on its tasks."""
        self.feed(
            jobs.TasksReported(
                now_ms=self.now_ms, host=host, incarnation=incarnation, reports=reports
            )
        )

    def advance_clock(self, seconds: float) -> None:
        """Time goes by, and the driver looks at the clock."""
        self.now_ms += int(seconds * 1000)
        self.feed(jobs.Tick(now_ms=self.now_ms))

    def stop(self, job: Job) -> None:
        """Ask for the job's end."""
        self.feed(jobs.StopJob(now_ms=self.now_ms, job_id=job.job_id))

    def recover(self, job: Job) -> None:
        """Ask to go on with it."""
        self.feed(jobs.RecoverJob(now_ms=self.now_ms, job_id=job.job_id))

    def drop_space(self, space: int = 1) -> None:
        """The space is gone."""
        self.feed(jobs.SpaceDropped(now_ms=self.now_ms, space_id=SpaceId(space)))

    def job(self, job_id: int) -> Job:
        """The job as it is."""
        return self.state.jobs[JobId(job_id)]

    def task(self, job: Job, host: HostId) -> Task:
        """The job's share on a host, as it is."""
        return next(task for task in self.job(job.job_id).tasks if task.host == host)

    def assigned_tasks(self, host: HostId) -> list[tuple[TaskId, int]]:
        """(task, attempt) that the host is told to work on."""
        return [
            (task.task_id, task.attempt) for _, task in machine.assigned_tasks(self.state, host)
        ]

    def make_report(
        self, job: Job, host: HostId, state: JobState, *, attempt: int = 0, **more: object
    ) -> jobs.TaskReport:
        """The host's word on its share of the job, by default on the current attempt."""
        task = self.task(job, host)
        if state is JobState.FINISHED:
            more.setdefault("outcome", outcome(task.parts))
        return jobs.TaskReport(
            task_id=task.task_id, attempt=attempt or task.attempt, state=state, **more
        )  # type: ignore[arg-type]

    def report_finished(self, job: Job, *hosts: HostId) -> None:
        """The hosts report their shares finished, one after the other."""
        for host in hosts or tuple(task.host for task in job.tasks):
            self.heartbeat(
                host,
                self.make_report(job, host, JobState.FINISHED),
                incarnation=self.state.hosts[host].incarnation,
            )

    def commands_of(self, kind: type[Command]) -> list[Command]:
        """The commands of the last event that are of one kind."""
        return [command for command in self.commands if isinstance(command, kind)]

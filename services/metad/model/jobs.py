"""Jobs, tasks and what happens to them, as frozen values; a quiet room."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from asterism_model.indexes import Index
from metad.model.ids import HostId, JobId, SpaceId, TaskId
from metad.model.job_kinds import JobOptions
from metad.model.task_outcomes import TaskOutcome


class JobState(Enum):
    """Where a job or a task is; the numbers are those of the wire."""

    QUEUE = 1
    """It waits: a job for its turn in its space, a task for its job, its back-off or its host."""
    RUNNING = 2
    """A job: its tasks are under way. A task: an attempt is ordered of its host."""
    FINISHED = 3
    """A job: it is done; the version of a build is published. A task: its host has done its
    share.
    """
    FAILED = 4
    """It was given up; its cause says why."""
    STOPPED = 5
    """Somebody asked for its end, and every host gave its word or lost its lease."""

    @property
    def is_final(self) -> bool:
        """Whether nothing moves it but a recovery."""
        return self in (JobState.FINISHED, JobState.FAILED, JobState.STOPPED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A job's share on one storaged."""

    task_id: TaskId
    host: HostId
    parts: tuple[int, ...]
    state: JobState = JobState.QUEUE
    attempt: int = 0
    """Number of the latest order; 0 = none yet. Reports of another one are ignored."""
    incarnation: int = 0
    """Of the host, when the attempt was ordered."""
    failures: int = 0
    """Attempts that the host reported as failed, since the job was submitted or recovered."""
    losses: int = 0
    """Attempts that went down with their host or were given up by it."""
    retry_at_ms: int = 0
    """Not ordered before."""
    phase: str = ""
    rows_done: int = 0
    rows_total: int = 0
    rows_per_s: float = 0.0
    """Of the attempt under way, as of its last reports; 0 = not known."""
    measured_ms: int = 0
    """When the rate was looked at last; 0 = not yet."""
    measured_rows: int = 0
    """Rows that were done then."""
    causes: tuple[str, ...] = ()
    """Of every attempt that came to nothing, oldest first."""
    started_ms: int = 0
    """When the latest attempt was ordered."""
    finished_ms: int = 0
    outcome: TaskOutcome | None = None
    """Of a finished task: all of it until its job ends, then what no version's manifest tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Work that somebody asked of metad, on one space."""

    job_id: JobId
    space_id: SpaceId
    space: str
    kind: str
    """One of `metad.model.job_kinds`."""
    cut: int
    """The space's last commit number when it was submitted, fixed for ever: a build shows this
    state, so that a recovery has the same input.
    """
    paired: tuple[str, ...]
    """Names of the edge types by id, where in-copies are kept and must agree; empty where they are
    not.
    """
    tasks: tuple[Task, ...]
    submitted_ms: int
    options: JobOptions = ()
    """As submitted, defaults filled in."""
    index: Index | None = None
    """The one that it adds to its version, or takes away; None = neither."""
    indexes: tuple[Index, ...] = ()
    """That its version is to have: those of the version before, as of when it began, and its own.
    Of a restore, of what comes back.
    """
    declared: tuple[Index, ...] = ()
    """That every version of the space has, by its schema."""
    target_version: int = 0
    """The version that it reads; 0 = none."""
    state: JobState = JobState.QUEUE
    ending: JobState | None = None
    """What a RUNNING job becomes once no host works on it any more: STOPPED or FAILED."""
    version: int = 0
    """What it published; 0 = nothing."""
    started_ms: int = 0
    finished_ms: int = 0
    cause: str = ""
    """Why it failed, was stopped, or is about to be."""
    kept_ms: int = 0
    """When it was last written down: progress alone is written down seldom."""

    @property
    def identity(self) -> tuple[SpaceId, str, int, int, JobOptions]:
        """What it was asked to do: while a job is in flight, a submit of the same is answered with
        it.
        """
        return (self.space_id, self.kind, self.cut, self.target_version, self.options)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostStatus:
    """What the machine knows of a storaged."""

    incarnation: int
    online: bool
    since_ms: int
    """When it came or went."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentVersion:
    """The current version of a space."""

    version: int
    cut: int
    indexes: tuple[Index, ...] = ()
    """That it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPolicy:
    """How patient the machine is."""

    max_attempts: int = 3
    """Failed attempts of a task before its job fails."""
    max_losses: int = 10
    """Attempts of a task that may go down with their host: a build that kills its host must end
    too.
    """
    backoff_ms: int = 1_000
    """Before the second attempt, give or take a half; doubled at each further one."""
    backoff_limit_ms: int = 60_000
    away_limit_ms: int = 600_000
    """How long a job waits for a host that is away."""
    keep_jobs_ms: int = 7 * 24 * 3_600_000
    """How long ended jobs are remembered."""
    progress_interval_ms: int = 10_000
    """How often progress alone is written down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineState:
    """The machine's whole state."""

    policy: JobPolicy = field(default_factory=JobPolicy)
    jobs: dict[JobId, Job] = field(default_factory=dict)
    """By id, ascending. Never changed in place."""
    hosts: dict[HostId, HostStatus] = field(default_factory=dict)
    published: dict[SpaceId, CurrentVersion] = field(default_factory=dict)
    next_job: int = 1
    next_task: int = 1


# What happens.


@dataclass(frozen=True, slots=True, kw_only=True)
class HostParts:
    """The parts of a space that one storaged holds."""

    host: HostId
    parts: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitJob:
    """Somebody asks for a job."""

    now_ms: int
    space_id: SpaceId
    space: str
    kind: str
    cut: int
    """The space's last commit number; 0 = nothing was ever committed."""
    shares: tuple[HostParts, ...]
    paired: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict)
    """As they were given."""
    version: int = 0
    """To read; 0 where none was named and none is published."""
    index: Index | None = None
    """What options name of one, where the kind takes one."""
    indexes: tuple[Index, ...] = ()
    """Of the version that a restore brings back."""
    declared: tuple[Index, ...] = ()
    """That the schema of the space declares."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopJob:
    """Somebody asks for a job's end."""

    now_ms: int
    job_id: JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoverJob:
    """Somebody asks to go on with a failed or stopped job."""

    now_ms: int
    job_id: JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceDropped:
    """A space is gone, and with it the point of its jobs."""

    now_ms: int
    space_id: SpaceId


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSeen:
    """A storaged came, came back, or restarted."""

    now_ms: int
    host: HostId
    incarnation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLost:
    """A storaged's lease is over."""

    now_ms: int
    host: HostId


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskReport:
    """A storaged's word on one attempt of a task."""

    task_id: TaskId
    attempt: int
    state: JobState
    phase: str = ""
    rows_done: int = 0
    rows_total: int = 0
    cause: str = ""
    permanent: bool = False
    """FAILED only: another attempt would come to the same."""
    outcome: TaskOutcome | None = None
    """FINISHED only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksReported:
    """A beat's whole word on tasks: what it does not name does not run there."""

    now_ms: int
    host: HostId
    incarnation: int
    reports: tuple[TaskReport, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """Time went by."""

    now_ms: int


Event = SubmitJob | StopJob | RecoverJob | SpaceDropped | HostSeen | HostLost | TasksReported | Tick


# What is to be done. The commands of one event are one write.


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnJob:
    """The job that a submit led to: a new one, or the identical one in flight."""

    job_id: JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveJob:
    """Write the job down before anybody hears of it."""

    job: Job


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveOutcome:
    """Store the part of a finished task's outcome that is kept."""

    job_id: JobId
    task_id: TaskId
    outcome: TaskOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishVersion:
    """Write the job's version down, in the same write as the job itself."""

    job: Job
    outcome: TaskOutcome
    """Of all tasks together, by part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteJob:
    """Remove the job."""

    job_id: JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyStorageds:
    """What storageds should be doing has changed: answer their polls."""


Command = ReturnJob | SaveJob | SaveOutcome | PublishVersion | DeleteJob | NotifyStorageds

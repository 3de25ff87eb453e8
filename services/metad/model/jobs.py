"""Jobs, tasks, and the events and commands of the job machine. Pure module."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from asterism_model.indexes import Index
from metad.model.ids import HostId, JobId, SpaceId, TaskId
from metad.model.job_kinds import JobOptions
from metad.model.task_outcomes import TaskOutcome


class JobState(Enum):
    """State of a job or a task; the values are those of the wire."""

    QUEUE = 1
    """Waiting: a job for its turn in its space, a task for its job, its back-off or its host."""
    RUNNING = 2
    """Running. A job: its tasks are in progress. A task: an attempt is assigned to its host."""
    FINISHED = 3
    """Finished. A build: the version is published. A task: its host has done its share."""
    FAILED = 4
    """Given up; the cause is recorded."""
    STOPPED = 5
    """Cancelled on request: every host confirmed, or its lease expired."""

    @property
    def is_final(self) -> bool:
        """True if only a recovery can leave this state."""
        return self in (JobState.FINISHED, JobState.FAILED, JobState.STOPPED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The share of a job on one storaged."""

    task_id: TaskId
    host: HostId
    parts: tuple[int, ...]
    state: JobState = JobState.QUEUE
    attempt: int = 0
    """Number of the latest attempt; 0 if there was none.

    Reports of other attempts are ignored."""
    incarnation: int = 0
    """Incarnation of the host when the attempt was assigned."""
    failures: int = 0
    """Attempts that the host reported as failed since the job was submitted or recovered."""
    losses: int = 0
    """Attempts that were lost with their host, or that the host stopped."""
    retry_at_ms: int = 0
    """Earliest time of the next attempt, in milliseconds since 1970."""
    phase: str = ""
    rows_done: int = 0
    rows_total: int = 0
    rows_per_s: float = 0.0
    """Rate of the current attempt from its latest reports; 0 if not known."""
    measured_ms: int = 0
    """Time of the last rate measurement; 0 if there was none."""
    measured_rows: int = 0
    """Rows done at the last rate measurement."""
    causes: tuple[str, ...] = ()
    """Causes of all unsuccessful attempts, oldest first."""
    started_ms: int = 0
    """Time at which the latest attempt was assigned."""
    finished_ms: int = 0
    outcome: TaskOutcome | None = None
    """Outcome of a finished task.

    Complete until the job ends; then only its result is kept, without totals and images."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A unit of work on one space, submitted to metad."""

    job_id: JobId
    space_id: SpaceId
    space: str
    kind: str
    """Name of a kind in `metad.model.job_kinds`."""
    watermark: int
    """The space's last commit number at submission.

    It never changes: a build contains exactly this state, so a recovery has the same input."""
    paired: tuple[str, ...]
    """Names of the edge types by id if in-copies are kept and must agree with out-copies.

    Empty if the space keeps no in-copies."""
    tasks: tuple[Task, ...]
    submitted_ms: int
    options: JobOptions = ()
    """Options in normalized form, with defaults filled in."""
    index: Index | None = None
    """Index that the job adds to its version, or removes; None for other jobs."""
    indexes: tuple[Index, ...] = ()
    """Indexes of the version to produce.

    Determined when the job starts: those of the previous version, with the job's own change. For
    a restore, those of the restored version."""
    declared: tuple[Index, ...] = ()
    """Indexes that the schema declares, which every version of the space has."""
    target_version: int = 0
    """Version that the job reads or restores; 0 if none."""
    state: JobState = JobState.QUEUE
    ending: JobState | None = None
    """State that a RUNNING job enters once no host works on it any more: STOPPED or FAILED."""
    version: int = 0
    """Version that the job published; 0 if none."""
    started_ms: int = 0
    finished_ms: int = 0
    cause: str = ""
    """Why the job failed, was stopped, or is about to be."""
    kept_ms: int = 0
    """Time at which the job was last stored. Progress alone is stored only now and then."""
    principal: str = ""
    """Principal that submitted the job, or recovered it last, if limits may apply; else empty."""

    @property
    def identity(self) -> tuple[SpaceId, str, int, int, JobOptions]:
        """Return the key by which a submitted job is recognized as identical to one in flight."""
        return (self.space_id, self.kind, self.watermark, self.target_version, self.options)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostStatus:
    """State of a storaged in the job machine."""

    incarnation: int
    online: bool
    since_ms: int
    """Time at which the host last came online or went offline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentVersion:
    """Current version of a space."""

    version: int
    watermark: int
    indexes: tuple[Index, ...] = ()
    """Indexes of the version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPolicy:
    """Limits of the job machine on attempts, waiting and retention."""

    max_attempts: int = 3
    """Failed attempts of a task before its job fails."""
    max_losses: int = 10
    """Attempts of a task that may be lost with their host before its job fails.

    Bounded, so that a build that crashes its host ends."""
    backoff_ms: int = 1_000
    """Milliseconds before the second attempt, give or take a half.

    Doubled for each further attempt."""
    backoff_limit_ms: int = 60_000
    away_limit_ms: int = 600_000
    """Milliseconds that a job waits for a host that is offline."""
    keep_jobs_ms: int = 7 * 24 * 3_600_000
    """Milliseconds for which ended jobs are remembered."""
    progress_interval_ms: int = 10_000
    """Milliseconds between two stored updates of progress alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineState:
    """Complete state of the job machine."""

    policy: JobPolicy = field(default_factory=JobPolicy)
    jobs: dict[JobId, Job] = field(default_factory=dict)
    """Jobs by id, ascending. The mapping is never changed in place."""
    hosts: dict[HostId, HostStatus] = field(default_factory=dict)
    published: dict[SpaceId, CurrentVersion] = field(default_factory=dict)
    next_job: int = 1
    next_task: int = 1


# Events.


@dataclass(frozen=True, slots=True, kw_only=True)
class HostParts:
    """Partitions of a space that one storaged holds."""

    host: HostId
    parts: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitJob:
    """Submission of a job."""

    now_ms: int
    space_id: SpaceId
    space: str
    kind: str
    watermark: int
    """The space's last commit number; 0 if nothing was ever committed."""
    shares: tuple[HostParts, ...]
    paired: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict)
    """Options as they were given."""
    version: int = 0
    """Version to read or restore; 0 if none was given and none is published."""
    index: Index | None = None
    """Index that the options name, for kinds that change indexes."""
    indexes: tuple[Index, ...] = ()
    """Indexes of the version that a restore reproduces."""
    declared: tuple[Index, ...] = ()
    """Indexes that the schema of the space declares."""
    principal: str = ""
    """Principal that submits the job, if limits may apply to it; else empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopJob:
    """Request to stop a job."""

    now_ms: int
    job_id: JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoverJob:
    """Request to resume a failed or stopped job."""

    now_ms: int
    job_id: JobId
    principal: str = ""
    """Principal that recovers the job, if limits may apply to it; else empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceDropped:
    """Deletion of a space; its jobs are stopped."""

    now_ms: int
    space_id: SpaceId


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSeen:
    """A storaged came online, came back, or restarted."""

    now_ms: int
    host: HostId
    incarnation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLost:
    """The lease of a storaged ended."""

    now_ms: int
    host: HostId


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskReport:
    """Report of a storaged on one attempt of a task."""

    task_id: TaskId
    attempt: int
    state: JobState
    phase: str = ""
    rows_done: int = 0
    rows_total: int = 0
    cause: str = ""
    permanent: bool = False
    """For FAILED: another attempt would fail as well."""
    outcome: TaskOutcome | None = None
    """Outcome, for FINISHED only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksReported:
    """All task reports of one heartbeat. A task that is missing does not run on that host."""

    now_ms: int
    host: HostId
    incarnation: int
    reports: tuple[TaskReport, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """Passage of time."""

    now_ms: int


Event = SubmitJob | StopJob | RecoverJob | SpaceDropped | HostSeen | HostLost | TasksReported | Tick


# Commands: effects for the driver to carry out. All commands of one event form one write.


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnJob:
    """Job that a submission led to: a new one, or the identical one in flight."""

    job_id: JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveJob:
    """Store the job before its new state becomes visible."""

    job: Job


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveOutcome:
    """Store those fields of a finished task's outcome that are kept."""

    job_id: JobId
    task_id: TaskId
    outcome: TaskOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishVersion:
    """Store the job's version, in the same write as the job itself."""

    job: Job
    outcome: TaskOutcome
    """Merged outcome of all tasks, by partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteJob:
    """Delete the job."""

    job_id: JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyStorageds:
    """Answer the polls of storageds: their desired state has changed."""


Command = ReturnJob | SaveJob | SaveOutcome | PublishVersion | DeleteJob | NotifyStorageds

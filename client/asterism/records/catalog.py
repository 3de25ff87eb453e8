"""What the catalog knows, as frozen records: spaces, versions, jobs, hosts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from asterism.records.display import graph_html
from asterism_model.html import table
from asterism_model.schema import Schema
from asterism_model.task_results import TaskResult
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb

TERMINAL_STATES = frozenset({"FINISHED", "FAILED", "STOPPED"})
"""States that a job does not leave by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceInfo:
    """A space."""

    name: str
    space_id: int
    schema: Schema
    version: int
    """The current published one; 0: none yet."""
    created_ms: int
    hosts: tuple[tuple[str, ...], ...]
    """``hosts[p]``: uuids of the storageds that hold part p."""

    def _repr_html_(self) -> str:
        """As a notebook shows it."""
        return graph_html(
            f"{self.name}, {f'version {self.version}' if self.version else 'nothing published'}",
            self.schema,
            None,
        )

    @classmethod
    def from_proto(cls, message: common_pb.Space) -> SpaceInfo:
        """As it came over the wire."""
        return cls(
            name=message.name,
            space_id=message.space_id,
            schema=Schema.from_proto(message.schema),
            version=message.version,
            created_ms=message.created_ms,
            hosts=tuple(tuple(part.hosts) for part in message.parts),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A job's share on one storaged."""

    task_id: int
    host: str
    parts: tuple[int, ...]
    attempt: int
    state: str
    phase: str
    rows_done: int
    rows_total: int
    rows_per_s: float
    """Of the attempt under way; 0: not known."""
    eta_s: float
    """Seconds to its end at that rate; 0: not known."""
    retry_at_ms: int
    """Of a waiting task: not ordered before; 0: at once."""
    causes: tuple[str, ...]
    """Of every failed attempt."""
    started_ms: int
    finished_ms: int
    result: TaskResult | None
    """Of a finished task that publishes nothing."""

    @classmethod
    def from_proto(cls, message: common_pb.Task) -> Task:
        """As it came over the wire."""
        return cls(
            task_id=message.task_id,
            host=message.host,
            parts=tuple(message.parts),
            attempt=message.attempt,
            state=common_pb.JobState.Name(message.state),
            phase=message.phase,
            rows_done=message.rows_done,
            rows_total=message.rows_total,
            rows_per_s=message.rows_per_s,
            eta_s=message.eta_s,
            retry_at_ms=message.retry_at_ms,
            causes=tuple(message.causes),
            started_ms=message.started_ms,
            finished_ms=message.finished_ms,
            result=TaskResult.from_proto(message.result) if message.HasField("result") else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Work asked of metad."""

    job_id: int
    space: str
    kind: str
    """build, audit, export-tables or compact."""
    options: Mapping[str, str]
    """As submitted, defaults filled in."""
    target_version: int
    """The version that it reads; 0: none."""
    state: str
    """QUEUE, RUNNING, FINISHED, FAILED or STOPPED."""
    ending: str
    """What a RUNNING job is on its way to: STOPPED or FAILED; empty: to its end."""
    cut: int
    """The space's last commit when it was submitted: what a build shows."""
    version: int
    """What it published; 0: nothing."""
    cause: str
    """Why it failed."""
    submitted_ms: int
    started_ms: int
    finished_ms: int
    rows_done: int
    """Over all tasks."""
    rows_total: int
    """Over all tasks, as far as they know."""
    rows_per_s: float
    """Of all running tasks together; 0: not known."""
    eta_s: float
    """Seconds to the end if the slowest task goes on as it does; 0: not known."""
    tasks: tuple[Task, ...]

    def _repr_html_(self) -> str:
        """As a notebook shows it: a table of the job and one of its tasks."""
        rows: list[tuple[str, object]] = [
            ("state", self.state),
            ("space", self.space),
            ("rows", f"{self.rows_done:,} of {self.rows_total:,}"),
        ]
        rows += [
            (name, value)
            for name, value in (("version", self.version), ("cause", self.cause))
            if value
        ]
        tasks = [
            [
                task.task_id,
                task.host,
                ", ".join(map(str, task.parts)),
                task.state,
                task.phase,
                f"{task.rows_done:,} of {task.rows_total:,}",
                task.attempt,
            ]
            for task in self.tasks
        ]
        return table(f"{self.kind} job {self.job_id}", ["", ""], rows) + table(
            "tasks", ["task", "host", "parts", "state", "phase", "rows", "attempt"], tasks
        )

    @property
    def ended(self) -> bool:
        """Whether it will not change by itself any more."""
        return self.state in TERMINAL_STATES

    @classmethod
    def from_proto(cls, message: common_pb.Job) -> Job:
        """As it came over the wire."""
        return cls(
            job_id=message.job_id,
            space=message.space,
            kind=message.kind,
            options=dict(message.options),
            target_version=message.target_version,
            state=common_pb.JobState.Name(message.state),
            ending=common_pb.JobState.Name(message.ending) if message.ending else "",
            cut=message.cut,
            version=message.version,
            cause=message.cause,
            submitted_ms=message.submitted_ms,
            started_ms=message.started_ms,
            finished_ms=message.finished_ms,
            rows_done=message.rows_done,
            rows_total=message.rows_total,
            rows_per_s=message.rows_per_s,
            eta_s=message.eta_s,
            tasks=tuple(Task.from_proto(task) for task in message.tasks),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A daemon that sends heartbeats to metad."""

    DEPRECATED_NAMES: ClassVar[tuple[str, ...]] = ("last_beat_ms",)
    """Properties that the command's JSON has beside the fields, for this release."""

    uuid: str
    role: str
    """STORAGED or GRAPHD."""
    address: str
    http_address: str
    online: bool
    last_heartbeat_ms: int
    parts: int
    free_bytes: int

    @classmethod
    def from_proto(cls, message: metad_pb.Host) -> Host:
        """As it came over the wire."""
        return cls(
            uuid=message.uuid,
            role=metad_pb.Role.Name(message.role),
            address=message.address,
            http_address=message.http_address,
            online=message.online,
            last_heartbeat_ms=message.last_heartbeat_ms,
            parts=message.parts,
            free_bytes=message.free_bytes,
        )

    @property
    def last_beat_ms(self) -> int:
        """Deprecated name of `last_heartbeat_ms`; the next release drops it."""
        return self.last_heartbeat_ms


def parse_job_state(name: str) -> str:
    """A job's state as it travels; InvalidRequest where it is none."""
    if name.upper() not in common_pb.JobState.keys()[1:]:
        raise InvalidRequest(
            f"job state {name!r}: expected QUEUE, RUNNING, FINISHED, FAILED or STOPPED"
        )
    return name.upper()

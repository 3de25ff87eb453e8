"""Records of the catalog: spaces, versions, jobs, hosts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from asterism.records.graph_display import counted, graph_html, short_text
from asterism_model.html import table
from asterism_model.schema import Schema
from asterism_model.schema.graph_schema import short_list
from asterism_model.task_results import TaskResult
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb

TERMINAL_STATES = frozenset({"FINISHED", "FAILED", "STOPPED"})
"""States that a job never leaves without a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceInfo:
    """Description of a graph space."""

    name: str
    space_id: int
    schema: Schema
    version: int
    """Current published version; 0: none yet."""
    created_ms: int
    hosts: tuple[tuple[str, ...], ...]
    """Uuids of the storageds that hold each partition: ``hosts[p]`` for partition p."""

    def __repr__(self) -> str:
        hosts = {uuid for uuids in self.hosts for uuid in uuids}
        return (
            f"SpaceInfo(name={self.name!r}, space_id={self.space_id}, version={self.version}, "
            f"{counted(self.schema.parts, 'partition')} on {counted(len(hosts), 'host')}, "
            f"node_types={short_list([t.name for t in self.schema.node_types])}, "
            f"edge_types={short_list([t.name for t in self.schema.edge_types])})"
        )

    def _repr_html_(self) -> str:
        """Return the HTML that notebooks display."""
        return graph_html(
            f"{self.name}, {f'version {self.version}' if self.version else 'nothing published'}",
            self.schema,
            None,
        )

    @classmethod
    def from_proto(cls, message: common_pb.Space) -> SpaceInfo:
        """Build a record from its protobuf message."""
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
    """Share of a job that runs on one storaged."""

    task_id: int
    host: str
    parts: tuple[int, ...]
    attempt: int
    state: str
    phase: str
    rows_done: int
    rows_total: int
    rows_per_s: float
    """Rows per second of the current attempt; 0: unknown."""
    eta_s: float
    """Estimated seconds to the end at that rate; 0: unknown."""
    retry_at_ms: int
    """Earliest time of the next attempt of a waiting task, in ms since the epoch; 0: at once."""
    causes: tuple[str, ...]
    """Error of every failed attempt."""
    started_ms: int
    finished_ms: int
    result: TaskResult | None
    """Result of a finished task that publishes nothing."""

    def __repr__(self) -> str:
        return (
            f"Task(task_id={self.task_id}, host={self.host!r}, state={self.state!r}, "
            f"phase={self.phase!r}, {self.rows_done:,} of {counted(self.rows_total, 'row')}, "
            f"attempt={self.attempt}, {counted(len(self.parts), 'partition')})"
        )

    @classmethod
    def from_proto(cls, message: common_pb.Task) -> Task:
        """Build a record from its protobuf message."""
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
    """Job that metad coordinates."""

    DEPRECATED_NAMES: ClassVar[tuple[str, ...]] = ("cut",)
    """Properties that the command's JSON includes with the fields in this release."""

    job_id: int
    space: str
    kind: str
    """Kind of work: build, index, audit, export-tables, compact, backup or restore."""
    options: Mapping[str, str]
    """Options as submitted, with defaults filled in."""
    target_version: int
    """Version that the job reads; 0: none."""
    state: str
    """QUEUE, RUNNING, FINISHED, FAILED or STOPPED."""
    ending: str
    """Pending end state of a RUNNING job, STOPPED or FAILED; empty: none."""
    watermark: int
    """Commit watermark at submission: a build includes commits up to it."""
    version: int
    """Version that the job published; 0: none."""
    cause: str
    """Reason for the failure."""
    submitted_ms: int
    started_ms: int
    finished_ms: int
    rows_done: int
    """Rows done, over all tasks."""
    rows_total: int
    """Rows in total, over all tasks, as far as known."""
    rows_per_s: float
    """Rows per second of all running tasks together; 0: unknown."""
    eta_s: float
    """Estimated seconds to the end at the rate of the slowest task; 0: unknown."""
    tasks: tuple[Task, ...]

    def __repr__(self) -> str:
        details: list[tuple[str, object]] = [("version", self.version), ("cause", self.cause)]
        return (
            f"Job(job_id={self.job_id}, space={self.space!r}, kind={self.kind!r}, "
            f"state={self.state!r}, {self.rows_done:,} of {counted(self.rows_total, 'row')}, "
            f"{counted(len(self.tasks), 'task')}"
            + "".join(f", {name}={short_text(value)}" for name, value in details if value)
            + ")"
        )

    def _repr_html_(self) -> str:
        """Return the HTML that notebooks display: a table of the job and one of its tasks."""
        rows: list[tuple[str, object]] = [
            ("state", self.state),
            ("space", self.space),
            ("rows", f"{self.rows_done:,} of {self.rows_total:,}"),
        ]
        rows += [
            (name, str(value))
            for name, value in (("version", self.version), ("cause", self.cause))
            if value
        ]
        tasks = [
            [
                str(task.task_id),
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
    def cut(self) -> int:
        """Deprecated name of `watermark`; the next release drops it."""
        return self.watermark

    @property
    def ended(self) -> bool:
        """True if the job has reached a terminal state."""
        return self.state in TERMINAL_STATES

    @classmethod
    def from_proto(cls, message: common_pb.Job) -> Job:
        """Build a record from its protobuf message."""
        return cls(
            job_id=message.job_id,
            space=message.space,
            kind=message.kind,
            options=dict(message.options),
            target_version=message.target_version,
            state=common_pb.JobState.Name(message.state),
            ending=common_pb.JobState.Name(message.ending) if message.ending else "",
            watermark=message.watermark,
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
    """Daemon that sends heartbeats to metad."""

    DEPRECATED_NAMES: ClassVar[tuple[str, ...]] = ("last_beat_ms",)
    """Properties that the command's JSON includes with the fields in this release."""

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
        """Build a record from its protobuf message."""
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
    """Return a job state in its wire form, or raise InvalidRequest."""
    if name.upper() not in common_pb.JobState.keys()[1:]:
        raise InvalidRequest(
            f"state={name!r}: expected QUEUE, RUNNING, FINISHED, FAILED or STOPPED"
        )
    return name.upper()

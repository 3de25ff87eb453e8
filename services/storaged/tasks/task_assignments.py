"""Task assignments of a storaged and their progress.

`storaged.app`, `task_runner` and `task_process` exchange these records.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from asterism_model.indexes import Index
from asterism_model.partition_stats import PartitionStats
from asterism_model.schema import Schema

QUEUED, RUNNING, FINISHED, FAILED, STOPPED = "queued", "running", "finished", "failed", "stopped"
REPAIR = "remake"
"""Kind of a storaged's self-assigned tasks: rebuild damaged images of a served version.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedVersion:
    """The fields of a published version that a task needs to read it."""

    job_id: int
    """Job that built the version."""
    watermark: int
    digest: str
    images: Mapping[int, str]
    """Digest of each partition's image."""
    totals: tuple[PartitionStats, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskAssignment:
    """A task that metad wants done.

    The pair (task_id, attempt) identifies an assignment: metad repeats it in every reply, and a
    repetition starts nothing.
    """

    task_id: int
    job_id: int
    attempt: int
    kind: str
    space_id: int
    space: str
    schema: Schema
    parts: tuple[int, ...]
    watermark: int
    loads: tuple[int, ...]
    commits: tuple[int, ...]
    readable_jobs: tuple[int, ...] = ()
    """Jobs that built the versions served when the task starts.

    The task may read their output, so their folders stay until it ends.
    """
    options: Mapping[str, str] = field(default_factory=dict)
    version: int = 0
    """Version to read; 0 if the task reads none."""
    indexes: tuple[Index, ...] = ()
    """Indexes that the version is built with; used by builds only."""
    published: PublishedVersion | None = None
    """Manifest of ``version``, or of the version to restore; None if it is no longer served."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskProgress:
    """Progress of a task."""

    task_id: int
    attempt: int
    state: str
    phase: str = ""
    rows_done: int = 0
    rows_total: int = 0
    cause: str = ""
    permanent: bool = False
    """True if another attempt would fail the same way."""
    result: dict[str, Any] = field(default_factory=dict)
    """Result of a finished task: ``totals``, ``images``, and ``made`` (a TaskResult message).
    """


class TaskHandle(Protocol):
    """Handle of a running task.

    Attributes
    ----------
    progress : TaskProgress
        Latest progress; replaced as a whole.
    done : threading.Event
        Set once the task has ended and its child process, if any, is reaped.
    """

    progress: TaskProgress
    done: threading.Event

    def cancel(self) -> None:
        """Request the end of the task without waiting for it; ``done`` is set afterwards."""

"""What a storaged is asked to do, and where it is with it: the records that `storaged.app`,
`task_runner` and `subprocesses` pass on.
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
"""The kind of the orders that a storaged gives itself: damaged parts of a served version, built
again.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedVersion:
    """A published version, as far as a reading of it needs to know."""

    job_id: int
    """The build that made it."""
    cut: int
    digest: str
    images: Mapping[int, str]
    """part -> digest."""
    totals: tuple[PartitionStats, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskAssignment:
    """What metad wants done. The same (task_id, attempt) is one order, however often it is
    repeated.
    """

    task_id: int
    job_id: int
    attempt: int
    kind: str
    space_id: int
    space: str
    schema: Schema
    parts: tuple[int, ...]
    cut: int
    loads: tuple[int, ...]
    commits: tuple[int, ...]
    readable_jobs: tuple[int, ...] = ()
    """Jobs whose versions are served while it begins: it may read what they built, so that they
    stay until it ends.
    """
    options: Mapping[str, str] = field(default_factory=dict)
    version: int = 0
    """The one to read; 0 where none is."""
    indexes: tuple[Index, ...] = ()
    """Of a build: that its version is to have."""
    published: PublishedVersion | None = None
    """What was published as that version, or for a restore is to be; None where it is not served
    any more.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskProgress:
    """Where an order is."""

    task_id: int
    attempt: int
    state: str
    phase: str = ""
    rows_done: int = 0
    rows_total: int = 0
    cause: str = ""
    permanent: bool = False
    """Another attempt would come to the same."""
    result: dict[str, Any] = field(default_factory=dict)
    """Of a finished one: ``totals``, ``images``, and ``made`` as common.proto's TaskResult."""


class TaskHandle(Protocol):
    """An order that is being carried out."""

    progress: TaskProgress
    done: threading.Event

    def cancel(self) -> None:
        """End it soon."""

"""Records of the catalog: spaces, loads, chunks, versions, pins, removals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from asterism_model.fingerprints import PartFingerprint
from asterism_model.indexes import Index
from asterism_model.partition_stats import Element, PartitionStats
from asterism_model.removals import RemovalRequest
from asterism_model.schema import Schema
from metad.model.ids import HostId, JobId, LoadId, PinId, SpaceId
from metad.model.task_outcomes import PartImageDigest
from metad.store.port import Changes


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """One graph."""

    space_id: SpaceId
    name: str
    schema: Schema
    parts: tuple[tuple[HostId, ...], ...]
    """``parts[p]``: the storageds that hold part p, first the preferred one."""
    version: int
    """The current published version; 0 = none yet."""
    created_ms: int


class LoadState(Enum):
    """Where a load is; the numbers are those of the wire."""

    OPEN = 1
    """It may still grow; nobody sees it."""
    COMMITTED = 2
    """It has its place in the order of writes; builds from then on see it."""
    ABANDONED = 3
    """Its blocks may go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRecord:
    """A run of writes that becomes visible as one."""

    load_id: LoadId
    space_id: SpaceId
    space: str
    state: LoadState
    commit: int
    """Its place in its space's order of writes; 0 = not committed."""
    source: str
    resume_key: str
    created_ms: int
    rejected: int
    """Bad rows that the client counted."""
    deletes: bool = False
    """Whether it deletes nodes; known once it is committed."""
    seen_ms: int = 0
    """When its client was last heard of, give or take a minute; 0 = when it was created."""
    ended_ms: int = 0
    """When it was abandoned."""
    fingerprint: tuple[PartFingerprint, ...] | None = None
    """Of a committed one: what it wrote, by partition; None where a release before committed it."""
    is_purged: bool = False
    """Of an abandoned one: whether every storaged of its space has said that none of its blocks is
    left.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """A storaged's word that a load is written no more, and what it holds of it."""

    host: HostId
    number: int
    """It covers every admission up to this number."""
    parts: tuple[PartFingerprint, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewChunk:
    """A run of rows of one type, as a client brings it."""

    index: int
    element: Element
    type_id: int
    rows: int
    digest: str
    """Of its content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk(NewChunk):
    """A registered chunk."""

    base: int
    """The id of its first edge; 0 for nodes."""
    written: bool
    """Whether every part that it touches has acknowledged it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A published version of a space."""

    space_id: SpaceId
    version: int
    cut: int
    job_id: JobId
    created_ms: int
    totals: tuple[PartitionStats, ...]
    images: tuple[PartImageDigest, ...]
    digest: str
    """sha256 of all of the above as it travels; empty before it is sealed. Of a restored version,
    of the original.
    """
    origin_space_id: int = 0
    """The space whose backup it came from; 0 = it was built here."""
    origin_job_id: int = 0
    """The build that made it there; 0 = it was built here."""
    indexes: tuple[Index, ...] = ()
    """That every part has, ascending; in the digest too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """A lease on a version: while it lasts, the version is served."""

    pin_id: PinId
    space_id: SpaceId
    space: str
    version: int
    owner: str
    """Who asked for it, in words."""
    term_ms: int
    """What each renewal grants."""
    created_ms: int
    expires_ms: int
    """Unless it is renewed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceRecord:
    """All that the catalog knows of a space up to one version."""

    space: Space
    manifest: Manifest
    loads: tuple[tuple[LoadRecord, tuple[Chunk, ...]], ...]
    """Committed up to the manifest's cut, in commit order."""
    last_commit: int
    next_edge_ids: tuple[int, ...]
    """By edge type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingRemoval:
    """A removal order that is kept until every storaged has carried it out."""

    request: RemovalRequest
    hosts: tuple[HostId, ...]
    """The storageds that have not carried it out yet."""
    created_ms: int


@dataclass(frozen=True, slots=True)
class PendingWrite:
    """A change that is decided but not made: what to write, and what to take on once that is
    durable.
    """

    changes: Changes = field(default_factory=dict)
    apply: Callable[[], None] = lambda: None

"""Records of the catalog: spaces, loads, chunks, versions, pins, removals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from asterism_model.elements import Element
from asterism_model.indexes import Index
from asterism_model.load_fingerprints import PartFingerprint
from asterism_model.partition_stats import PartitionStats
from asterism_model.schema import Schema
from asterism_model.storage_removals import RemovalRequest
from metad.model.ids import HostId, JobId, LoadId, PinId, SpaceId
from metad.model.task_outcomes import PartImageDigest
from metad.store.port import Changes


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """One graph space."""

    space_id: SpaceId
    name: str
    schema: Schema
    parts: tuple[tuple[HostId, ...], ...]
    """``parts[p]``: storageds that hold partition p, the preferred one first."""
    version: int
    """Current published version; 0 if there is none yet."""
    created_ms: int


class LoadState(Enum):
    """State of a load; the values are those of the wire."""

    OPEN = 1
    """More chunks may be added; the load is not visible."""
    COMMITTED = 2
    """The load has a commit number; builds from then on include it."""
    ABANDONED = 3
    """The load was given up; its blocks may be removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRecord:
    """A set of writes that become visible together."""

    load_id: LoadId
    space_id: SpaceId
    space: str
    state: LoadState
    commit: int
    """Number of its commit within the space; 0 if it is not committed."""
    source: str
    resume_key: str
    created_ms: int
    rejected: int
    """Number of bad rows that the client counted."""
    deletes: bool = False
    """True if the load deletes nodes; known once it is committed."""
    seen_ms: int = 0
    """Time of the client's last request, to about a minute; 0 if there was none yet."""
    ended_ms: int = 0
    """Time at which the load was abandoned."""
    fingerprint: tuple[PartFingerprint, ...] | None = None
    """Fingerprint of a committed load by partition; None if an earlier release committed it."""
    is_purged: bool = False
    """True if no storaged of the space holds a block of the load any more.

    Set for an abandoned load once every storaged has confirmed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """A storaged's confirmation that it writes a load no more, and what it holds of the load."""

    host: HostId
    number: int
    """Highest admission that the seal covers."""
    parts: tuple[PartFingerprint, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewChunk:
    """A run of rows of one type, as a client registers it."""

    index: int
    element: Element
    type_id: int
    rows: int
    digest: str
    """Digest of the content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk(NewChunk):
    """A registered chunk."""

    base: int
    """Id of the first edge; 0 for nodes."""
    written: bool
    """True if every partition that the chunk touches has acknowledged it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A published version of a space."""

    space_id: SpaceId
    version: int
    watermark: int
    job_id: JobId
    created_ms: int
    totals: tuple[PartitionStats, ...]
    images: tuple[PartImageDigest, ...]
    digest: str
    """sha256 of the fields above as serialized; empty until it is computed.

    A restored version keeps the digest of the original."""
    origin_space_id: int = 0
    """Space that the backup was taken from; 0 if the version was built here."""
    origin_job_id: int = 0
    """Build job that made the original; 0 if the version was built here."""
    indexes: tuple[Index, ...] = ()
    """Indexes that every partition has, ascending; included in the digest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """A lease on a version: while it lasts, the version is served."""

    pin_id: PinId
    space_id: SpaceId
    space: str
    version: int
    owner: str
    """Label of the owner, given by the client."""
    term_ms: int
    """Length of the lease that each renewal grants, in milliseconds."""
    created_ms: int
    expires_ms: int
    """Time at which the lease ends unless it is renewed."""
    principal: str = ""
    """Creator of the pin, if limits may apply to it; else empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceRecord:
    """Everything that the catalog knows of a space up to one version."""

    space: Space
    manifest: Manifest
    loads: tuple[tuple[LoadRecord, tuple[Chunk, ...]], ...]
    """Loads committed up to the manifest's watermark, in commit order."""
    last_commit: int
    next_edge_ids: tuple[int, ...]
    """Next edge id by edge type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingRemoval:
    """A removal request that is kept until every storaged has carried it out."""

    request: RemovalRequest
    hosts: tuple[HostId, ...]
    """Storageds that have not carried it out yet."""
    created_ms: int


@dataclass(frozen=True, slots=True)
class PendingWrite:
    """A prepared change: the keys to write, and the update to apply once the write is durable."""

    changes: Changes = field(default_factory=dict)
    apply: Callable[[], None] = lambda: None

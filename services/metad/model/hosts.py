"""Records of daemons: heartbeats, followed catalog positions, inventories."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from metad.model.ids import HostId, LoadId, SpaceId


class DaemonRole(Enum):
    """Role of a daemon; the values are those of the wire."""

    STORAGED = 1
    """Holds partitions, builds versions and samples from them."""
    GRAPHD = 2
    """Serves requests of clients."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostResources:
    """Resource use of a daemon's process and of the disk that holds its folder."""

    disk_id: str
    """Equal for folders on one disk of one machine; empty without a folder."""
    disk_total_bytes: int
    cpu_cores: float
    """Processor seconds per second."""
    cpu_count: int
    memory_bytes: int
    memory_total_bytes: int
    started_ms: int
    space_bytes: tuple[tuple[SpaceId, int], ...] = ()
    """(space, disk usage of its folder in bytes)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatReport:
    """Report of a daemon about itself, in a heartbeat."""

    uuid: HostId
    role: DaemonRole
    incarnation: int
    address: str
    http_address: str
    held_versions: frozenset[tuple[SpaceId, int]] = frozenset()
    """(space, version) that a storaged can sample from, or that a graphd has seen."""
    free_bytes: int = 0
    held_bytes: int = 0
    """Disk space that the daemon's folder takes, in bytes; 0 if not known."""
    start_id: int = 0
    """Random number of the process; 0 if not reported."""
    dropped_loads: frozenset[LoadId] = frozenset()
    """Abandoned loads from the desired state that this storaged holds no block of."""
    resources: HostResources | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """Record of a daemon in metad."""

    uuid: HostId
    role: DaemonRole
    address: str
    http_address: str
    incarnation: int
    """Number of the daemon's start, growing with each; a process with a smaller one is fenced."""
    online: bool
    last_heartbeat_ms: int
    held_versions: frozenset[tuple[SpaceId, int]] = frozenset()
    free_bytes: int = 0
    held_bytes: int = 0
    start_id: int = 0
    """Random number of the process; 0 if not known."""
    resources: HostResources | None = None
    """Reported by the last heartbeat; not stored."""

    def advertised_state(self) -> tuple[str, str, int, bool]:
        """Return the fields that other daemons see.

        A heartbeat that leaves them unchanged is not stored and wakes no poll."""
        return (self.address, self.http_address, self.incarnation, self.online)


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogPosition:
    """A position in a catalog's history."""

    history: str
    term: str
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HighestIds:
    """Highest identifiers that a daemon or a catalog knows; 0 if it knows none."""

    space_id: int = 0
    job_id: int = 0
    load_id: int = 0

    def exceeds(self, other: HighestIds) -> bool:
        """Return whether one of these identifiers is above the other's."""
        return (
            self.space_id > other.space_id
            or self.job_id > other.job_id
            or self.load_id > other.load_id
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Follower:
    """A daemon with the catalog position that it follows."""

    uuid: HostId
    role: DaemonRole
    cluster: str
    position: CatalogPosition | None
    highest: HighestIds


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryBuild:
    """Output of one job on a storaged."""

    job_id: int
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InventorySpace:
    """Contents of a storaged's folder for one space."""

    space_id: int
    name: str
    bytes: int
    builds: tuple[InventoryBuild, ...]
    checkpoints: tuple[int, ...]
    loads: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """Contents of a storaged's folder."""

    spaces: tuple[InventorySpace, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownData:
    """Data on a storaged that the catalog does not contain."""

    host: HostId
    space_id: int
    space: str
    bytes: int = 0
    build: InventoryBuild | None = None
    """Output of one job; None for a whole space, or for loads of it."""
    loads: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogState:
    """Position of the catalog, and the daemons and data that are ahead of it."""

    cluster: str
    position: CatalogPosition
    ahead: tuple[Follower, ...] = ()
    reported: frozenset[HostId] = frozenset()
    """Storageds among ``ahead`` that have reported an inventory."""
    unknown: tuple[UnknownData, ...] = ()
    open_loads: tuple[int, ...] = ()
    jobs: tuple[int, ...] = ()
    fault: str = ""

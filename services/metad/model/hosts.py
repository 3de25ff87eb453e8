"""Records of daemons: heartbeats, the catalog positions that they follow, inventories."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from metad.model.ids import HostId, LoadId, SpaceId


class Role(Enum):
    """What a daemon does; the numbers are those of the wire."""

    STORAGED = 1
    """It holds parts, builds and draws."""
    GRAPHD = 2
    """It answers trainers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatReport:
    """What a daemon says of itself in a beat."""

    uuid: HostId
    role: Role
    incarnation: int
    address: str
    http_address: str
    held_versions: frozenset[tuple[SpaceId, int]] = frozenset()
    """(space, version) that it can draw from (storaged) or has seen (graphd)."""
    free_bytes: int = 0
    held_bytes: int = 0
    """That its folder takes of the disk; 0: not known."""
    start_id: int = 0
    """Random number of the process; 0: not said."""
    dropped_loads: frozenset[LoadId] = frozenset()
    """Of the abandoned loads that it was told of: those that it holds no block of (storaged)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A daemon as metad knows it."""

    uuid: HostId
    role: Role
    address: str
    http_address: str
    incarnation: int
    """Larger at each of its starts; an older one is fenced."""
    online: bool
    last_heartbeat_ms: int
    held_versions: frozenset[tuple[SpaceId, int]] = frozenset()
    free_bytes: int = 0
    held_bytes: int = 0
    start_id: int = 0
    """Random number of its process; 0: not known."""

    def advertised_state(self) -> tuple[str, str, int, bool]:
        """What others are told of it: while this stays, a beat changes nothing."""
        return (self.address, self.http_address, self.incarnation, self.online)


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogPosition:
    """A point in a catalog's history."""

    history: str
    term: str
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HighestIds:
    """The highest identifiers that a storaged holds; 0 = none."""

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
    """A daemon that is ahead of the catalog."""

    uuid: HostId
    role: Role
    cluster: str
    position: CatalogPosition | None
    highest: HighestIds


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryBuild:
    """The output of one job on a storaged."""

    job_id: int
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InventorySpace:
    """The contents of a storaged's folder for one space."""

    space_id: int
    name: str
    bytes: int
    builds: tuple[InventoryBuild, ...]
    checkpoints: tuple[int, ...]
    loads: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """The contents of a storaged's folder."""

    spaces: tuple[InventorySpace, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownData:
    """Data on a storaged that the catalog does not contain."""

    host: HostId
    space_id: int
    space: str
    bytes: int = 0
    build: InventoryBuild | None = None
    """None for a whole space, or for loads of it."""
    loads: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogState:
    """The catalog's position, and the daemons and data that are ahead of it."""

    cluster: str
    position: CatalogPosition
    ahead: tuple[Follower, ...] = ()
    reported: frozenset[HostId] = frozenset()
    """The storageds ahead that have reported an inventory."""
    unknown: tuple[UnknownData, ...] = ()
    open_loads: tuple[int, ...] = ()
    jobs: tuple[int, ...] = ()
    fault: str = ""

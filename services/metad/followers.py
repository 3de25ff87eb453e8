"""The daemons that follow this metad's catalog, and those that followed a newer one.

`metad.attendance` and `metad.api` pass in the positions that daemons report; `metad.service` calls
`Followers.check` before every change. After a start, metad assigns no identifier until every
storaged that was online has reported its position: a restored copy of the catalog would assign the
identifiers of the original a second time.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from enum import Enum

from asterism_proto.errors import Conflict, NotReady
from metad.board import Board
from metad.catalog.catalog import Catalog
from metad.catalog.history import Adoption, Highest, Position, lost
from metad.catalog.loads import Loads
from metad.catalog.removals import Removal, RemovalKind
from metad.catalog.spaces import hosts_of
from metad.clock import Clock
from metad.cluster import Cluster, Role
from metad.ids import HostId
from metad.jobs.driver import Driver

logger = logging.getLogger(__name__)

_CONFIRMED_SLACK_S = 1.0
"""Added to the lease: seconds that a change waits for storageds after a start."""
_FOREIGN_LIMIT = 1000
"""The most hosts of other clusters that are remembered."""
REMEDY = (
    "stop metad and put its newer data folder back, or list what would be given up with `asterism metad adopt --dry-run`, then run "
    "`asterism metad adopt --yes` to follow this catalog"
)


class Standing(Enum):
    """The relation of a daemon to the catalog."""

    FOLLOWS = 1
    """The catalog contains the position that it followed."""
    GIVEN_UP = 2
    """It followed a position that was given up: it follows once its inventory is reported."""
    AHEAD = 3
    """It followed a newer or a different catalog: it is assigned no tasks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildHeld:
    """The output of one job on a storaged."""

    job_id: int
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceHeld:
    """The contents of a storaged's folder for one space."""

    space_id: int
    name: str
    bytes: int
    builds: tuple[BuildHeld, ...]
    checkpoints: tuple[int, ...]
    loads: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """The contents of a storaged's folder."""

    spaces: tuple[SpaceHeld, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """Data on a storaged that the catalog does not contain."""

    host: HostId
    space_id: int
    space: str
    bytes: int = 0
    build: BuildHeld | None = None
    """None for a whole space, or for loads of it."""
    loads: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Follower:
    """A daemon that is ahead of the catalog."""

    uuid: HostId
    role: Role
    cluster: str
    position: Position | None
    highest: Highest


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogState:
    """The catalog's position, and the daemons and data that are ahead of it."""

    cluster: str
    position: Position
    ahead: tuple[Follower, ...] = ()
    reported: frozenset[HostId] = frozenset()
    """The storageds ahead that have reported an inventory."""
    unknown: tuple[Unknown, ...] = ()
    open_loads: tuple[int, ...] = ()
    jobs: tuple[int, ...] = ()
    fault: str = ""


@dataclass(slots=True)
class Followers:
    """Positions and inventories that daemons reported.

    Parameters
    ----------
    board, catalog, cluster, driver, clock
        Of the metad. Every method takes the lock of ``board``.
    lease_s : float
        Seconds after which a storaged that sends no heartbeat is offline.
    """

    board: Board
    catalog: Catalog
    cluster: Cluster
    driver: Driver
    clock: Clock
    lease_s: float
    _unheard: set[HostId] = field(init=False)
    """Storageds that were online when metad last stopped and sent no heartbeat since."""
    _ahead: dict[HostId, Follower] = field(init=False, default_factory=dict)
    _inventories: dict[HostId, Inventory] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._unheard = {host.uuid for host in self.cluster.online(Role.STORAGED)}

    # Positions.

    def judge(self, position: Position | None, highest: Highest) -> Standing:
        """Return the standing of a daemon by its position and the highest ids that it holds."""
        history = self.catalog.history
        if highest.beyond(history.highest()):
            return Standing.AHEAD
        if position is None or history.contains(position):
            return Standing.FOLLOWS
        return Standing.GIVEN_UP if history.gave_up(position) else Standing.AHEAD

    def heard(self, follower: Follower) -> Standing:
        """Record the position that a daemon reports, and return its standing."""
        with self.board.lock:
            foreign = bool(follower.cluster) and follower.cluster != self.catalog.cluster
            standing = Standing.AHEAD if foreign else self.judge(follower.position, follower.highest)
            if follower.uuid in self._unheard or (standing is Standing.AHEAD) != (follower.uuid in self._ahead):
                self._unheard.discard(follower.uuid)
                self.board.wake()  # requests that wait for it
            if standing is not Standing.AHEAD:
                if self._ahead.pop(follower.uuid, None) is not None:
                    logger.info("follower_agrees", extra={"host": follower.uuid})
                if standing is Standing.FOLLOWS:
                    self._inventories.pop(follower.uuid, None)
            elif follower.uuid in self._ahead or len(self._ahead) < _FOREIGN_LIMIT:
                if follower.uuid not in self._ahead:
                    followed = follower.position.revision if follower.position is not None else 0
                    logger.error(
                        "catalog_older" if not foreign else "catalog_foreign",
                        extra={"host": follower.uuid, "followed": followed, "revision": self.catalog.history.position.revision},
                    )
                self._ahead[follower.uuid] = follower
            return standing

    def is_ahead(self, host: HostId) -> bool:
        """Return whether a daemon of this cluster is known to be ahead of the catalog."""
        follower = self._ahead.get(host)
        return follower is not None and follower.cluster in ("", self.catalog.cluster)

    def fault(self) -> str:
        """Return why daemons do not follow the catalog, with the remedy; else empty."""
        with self.board.lock:
            if foreign := self._foreign():
                return (
                    f"cluster={self.catalog.cluster}: expected {' or '.join(foreign)}; all online storageds belong to another cluster, as after "
                    f"the loss of metad's data folder: put the folder back, or run `asterism metad adopt --cluster ID --dry-run`, then "
                    f"`asterism metad adopt --cluster ID --yes`"
                )
            own = [f for f in self._ahead.values() if f.cluster in ("", self.catalog.cluster)]
            if own:
                newest = max((f.position.revision for f in own if f.position is not None), default=0)
                return (
                    f"revision={self.catalog.history.position.revision}: the catalog is older than what {len(own)} daemons followed (up to revision "
                    f"{newest}), or has a different history; metad assigns no tasks and refuses changes: {REMEDY}"
                )
            return ""

    def _foreign(self) -> list[str]:
        """Return the clusters of online storageds if none of them belongs to this one."""
        others = sorted({f.cluster for f in self._ahead.values()} - {"", self.catalog.cluster})
        if not others or self.cluster.online(Role.STORAGED):
            return []
        return [] if any(f.role is Role.STORAGED and f.cluster in ("", self.catalog.cluster) for f in self._ahead.values()) else others

    def settled(self) -> bool:
        """Return whether the catalog may be changed."""
        with self.board.lock:
            self._unheard = {uuid for uuid in self._unheard if (host := self.cluster.get(uuid)) is not None and host.online}
            return not self._unheard and not self.fault()

    def check(self) -> None:
        """Wait until storageds have confirmed the catalog after a start; NotReady if they do not.

        Called with the board's lock, which is released while waiting.
        """
        until = time.monotonic() + self.lease_s + _CONFIRMED_SLACK_S
        while not self.settled():
            fault = self.fault()
            if fault:
                raise NotReady(fault)
            left = until - time.monotonic()
            if left <= 0:
                waiting = ", ".join(sorted(self._unheard))
                raise NotReady(f"metad has just started: expected storageds {waiting} to confirm the catalog; try again in a few seconds")
            self.board.wait_woken(left)

    # Inventories and adoption.

    def adoptable(self) -> bool:
        """Return whether daemons are ahead and all storageds among them have reported."""
        with self.board.lock:
            return bool(self._ahead) and all(f.role is not Role.STORAGED or f.uuid in self._inventories for f in self._ahead.values())

    def report(self, follower: Follower, inventory: Inventory) -> None:
        """Record a storaged's inventory, and order the removal of what was given up."""
        with self.board.lock:
            standing = self.heard(follower)
            self._inventories[follower.uuid] = inventory
            if standing is Standing.GIVEN_UP:
                self._order_away(self._unknown(follower.uuid, inventory, self.catalog.history.given_up_ids()))

    def state(self) -> CatalogState:
        """Return the catalog's position, and the daemons and data that are ahead of it."""
        with self.board.lock:
            history = self.catalog.history
            unknown: list[Unknown] = []
            for uuid in self._ahead:
                if uuid in self._inventories:
                    unknown += self._unknown(uuid, self._inventories[uuid], None)
            stands = bool(self._ahead)
            return CatalogState(
                cluster=self.catalog.cluster,
                position=history.position,
                ahead=tuple(self._ahead.values()),
                reported=frozenset(self._inventories.keys() & self._ahead.keys()),
                unknown=tuple(unknown),
                open_loads=tuple(self._loads().open_ids()) if stands else (),
                jobs=tuple(job.job_id for job in self.driver.state.jobs.values() if not job.state.ended) if stands else (),
                fault=self.fault(),
            )

    def adopt(self, cluster: str) -> CatalogState:
        """Make daemons that followed a newer catalog follow this one; return the state before.

        Raises
        ------
        Conflict
            If the daemons belong to another cluster, or to several, and ``cluster`` names none of them.
        NotReady
            If an online storaged has not reported its inventory yet.
        """
        with self.board.lock:
            taken = self._taken_over(cluster)
            before = self.state()
            if not taken:
                return before
            silent = sorted(f.uuid for f in taken if f.role is Role.STORAGED and f.uuid not in self._inventories)
            if silent:
                raise NotReady(f"inventory: expected reports of storageds {', '.join(silent)}; try again in a few seconds")
            over: dict[str, int] = {}
            for follower in taken:
                if follower.position is not None and not self.catalog.history.contains(follower.position):
                    history, revision = follower.position.history, follower.position.revision
                    over[history] = max(revision, over.get(history, 0))
            highest = max((number for f in taken for number in (f.highest.space_id, f.highest.job_id, f.highest.load_id)), default=0)
            self._close_up()
            self.catalog.adopt(over, highest, cluster=cluster or self.catalog.cluster)
            self.driver.skip_ids(self.catalog.history.position.revision)
            adoptions = self.catalog.history.given_up_ids()
            for follower in taken:
                if follower.role is Role.STORAGED:
                    self._order_away(self._unknown(follower.uuid, self._inventories[follower.uuid], adoptions))
                self._ahead.pop(follower.uuid, None)
            logger.warning("catalog_adopted", extra={"over": over, "revision": self.catalog.history.position.revision})
            self.board.changed()
            return before

    def _taken_over(self, cluster: str) -> list[Follower]:
        others = sorted({f.cluster for f in self._ahead.values()} - {"", self.catalog.cluster})
        if not cluster and (foreign := self._foreign()):
            raise Conflict(f"the daemons that answer belong to the cluster {' and '.join(foreign)}: name the one to take over with --cluster")
        if cluster and cluster not in (*others, self.catalog.cluster):
            there = ", ".join(others) or "none"
            raise Conflict(f"cluster={cluster!r}: no daemon of that cluster has spoken to this metad; there is {there}")
        wanted = cluster or self.catalog.cluster
        # A graphd names no cluster: it follows the metad that it was given.
        return [f for f in self._ahead.values() if f.cluster in ("", wanted)]

    def _close_up(self) -> None:
        """End what is under way: daemons may hold more of it than the catalog knows."""
        now_ms = self.clock()
        for load_id in self._loads().open_ids():
            self._loads().abandon(load_id, now_ms=now_ms)
        for job in list(self.driver.state.jobs.values()):
            if not job.state.ended and job.ending is None:
                self.driver.stop(job.job_id)

    def _loads(self) -> Loads:
        return self.catalog.loads

    def _unknown(self, host: HostId, inventory: Inventory, adoptions: tuple[Adoption, ...] | None) -> list[Unknown]:
        """Return what a storaged holds that the catalog does not know.

        Parameters
        ----------
        adoptions : tuple of Adoption or None
            What was given up so far; None: as if the catalog were adopted now.
        """
        known = self.catalog.history.highest()

        def is_lost(kind: str, number: int) -> bool:
            return number > getattr(known, kind) if adoptions is None else lost(adoptions, kind, number)

        found: list[Unknown] = []
        for held in inventory.spaces:
            space = self.catalog.spaces.get(held.space_id)
            if is_lost("space_id", held.space_id):
                found.append(Unknown(host=host, space_id=held.space_id, space=held.name, bytes=held.bytes))
                continue
            if space is None or host not in hosts_of(space):
                continue
            jobs = {build.job_id: build for build in held.builds}
            jobs |= {job_id: BuildHeld(job_id=job_id, version=0) for job_id in held.checkpoints if job_id not in jobs}
            gone = [jobs[job_id] for job_id in sorted(jobs) if is_lost("job_id", job_id)]
            found += [Unknown(host=host, space_id=held.space_id, space=space.name, build=build) for build in gone]
            loads = tuple(load_id for load_id in held.loads if is_lost("load_id", load_id))
            if loads:
                found.append(Unknown(host=host, space_id=held.space_id, space=space.name, loads=loads))
        return found

    def _order_away(self, unknown: list[Unknown]) -> None:
        now_ms, wanted = self.clock(), list[Removal]()
        for item in unknown:
            pending = {removal.named for removal in self.catalog.removals.of(item.host)}
            kinds = [RemovalKind.LOADS] if item.loads else [RemovalKind.SPACE]
            if item.build is not None:
                kinds = [RemovalKind.BUILD, RemovalKind.LEFTOVERS]
            for kind in kinds:
                removal = Removal(
                    kind=kind,
                    space_id=item.space_id,
                    job_id=item.build.job_id if item.build is not None else 0,
                    loads=item.loads,
                    reason="given up when an older catalog was adopted",
                    hosts=(item.host,),
                    created_ms=now_ms,
                )
                if removal.named not in pending:
                    wanted.append(removal)
        if wanted:
            step = self.catalog.removals.order(wanted)
            self.catalog.store.write(step.changes)
            step.apply()
            self.board.changed()

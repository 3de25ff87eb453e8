"""Tracking of daemons that follow this metad's catalog, or followed a newer one.

`metad.host_registry` and `metad.heartbeats_api` pass in the positions that daemons report.
`metad.catalog_service` calls `Followers.check_writable` before every change. After a start, metad
assigns no identifier until every storaged that was online has reported its position: a restored
copy of the catalog would assign the identifiers of the original a second time."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from enum import Enum

from asterism_model.storage_removals import RemovalKind, RemovalRequest
from asterism_proto.errors import Conflict, NotReady
from metad.catalog.catalog import Catalog
from metad.catalog.loads import Loads
from metad.catalog.position_history import Adoption, was_given_up
from metad.catalog.spaces import space_hosts
from metad.change_feed import ChangeFeed
from metad.clock import Clock
from metad.jobs.driver import Driver
from metad.membership import ClusterMembership
from metad.model.catalog import PendingRemoval
from metad.model.hosts import (
    CatalogPosition,
    CatalogState,
    DaemonRole,
    Follower,
    HighestIds,
    Inventory,
    InventoryBuild,
    UnknownData,
)
from metad.model.ids import HostId

logger = logging.getLogger(__name__)

_CONFIRM_SLACK_S = 1.0
"""Seconds that a change waits for storageds after a start, in addition to the lease."""
_MAX_WAIT_S = 0.5
"""Longest single wait for confirmation, in seconds.

Not every lease that ends wakes a waiter."""
_FOREIGN_LIMIT = 1000
"""Maximum number of remembered hosts of other clusters."""
REMEDY = (
    "stop metad and put its newer data folder back, or list what would be lost with `asterism "
    "metad adopt --dry-run`, then run `asterism metad adopt --yes` to follow this catalog"
)


class FollowerStatus(Enum):
    """Relation of a daemon to the catalog."""

    FOLLOWING = 1
    """The catalog contains the position that the daemon followed."""
    GIVEN_UP = 2
    """The daemon followed a position that was given up.

    It follows this catalog once its inventory is reported."""
    AHEAD = 3
    """The daemon followed a newer or a different catalog; it is assigned no tasks."""


@dataclass(slots=True)
class Followers:
    """Positions and inventories that daemons reported.

    Parameters
    ----------
    change_feed, catalog, cluster, driver, clock
        Components of the metad. Every method takes the lock of ``change_feed``.
    lease_s : float
        Seconds after which a storaged that sends no heartbeat is offline.
    """

    change_feed: ChangeFeed
    catalog: Catalog
    cluster: ClusterMembership
    driver: Driver
    clock: Clock
    lease_s: float
    _unconfirmed: set[HostId] = field(init=False)
    """Storageds that were online when metad last stopped and sent no heartbeat since."""
    _ahead: dict[HostId, Follower] = field(init=False, default_factory=dict)
    _inventories: dict[HostId, Inventory] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._unconfirmed = {host.uuid for host in self.cluster.online(DaemonRole.STORAGED)}

    # Positions.

    def status_of(
        self, position: CatalogPosition | None, highest_ids: HighestIds
    ) -> FollowerStatus:
        """Return the status of a daemon by its position and the highest ids that it holds."""
        history = self.catalog.history
        if highest_ids.exceeds(history.highest_ids()):
            return FollowerStatus.AHEAD
        if position is None or history.contains(position):
            return FollowerStatus.FOLLOWING
        return FollowerStatus.GIVEN_UP if history.has_given_up(position) else FollowerStatus.AHEAD

    def is_current(self, position: CatalogPosition) -> bool:
        """Return whether a position is of this start of metad on this catalog."""
        with self.change_feed.lock:
            current = self.catalog.history.position
            return (position.history, position.term) == (current.history, current.term)

    def record_follower(self, follower: Follower) -> FollowerStatus:
        """Record the position that a daemon reports, and return its status."""
        with self.change_feed.lock:
            is_foreign = bool(follower.cluster) and follower.cluster != self.catalog.cluster
            status = (
                FollowerStatus.AHEAD
                if is_foreign
                else self.status_of(follower.position, follower.highest)
            )
            if follower.uuid in self._unconfirmed or (status is FollowerStatus.AHEAD) != (
                follower.uuid in self._ahead
            ):
                self._unconfirmed.discard(follower.uuid)
                self.change_feed.wake_waiters()  # requests may wait for this confirmation
            if status is not FollowerStatus.AHEAD:
                if self._ahead.pop(follower.uuid, None) is not None:
                    logger.info("follower_position_accepted", extra={"host": follower.uuid})
                if status is FollowerStatus.FOLLOWING:
                    self._inventories.pop(follower.uuid, None)
            elif follower.uuid in self._ahead or len(self._ahead) < _FOREIGN_LIMIT:
                if follower.uuid not in self._ahead:
                    followed_revision = (
                        follower.position.revision if follower.position is not None else 0
                    )
                    logger.error(
                        "catalog_older" if not is_foreign else "catalog_foreign",
                        extra={
                            "host": follower.uuid,
                            "followed": followed_revision,
                            "revision": self.catalog.history.position.revision,
                        },
                    )
                self._ahead[follower.uuid] = follower
            return status

    def is_ahead(self, host: HostId) -> bool:
        """Return whether a daemon of this cluster is known to be ahead of the catalog."""
        follower = self._ahead.get(host)
        return follower is not None and follower.cluster in ("", self.catalog.cluster)

    def fault(self) -> str:
        """Return why daemons do not follow the catalog, with the remedy; else empty."""
        with self.change_feed.lock:
            if foreign_clusters := self._foreign_clusters():
                return (
                    f"cluster={self.catalog.cluster}: expected "
                    f"{' or '.join(foreign_clusters)}; all online storageds belong to "
                    "another cluster, as after "
                    "the loss of metad's data folder: put the folder back, or run `asterism "
                    "metad adopt --cluster ID --dry-run`, then "
                    f"`asterism metad adopt --cluster ID --yes`"
                )
            ahead = [f for f in self._ahead.values() if f.cluster in ("", self.catalog.cluster)]
            if ahead:
                newest_revision = max(
                    (f.position.revision for f in ahead if f.position is not None), default=0
                )
                return (
                    f"revision={self.catalog.history.position.revision}: the catalog is "
                    f"older than what {len(ahead)} daemons followed (up to revision "
                    f"{newest_revision}), or has a different history; metad assigns no tasks "
                    f"and refuses changes: {REMEDY}"
                )
            return ""

    def _foreign_clusters(self) -> list[str]:
        """Return the clusters of online storageds, unless some belong to this cluster."""
        clusters = sorted({f.cluster for f in self._ahead.values()} - {"", self.catalog.cluster})
        if not clusters or self.cluster.online(DaemonRole.STORAGED):
            return []
        return (
            []
            if any(
                f.role is DaemonRole.STORAGED and f.cluster in ("", self.catalog.cluster)
                for f in self._ahead.values()
            )
            else clusters
        )

    def is_writable(self) -> bool:
        """Return whether the catalog may be changed."""
        with self.change_feed.lock:
            self._unconfirmed = {
                uuid
                for uuid in self._unconfirmed
                if (host := self.cluster.get(uuid)) is not None and host.online
            }
            return not self._unconfirmed and not self.fault()

    def check_writable(self) -> None:
        """Wait until storageds have confirmed the catalog after a start.

        Called with the lock of the change feed, which is released while waiting.

        Raises
        ------
        NotReady
            If daemons do not follow the catalog, or do not confirm it in time.
        """
        deadline = time.monotonic() + self.lease_s + _CONFIRM_SLACK_S
        while not self.is_writable():
            fault = self.fault()
            if fault:
                raise NotReady(fault)
            remaining_s = deadline - time.monotonic()
            if remaining_s <= 0:
                unconfirmed = ", ".join(sorted(self._unconfirmed))
                raise NotReady(
                    f"metad has just started: expected storageds {unconfirmed} to confirm "
                    "the catalog; try again in a few seconds"
                )
            self.change_feed.wait_for_wakeup(min(remaining_s, _MAX_WAIT_S))

    def wait_for_storageds(self) -> list[HostId]:
        """Return the online storageds by uuid, for a new space; empty if none is online.

        If all known storageds are offline, wait for one of them: after a restart, and on a busy
        machine, a storaged may report later than its lease ends. Called with the lock of the
        change feed, which is released while waiting.
        """
        deadline = time.monotonic() + self.lease_s + _CONFIRM_SLACK_S
        while True:
            online = [host.uuid for host in self.cluster.online(DaemonRole.STORAGED)]
            is_known = any(host.role is DaemonRole.STORAGED for host in self.cluster.hosts.values())
            remaining_s = deadline - time.monotonic()
            if online or not is_known or remaining_s <= 0:
                return online
            self.change_feed.wait_for_wakeup(min(remaining_s, _MAX_WAIT_S))

    # Inventories and adoption.

    def is_adoptable(self) -> bool:
        """Return whether daemons are ahead and all storageds among them have reported."""
        with self.change_feed.lock:
            return bool(self._ahead) and all(
                f.role is not DaemonRole.STORAGED or f.uuid in self._inventories
                for f in self._ahead.values()
            )

    def record_inventory(self, follower: Follower, inventory: Inventory) -> None:
        """Record a storaged's inventory, and request removal of data that was given up."""
        with self.change_feed.lock:
            status = self.record_follower(follower)
            self._inventories[follower.uuid] = inventory
            if status is FollowerStatus.GIVEN_UP:
                self._request_removals(
                    self._unknown_data(
                        follower.uuid, inventory, self.catalog.history.adoption_records()
                    )
                )

    def state(self) -> CatalogState:
        """Return the catalog's position, and the daemons and data that are ahead of it."""
        with self.change_feed.lock:
            history = self.catalog.history
            unknown_data: list[UnknownData] = []
            for uuid in self._ahead:
                if uuid in self._inventories:
                    unknown_data += self._unknown_data(uuid, self._inventories[uuid], None)
            is_blocked = bool(self._ahead)
            return CatalogState(
                cluster=self.catalog.cluster,
                position=history.position,
                ahead=tuple(self._ahead.values()),
                reported=frozenset(self._inventories.keys() & self._ahead.keys()),
                unknown=tuple(unknown_data),
                open_loads=tuple(self._loads().open_ids()) if is_blocked else (),
                jobs=tuple(
                    job.job_id for job in self.driver.state.jobs.values() if not job.state.is_final
                )
                if is_blocked
                else (),
                fault=self.fault(),
            )

    def adopt(self, cluster: str) -> CatalogState:
        """Make daemons that followed a newer catalog follow this one; return the state before.

        Raises
        ------
        Conflict
            If the daemons belong to other clusters, and ``cluster`` is not one of them.
        NotReady
            If a storaged to adopt has not reported its inventory yet.
        """
        with self.change_feed.lock:
            followers = self._followers_to_adopt(cluster)
            state_before = self.state()
            if not followers:
                return state_before
            unreported = sorted(
                f.uuid
                for f in followers
                if f.role is DaemonRole.STORAGED and f.uuid not in self._inventories
            )
            if unreported:
                raise NotReady(
                    f"inventory: expected reports of storageds {', '.join(unreported)}; try "
                    "again in a few seconds"
                )
            given_up: dict[str, int] = {}
            for follower in followers:
                if follower.position is not None and not self.catalog.history.contains(
                    follower.position
                ):
                    history, revision = follower.position.history, follower.position.revision
                    given_up[history] = max(revision, given_up.get(history, 0))
            highest_id = max(
                (
                    number
                    for f in followers
                    for number in (f.highest.space_id, f.highest.job_id, f.highest.load_id)
                ),
                default=0,
            )
            self._stop_open_work()
            self.catalog.adopt(given_up, highest_id, cluster=cluster or self.catalog.cluster)
            self.driver.skip_ids(self.catalog.history.position.revision)
            adoptions = self.catalog.history.adoption_records()
            for follower in followers:
                if follower.role is DaemonRole.STORAGED:
                    self._request_removals(
                        self._unknown_data(
                            follower.uuid, self._inventories[follower.uuid], adoptions
                        )
                    )
                self._ahead.pop(follower.uuid, None)
            logger.warning(
                "catalog_adopted",
                extra={"over": given_up, "revision": self.catalog.history.position.revision},
            )
            self.change_feed.advance()
            return state_before

    def _followers_to_adopt(self, cluster: str) -> list[Follower]:
        clusters = sorted({f.cluster for f in self._ahead.values()} - {"", self.catalog.cluster})
        if not cluster and (foreign_clusters := self._foreign_clusters()):
            raise Conflict(
                f"the online daemons belong to the clusters {' and '.join(foreign_clusters)}: "
                "choose the one to take over with --cluster"
            )
        if cluster and cluster not in (*clusters, self.catalog.cluster):
            known_clusters = ", ".join(clusters) or "none"
            raise Conflict(
                f"cluster={cluster!r}: no daemon of this cluster has sent a heartbeat; there is "
                f"{known_clusters}"
            )
        target_cluster = cluster or self.catalog.cluster
        # A graphd reports no cluster: it follows the metad that it is configured with.
        return [f for f in self._ahead.values() if f.cluster in ("", target_cluster)]

    def _stop_open_work(self) -> None:
        """End open loads and jobs: daemons may hold more of them than the catalog knows."""
        now_ms = self.clock()
        for load_id in self._loads().open_ids():
            self._loads().abandon(load_id, now_ms=now_ms)
        for job in list(self.driver.state.jobs.values()):
            if not job.state.is_final and job.ending is None:
                self.driver.stop(job.job_id)

    def _loads(self) -> Loads:
        return self.catalog.loads

    def _unknown_data(
        self, host: HostId, inventory: Inventory, adoptions: tuple[Adoption, ...] | None
    ) -> list[UnknownData]:
        """Return the data of a storaged that the catalog does not know.

        Parameters
        ----------
        host : HostId
        inventory : Inventory
        adoptions : tuple of Adoption or None
            Adoptions so far; None to compute the result as if the catalog were adopted now.
        """
        highest_ids = self.catalog.history.highest_ids()

        def is_lost(kind: str, number: int) -> bool:
            return (
                number > getattr(highest_ids, kind)
                if adoptions is None
                else was_given_up(adoptions, kind, number)
            )

        unknown_data: list[UnknownData] = []
        for reported_space in inventory.spaces:
            space = self.catalog.spaces.get(reported_space.space_id)
            if is_lost("space_id", reported_space.space_id):
                unknown_data.append(
                    UnknownData(
                        host=host,
                        space_id=reported_space.space_id,
                        space=reported_space.name,
                        bytes=reported_space.bytes,
                    )
                )
                continue
            if space is None or host not in space_hosts(space):
                continue
            builds = {build.job_id: build for build in reported_space.builds}
            builds |= {
                job_id: InventoryBuild(job_id=job_id, version=0)
                for job_id in reported_space.checkpoints
                if job_id not in builds
            }
            lost_builds = [builds[job_id] for job_id in sorted(builds) if is_lost("job_id", job_id)]
            unknown_data += [
                UnknownData(
                    host=host, space_id=reported_space.space_id, space=space.name, build=build
                )
                for build in lost_builds
            ]
            loads = tuple(
                load_id for load_id in reported_space.loads if is_lost("load_id", load_id)
            )
            if loads:
                unknown_data.append(
                    UnknownData(
                        host=host, space_id=reported_space.space_id, space=space.name, loads=loads
                    )
                )
        return unknown_data

    def _request_removals(self, unknown_data: list[UnknownData]) -> None:
        now_ms, removals = self.clock(), list[PendingRemoval]()
        for item in unknown_data:
            ordered = self.catalog.removals.of_host(item.host)
            pending = {removal.request.target for removal in ordered}
            kinds = [RemovalKind.LOADS] if item.loads else [RemovalKind.SPACE]
            if item.build is not None:
                kinds = [RemovalKind.BUILD, RemovalKind.LEFTOVERS]
            for kind in kinds:
                request = RemovalRequest(
                    kind=kind,
                    space_id=item.space_id,
                    job_id=item.build.job_id if item.build is not None else 0,
                    loads=item.loads,
                    reason="discarded when an older catalog was adopted",
                )
                if request.target not in pending:
                    removals.append(
                        PendingRemoval(request=request, hosts=(item.host,), created_ms=now_ms)
                    )
        if removals:
            pending_write = self.catalog.removals.add(removals)
            self.catalog.store.write(pending_write.changes)
            pending_write.apply()
            self.change_feed.advance()

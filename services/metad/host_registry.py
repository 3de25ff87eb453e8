"""Registry of the daemons of a cluster, fed by heartbeats. Called by `metad.catalog_api`."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from metad.catalog.catalog import Catalog
from metad.catalog.spaces import space_hosts
from metad.change_feed import ChangeFeed
from metad.clock import Clock
from metad.follower_positions import Followers, FollowerStatus
from metad.jobs.driver import Driver
from metad.membership import ClusterMembership
from metad.model import jobs
from metad.model.hosts import DaemonRole, Follower, HeartbeatReport, Host
from metad.model.ids import HostId, LoadId
from metad.store import keys
from metad.store.port import MetaStore
from metad.wire import record_encoding

logger = logging.getLogger(__name__)


class HostRegistry:
    """Registry of the cluster's hosts.

    It stores lasting changes, and forwards events of storageds to the job machine."""

    def __init__(
        self,
        *,
        store: MetaStore,
        change_feed: ChangeFeed,
        catalog: Catalog,
        cluster: ClusterMembership,
        driver: Driver,
        followers: Followers,
        clock: Clock,
    ) -> None:
        self._store = store
        self._followers = followers
        self._change_feed = change_feed
        self._catalog = catalog
        self._purged_by: dict[LoadId, set[HostId]] = {}
        """Abandoned load -> storageds that hold no block of it.

        In memory only: each heartbeat repeats this report."""
        self._cluster = cluster
        self._driver = driver
        self._clock = clock

    def record_heartbeat(
        self,
        heartbeat: HeartbeatReport,
        reports: Sequence[jobs.TaskReport],
        follower: Follower,
        completed_removals: Sequence[int] = (),
    ) -> int:
        """Record a heartbeat and return the current revision; Stale if the sender is fenced.

        If the sender does not follow this catalog, the rest of its report refers to another
        catalog. Only its presence is recorded then."""
        with self._change_feed.lock:
            now_ms = self._clock()
            self._cluster.check_sender(
                heartbeat.uuid, heartbeat.role, heartbeat.incarnation, heartbeat.start_id
            )
            is_following = self._followers.record_follower(follower) is FollowerStatus.FOLLOWING
            if not is_following:
                heartbeat, reports, completed_removals = (
                    replace(heartbeat, held_versions=frozenset(), dropped_loads=frozenset()),
                    (),
                    (),
                )
            self._update_host(self._cluster.host_after(heartbeat, now_ms), now_ms)
            if heartbeat.role is DaemonRole.STORAGED:
                # Compare with the machine's own state. If its last write failed, the next heartbeat
                # reports the host again.
                host_status = self._driver.state.hosts.get(heartbeat.uuid)
                if (
                    host_status is None
                    or not host_status.online
                    or host_status.incarnation != heartbeat.incarnation
                ):
                    self._driver.apply_event(
                        jobs.HostSeen(
                            now_ms=now_ms, host=heartbeat.uuid, incarnation=heartbeat.incarnation
                        )
                    )
                if is_following:
                    self._driver.apply_event(
                        jobs.TasksReported(
                            now_ms=now_ms,
                            host=heartbeat.uuid,
                            incarnation=heartbeat.incarnation,
                            reports=tuple(reports),
                        )
                    )
                self._mark_purged_loads(heartbeat)
                self._acknowledge_removals(heartbeat.uuid, completed_removals)
            return self._change_feed.revision

    def _acknowledge_removals(self, host: HostId, completed_removals: Sequence[int]) -> None:
        for removal in self._catalog.removals.acknowledge(host, completed_removals):
            fields = {
                "host": host,
                "kind": removal.request.kind.name.lower(),
                "space_id": removal.request.space_id,
                "job": removal.request.job_id,
            }
            logger.info("removal_acknowledged", extra=fields)

    def _mark_purged_loads(self, heartbeat: HeartbeatReport) -> None:
        """Mark abandoned loads as purged once no storaged of their space holds a block of them."""
        for space in self._catalog.spaces.all() if heartbeat.dropped_loads else ():
            for load_id in heartbeat.dropped_loads.intersection(
                self._catalog.loads.unpurged_in_space(space.space_id)
            ):
                confirmed_hosts = self._purged_by.setdefault(load_id, set())
                confirmed_hosts.add(heartbeat.uuid)
                if space_hosts(space) <= confirmed_hosts:
                    self._catalog.loads.mark_purged(load_id)
                    del self._purged_by[load_id]
                    logger.info("load_purged", extra={"space": space.name, "load": load_id})

    def expire_leases(self) -> None:
        """Mark hosts with an expired lease as offline."""
        with self._change_feed.lock:
            now_ms = self._clock()
            for host in self._cluster.expired_hosts(now_ms):
                self._update_host(host, now_ms)
            for uuid, host_status in list(self._driver.state.hosts.items()):
                current = self._cluster.get(uuid)
                if host_status.online and current is not None and not current.online:
                    self._driver.apply_event(jobs.HostLost(now_ms=now_ms, host=uuid))

    def forget_graphds(self, silent_ms: int) -> None:
        """Remove graphds that have been silent for ``silent_ms``.

        They hold no data, and each start of a graphd may have a new uuid."""
        with self._change_feed.lock:
            for uuid in self._cluster.offline_since(DaemonRole.GRAPHD, self._clock() - silent_ms):
                self._store.write({keys.host_key(uuid): None})
                self._cluster.remove(uuid)

    def _update_host(self, host: Host, now_ms: int) -> None:
        current = self._cluster.get(host.uuid)
        if current is not None and current.advertised_state() == host.advertised_state():
            self._cluster.put(host, now_ms)
            return
        self._store.write({keys.host_key(host.uuid): record_encoding.encode_host(host)})
        self._cluster.put(host, now_ms)
        logger.info(
            "host_online" if host.online else "host_offline",
            extra={
                "host": host.uuid,
                "role": host.role.name.lower(),
                "address": host.address,
                "incarnation": host.incarnation,
            },
        )
        if host.role is DaemonRole.STORAGED:
            self._change_feed.advance()
        else:
            self._change_feed.wake_waiters()  # its lease may be the next one to end

"""Maintenance: leases and retries, and expiry of jobs, versions, pins, loads and graphds."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from itertools import pairwise

from asterism_proto.errors import AsterismError
from metad.catalog.catalog import Catalog
from metad.change_feed import ChangeFeed
from metad.clock import Clock
from metad.follower_positions import Followers
from metad.host_registry import HostRegistry
from metad.jobs.build_data_retention import leftover_removals
from metad.jobs.driver import Driver
from metad.membership import ClusterMembership
from metad.model import jobs as model
from metad.model.ids import JobId, SpaceId
from metad.store.port import MetaStore

logger = logging.getLogger(__name__)

_FORGET_GRAPHD_MS = 3_600_000
_LEFTOVER_CHECK_MS = 1000
_IDLE_TICKS = 20
"""Ticks between two full checks while no job runs and nothing changes.

Leases and pins are checked when the first of them ends; the rest need not be punctual."""


class Maintenance:
    """Background thread that carries out time-driven work."""

    def __init__(
        self,
        *,
        store: MetaStore,
        change_feed: ChangeFeed,
        catalog: Catalog,
        cluster: ClusterMembership,
        driver: Driver,
        host_registry: HostRegistry,
        followers: Followers,
        clock: Clock,
        tick_s: float,
        keep_versions: int,
        retire_after_ms: int,
        load_lease_ms: int,
        keep_loads_ms: int,
        recoverable_jobs: Callable[[], list[model.Job]],
    ) -> None:
        self._store = store
        self._change_feed = change_feed
        self._catalog = catalog
        self._cluster = cluster
        self._driver = driver
        self._host_registry = host_registry
        self._followers = followers
        self._clock = clock
        self._tick_s = tick_s
        self._keep_versions = keep_versions
        self._retire_after_ms = retire_after_ms
        self._load_lease_ms = load_lease_ms
        self._keep_loads_ms = keep_loads_ms
        self._recoverable_jobs = recoverable_jobs
        self._recoverable_ids: set[int] = set()
        """Ids of the jobs that could resume from their leftovers at the last check."""
        self._leftovers_checked_ms = 0
        self._ticked_ms = 0
        self._ticked_revision = -1
        """Revision at the last tick."""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="metad-maintenance", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread and wait for it."""
        self._stopping.set()
        self._change_feed.wake_waiters()
        if self._thread.is_alive():
            self._thread.join()

    def tick(self) -> None:
        """Carry out everything that is due."""
        self._ticked_ms, self._ticked_revision = self._clock(), self._change_feed.revision
        self._host_registry.expire_leases()
        with self._change_feed.lock:
            self._driver.apply_event(model.Tick(now_ms=self._clock()))
            self._expire_pins()
            # an older copy of the catalog must not delete anything
            if self._followers.is_writable():
                self._retire_versions()
                self._expire_loads()
                self._release_leftovers()
        self._host_registry.forget_graphds(_FORGET_GRAPHD_MS)

    def _expire_pins(self) -> None:
        for pin in self._catalog.pins.expire(self._clock()):
            fields = {
                "space": pin.space,
                "version": pin.version,
                "pin": pin.pin_id,
                "owner": pin.owner,
            }
            logger.info("pin_expired", extra=fields)

    def _retire_versions(self) -> None:
        """Retire old versions that are not pinned, not read by jobs and no longer routed to.

        A newer version must have been known for longer than any request takes."""
        now_ms = self._clock()
        for space in self._catalog.spaces.all():
            served_versions = self._catalog.versions.served_versions(space.space_id)
            pinned_versions = self._catalog.pins.pinned_versions(
                space.space_id
            ) | self._versions_read_by_jobs(space.space_id)
            retired = [
                manifest.version
                for manifest, newer in list(pairwise(served_versions))[
                    : max(len(served_versions) - self._keep_versions, 0)
                ]
                if manifest.version not in pinned_versions
                and now_ms - newer.created_ms >= self._retire_after_ms
                and self._cluster.is_superseded(space.space_id, manifest.version, now_ms)
            ]
            if not retired:
                continue
            pending_write = self._catalog.retire(space, retired, now_ms=now_ms)
            self._store.write(pending_write.changes)
            pending_write.apply()
            self._change_feed.advance()
            logger.info("versions_retired", extra={"space": space.name, "versions": retired})

    def _versions_read_by_jobs(self, space_id: SpaceId) -> set[int]:
        """Return the versions of a space that unfinished jobs read."""
        jobs = self._driver.state.jobs.values()
        return {
            job.target_version
            for job in jobs
            if job.space_id == space_id and job.target_version and not job.state.is_final
        }

    def _expire_loads(self) -> None:
        """Abandon open loads with an expired lease; forget loads that were abandoned long ago."""
        now_ms = self._clock()
        for load in self._catalog.loads.expired(now_ms - self._load_lease_ms):
            self._catalog.loads.abandon(load.load_id, now_ms=now_ms)
            self._change_feed.advance()
            logger.warning(
                "load_expired",
                extra={"space": load.space, "load": load.load_id, "source": load.source},
            )
        self._catalog.loads.forget_abandoned(now_ms - self._keep_loads_ms)

    def _release_leftovers(self) -> None:
        """Notify storageds once the leftovers of a job may be removed.

        Checked at most once a second: removal is not urgent, and each check reads all jobs."""
        if self._clock() - self._leftovers_checked_ms < _LEFTOVER_CHECK_MS:
            return
        self._leftovers_checked_ms = self._clock()
        recoverable_ids = {job.job_id for job in self._recoverable_jobs()}
        if self._recoverable_ids - recoverable_ids:
            self._change_feed.advance()
        self._recoverable_ids = set(recoverable_ids)
        self._request_leftover_removals(recoverable_ids)

    def _request_leftover_removals(self, recoverable_ids: set[JobId]) -> None:
        """Request removal of the leftovers of ended jobs that can no longer resume from them."""
        catalog_removals, now_ms = self._catalog.removals, self._clock()
        ended_jobs = [
            job
            for job in self._driver.state.jobs.values()
            if job.state.is_final
            and job.job_id not in recoverable_ids
            and not catalog_removals.is_cleaned(job.job_id)
        ]
        if ended_jobs:
            removals = [
                removal for job in ended_jobs for removal in leftover_removals(job, now_ms=now_ms)
            ]
            pending_write = catalog_removals.add(
                removals, cleaned=[job.job_id for job in ended_jobs]
            )
            self._store.write(pending_write.changes)
            pending_write.apply()
            if removals:
                self._change_feed.advance()

    def _has_running_jobs(self) -> bool:
        return any(not job.state.is_final for job in self._driver.state.jobs.values())

    def next_due_ms(self) -> int:
        """Return when the next lease or pin ends, or the next full check is due."""
        ends_ms = (self._cluster.next_lease_end_ms(), self._catalog.pins.next_end_ms())
        return min(
            [
                self._ticked_ms + int(_IDLE_TICKS * self._tick_s * 1000),
                *(end_ms for end_ms in ends_ms if end_ms is not None),
            ]
        )

    def _wait_for_work(self) -> None:
        """Wait until a job runs, something has changed or is due, or metad stops."""
        with self._change_feed.lock:
            while (
                not self._stopping.is_set()
                and not self._has_running_jobs()
                and self._change_feed.revision == self._ticked_revision
                and (remaining_ms := self.next_due_ms() - self._clock()) > 0
            ):
                self._change_feed.wait_for_wakeup(remaining_ms / 1000)

    def _run(self) -> None:
        while not self._stopping.wait(self._tick_s):
            try:
                self._wait_for_work()
                self.tick()
            except (
                AsterismError
            ) as error:  # readiness reports this error, and the next tick retries
                logger.error("maintenance_failed", extra={"cause": error.message})
            except Exception:  # one failed tick must not end the thread
                logger.exception("maintenance_failed")

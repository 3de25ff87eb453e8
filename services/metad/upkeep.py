"""What happens with time alone: leases end, retries fall due; old jobs, versions, pins and loads, and gone graphds go."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from itertools import pairwise

from asterism_proto.errors import AsterismError
from metad.attendance import Attendance
from metad.board import Board
from metad.catalog.catalog import Catalog
from metad.clock import Clock
from metad.cluster import Cluster
from metad.followers import Followers
from metad.ids import JobId, SpaceId
from metad.jobs import model
from metad.jobs.driver import Driver
from metad.jobs.leftovers import removals_after
from metad.store.port import MetaStore

logger = logging.getLogger(__name__)

_FORGET_GRAPHD_MS = 3_600_000
_CLEAR_MS = 1000
_IDLE_TICKS = 5
"""Ticks between two looks while no job runs: then only leases, pins and loads end, none of which is due to a tenth of a second."""


class Upkeep:
    """A thread that looks at the clock."""

    def __init__(
        self,
        *,
        store: MetaStore,
        board: Board,
        catalog: Catalog,
        cluster: Cluster,
        driver: Driver,
        attendance: Attendance,
        followers: Followers,
        clock: Clock,
        tick_s: float,
        keep_versions: int,
        retire_after_ms: int,
        load_lease_ms: int,
        keep_loads_ms: int,
        kept_jobs: Callable[[], list[model.Job]],
    ) -> None:
        self._store = store
        self._board = board
        self._catalog = catalog
        self._cluster = cluster
        self._driver = driver
        self._attendance = attendance
        self._followers = followers
        self._clock = clock
        self._tick_s = tick_s
        self._keep_versions = keep_versions
        self._retire_after_ms = retire_after_ms
        self._load_lease_ms = load_lease_ms
        self._keep_loads_ms = keep_loads_ms
        self._kept_jobs = kept_jobs
        self._kept: set[int] = set()
        """Ids of the jobs whose leftovers stayed when it was last looked at."""
        self._cleared_ms = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="metad-upkeep", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread, and wait for it."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def tick(self) -> None:
        """Do what is due."""
        self._attendance.lapse()
        with self._board.lock:
            self._driver.feed(model.Tick(now_ms=self._clock()))
            self._expire_pins()
            if self._followers.settled():  # an older copy of the catalog decides about nothing
                self._retire()
                self._lapse_loads()
                self._clear()
        self._attendance.forget(_FORGET_GRAPHD_MS)

    def _expire_pins(self) -> None:
        for pin in self._catalog.pins.expire(self._clock()):
            fields = {"space": pin.space, "version": pin.version, "pin": pin.pin_id, "owner": pin.owner}
            logger.info("pin_expired", extra=fields)

    def _retire(self) -> None:
        """Let old versions go that nobody pins and nobody routes by: a newer one is known for longer than any request takes."""
        now_ms = self._clock()
        for space in self._catalog.spaces.all():
            served = self._catalog.versions.served(space.space_id)
            pinned = self._catalog.pins.versions(space.space_id) | self._read_by_jobs(space.space_id)
            gone = [
                manifest.version
                for manifest, newer in list(pairwise(served))[: max(len(served) - self._keep_versions, 0)]
                if manifest.version not in pinned
                and now_ms - newer.created_ms >= self._retire_after_ms
                and self._cluster.left_behind(space.space_id, manifest.version, now_ms)
            ]
            if not gone:
                continue
            step = self._catalog.retire(space, gone, now_ms=now_ms)
            self._store.write(step.changes)
            step.apply()
            self._board.changed()
            logger.info("versions_retired", extra={"space": space.name, "versions": gone})

    def _read_by_jobs(self, space_id: SpaceId) -> set[int]:
        """The versions of a space that jobs read which are not over."""
        jobs = self._driver.state.jobs.values()
        return {job.target_version for job in jobs if job.space_id == space_id and job.target_version and not job.state.ended}

    def _lapse_loads(self) -> None:
        """Abandon the open loads whose clients are gone, and forget those that were abandoned long ago."""
        now_ms = self._clock()
        for load in self._catalog.loads.lapsed(now_ms - self._load_lease_ms):
            self._catalog.loads.abandon(load.load_id, now_ms=now_ms)
            self._board.changed()
            logger.warning("load_lapsed", extra={"space": load.space, "load": load.load_id, "source": load.source})
        self._catalog.loads.forget(now_ms - self._keep_loads_ms)

    def _clear(self) -> None:
        """Tell storageds once the leftovers of a job are to go. Nobody is in a hurry: all jobs are looked at for it."""
        if self._clock() - self._cleared_ms < _CLEAR_MS:
            return
        self._cleared_ms = self._clock()
        kept = {job.job_id for job in self._kept_jobs()}
        if self._kept - kept:
            self._board.changed()
        self._kept = set(kept)
        self._clean(kept)

    def _clean(self, kept: set[JobId]) -> None:
        """Order away what jobs left that are over and may not be recovered from it."""
        removals_of, now_ms = self._catalog.removals, self._clock()
        over = [
            job for job in self._driver.state.jobs.values() if job.state.ended and job.job_id not in kept and not removals_of.is_cleaned(job.job_id)
        ]
        if over:
            removals = [removal for job in over for removal in removals_after(job, now_ms=now_ms)]
            step = removals_of.order(removals, cleaned=[job.job_id for job in over])
            self._store.write(step.changes)
            step.apply()
            if removals:
                self._board.changed()

    def _jobs_run(self) -> bool:
        return any(not job.state.ended for job in self._driver.state.jobs.values())

    def _run(self) -> None:
        while not self._over.wait(self._tick_s * (1 if self._jobs_run() else _IDLE_TICKS)):
            try:
                self.tick()
            except AsterismError as error:  # the store's word: readiness says so, and the next tick tries again
                logger.error("upkeep_failed", extra={"cause": error.message})
            except Exception:  # one bad tick must not end all later ones
                logger.exception("upkeep_failed")

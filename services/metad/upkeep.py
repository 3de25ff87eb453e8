"""What happens with time alone: leases end, retries fall due, old jobs, old versions and gone graphds go."""

from __future__ import annotations

import logging
import threading

from asterism_proto.errors import AsterismError
from metad.attendance import Attendance
from metad.board import Board
from metad.catalog.catalog import Catalog
from metad.clock import Clock
from metad.cluster import Cluster
from metad.jobs import model
from metad.jobs.driver import Driver
from metad.store.port import MetaStore

logger = logging.getLogger(__name__)

_FORGET_GRAPHD_MS = 3_600_000


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
        clock: Clock,
        tick_s: float,
        keep_versions: int,
        retire_after_ms: int,
    ) -> None:
        self._store = store
        self._board = board
        self._catalog = catalog
        self._cluster = cluster
        self._driver = driver
        self._attendance = attendance
        self._clock = clock
        self._tick_s = tick_s
        self._keep_versions = keep_versions
        self._retire_after_ms = retire_after_ms
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
            self._retire()
        self._attendance.forget(_FORGET_GRAPHD_MS)

    def _retire(self) -> None:
        """Let old versions go that nobody routes by: the newer one is out for longer than any request may take."""
        for space in self._catalog.spaces.all():
            served = self._catalog.versions.served(space.space_id)
            old = served[: -self._keep_versions]
            if not old:
                continue
            follower = served[-self._keep_versions]
            if self._clock() - follower.created_ms < self._retire_after_ms or not self._cluster.left_behind(space.space_id, follower.version):
                continue
            gone = [manifest.version for manifest in old]
            step = self._catalog.versions.retire(space.space_id, gone)
            self._store.write(step.changes)
            step.apply()
            self._board.changed()
            logger.info("versions_retired", extra={"space": space.name, "versions": gone})

    def _run(self) -> None:
        while not self._over.wait(self._tick_s):
            try:
                self.tick()
            except AsterismError as error:  # the store's word: it stays so until a restart, and readiness says so
                logger.error("upkeep_failed", extra={"cause": error.message})
            except Exception:  # one bad tick must not end all later ones
                logger.exception("upkeep_failed")

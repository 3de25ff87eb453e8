"""A metad without its doors: the rooms over one store, composed. `metad.app` opens the doors; tests do without."""

from __future__ import annotations

from asterism_proto.methods import BEATS, CATALOG
from daemonkit.calls import Handler, handlers_of
from metad.api import BeatsApi, CatalogApi
from metad.attendance import Attendance
from metad.board import Board
from metad.catalog.catalog import Catalog
from metad.clock import Clock
from metad.cluster import Cluster
from metad.followers import Followers
from metad.jobs.driver import Driver
from metad.jobs.leftovers import kept
from metad.jobs.model import Job
from metad.polls import Polls
from metad.service import Service
from metad.settings import MetadSettings
from metad.store import codec, keys
from metad.store.port import MetaStore
from metad.upkeep import Upkeep


class Rooms:
    """Everything that a metad knows and does."""

    def __init__(self, settings: MetadSettings, *, store: MetaStore, uuid: str, moved: bool = True, clock: Clock) -> None:
        self.catalog = Catalog(store, folder_uuid=uuid, moved=moved, pin_rules=settings.pin_rules(), now_ms=clock())
        self.store = store = self.catalog.store
        # Above every revision of an earlier process on this store, so that a poll never waits for a past that was longer than ours.
        self.board = Board(self.catalog.start << 32)
        hosts = [codec.host_from(value) for _, value in store.range(keys.HOSTS)]
        self.cluster = Cluster(hosts, lease_ms=int(settings.lease_s * 1000), patience_ms=int(settings.retire_after_s * 1000), now_ms=clock())
        self.driver = Driver(store=store, board=self.board, catalog=self.catalog, hosts=hosts, rules=settings.rules(), clock=clock)
        self.followers = Followers(
            board=self.board, catalog=self.catalog, cluster=self.cluster, driver=self.driver, clock=clock, lease_s=settings.lease_s
        )
        self.attendance = Attendance(
            store=store, board=self.board, catalog=self.catalog, cluster=self.cluster, driver=self.driver, followers=self.followers, clock=clock
        )
        self.service = Service(
            board=self.board,
            catalog=self.catalog,
            cluster=self.cluster,
            driver=self.driver,
            followers=self.followers,
            addresses=settings.addresses(),
            clock=clock,
        )
        self.upkeep = Upkeep(
            store=store,
            board=self.board,
            catalog=self.catalog,
            cluster=self.cluster,
            driver=self.driver,
            attendance=self.attendance,
            followers=self.followers,
            clock=clock,
            tick_s=settings.tick_s,
            keep_versions=settings.keep_versions,
            retire_after_ms=int(settings.retire_after_s * 1000),
            load_lease_ms=int(settings.load_lease_s * 1000),
            keep_loads_ms=int(settings.keep_jobs_s * 1000),
            kept_jobs=self._kept_jobs,
        )
        self._clock = clock
        self._keep_builds_ms = int(settings.keep_builds_s * 1000)
        polls = Polls(board=self.board, catalog=self.catalog, cluster=self.cluster, driver=self.driver, kept_jobs=self._kept_jobs)
        self.catalog_handlers: dict[str, Handler] = handlers_of(CATALOG, CatalogApi(self.service, self.followers))
        self.beats_handlers: dict[str, Handler] = handlers_of(
            BEATS,
            BeatsApi(
                catalog=self.catalog,
                service=self.service,
                board=self.board,
                cluster=self.cluster,
                attendance=self.attendance,
                followers=self.followers,
                polls=polls,
                lease_s=settings.lease_s,
            ),
        )

    def _kept_jobs(self) -> list[Job]:
        """The jobs that may still go on with what they left on their storageds."""
        spaces = {space.space_id: self.catalog.versions.current(space.space_id) for space in self.catalog.spaces.all()}
        return kept(self.driver.state.jobs.values(), spaces, now_ms=self._clock(), keep_ms=self._keep_builds_ms)

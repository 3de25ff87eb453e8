"""A metad without its doors: the rooms over one store, composed. `metad.app` opens the doors; tests
do without.
"""

from __future__ import annotations

from asterism_daemonkit.calls import Handler, handlers_of
from asterism_proto.methods import CATALOG, HEARTBEATS
from metad.api import CatalogApi, HeartbeatsApi
from metad.catalog.catalog import Catalog
from metad.catalog_followers import Followers
from metad.change_feed import ChangeFeed
from metad.clock import Clock
from metad.desired_state import DesiredStateBuilder
from metad.heartbeats import HostRegistry
from metad.hosts import Cluster
from metad.jobs.driver import Driver
from metad.jobs.retention import recoverable_jobs
from metad.maintenance import Maintenance
from metad.model.jobs import Job
from metad.service import CatalogService
from metad.settings import MetadSettings
from metad.store import keys
from metad.store.port import MetaStore
from metad.wire import storage


class Components:
    """Everything that a metad knows and does."""

    def __init__(
        self,
        settings: MetadSettings,
        *,
        store: MetaStore,
        uuid: str,
        accept_other_folder: bool = True,
        clock: Clock,
    ) -> None:
        self.catalog = Catalog(
            store,
            folder_uuid=uuid,
            accept_other_folder=accept_other_folder,
            pin_limits=settings.pin_limits(),
            now_ms=clock(),
        )
        self.store = store = self.catalog.store
        # Above every revision of an earlier process on this store, so that a poll never waits for a
        # past that was longer than ours.
        self.change_feed = ChangeFeed(self.catalog.start_number << 32)
        hosts = [storage.decode_host(value) for _, value in store.range(keys.HOSTS)]
        self.cluster = Cluster(
            hosts,
            lease_ms=int(settings.lease_s * 1000),
            drain_ms=int(settings.retire_after_s * 1000),
            now_ms=clock(),
        )
        self.driver = Driver(
            store=store,
            change_feed=self.change_feed,
            catalog=self.catalog,
            hosts=hosts,
            policy=settings.job_policy(),
            clock=clock,
        )
        self.followers = Followers(
            change_feed=self.change_feed,
            catalog=self.catalog,
            cluster=self.cluster,
            driver=self.driver,
            clock=clock,
            lease_s=settings.lease_s,
        )
        self.host_registry = HostRegistry(
            store=store,
            change_feed=self.change_feed,
            catalog=self.catalog,
            cluster=self.cluster,
            driver=self.driver,
            followers=self.followers,
            clock=clock,
        )
        self.service = CatalogService(
            change_feed=self.change_feed,
            catalog=self.catalog,
            cluster=self.cluster,
            driver=self.driver,
            followers=self.followers,
            addresses=settings.addresses(),
            clock=clock,
        )
        self.maintenance = Maintenance(
            store=store,
            change_feed=self.change_feed,
            catalog=self.catalog,
            cluster=self.cluster,
            driver=self.driver,
            host_registry=self.host_registry,
            followers=self.followers,
            clock=clock,
            tick_s=settings.tick_s,
            keep_versions=settings.keep_versions,
            retire_after_ms=int(settings.retire_after_s * 1000),
            load_lease_ms=int(settings.load_lease_s * 1000),
            keep_loads_ms=int(settings.keep_jobs_s * 1000),
            recoverable_jobs=self._recoverable_jobs,
        )
        self._clock = clock
        self._keep_builds_ms = int(settings.keep_builds_s * 1000)
        desired_state = DesiredStateBuilder(
            change_feed=self.change_feed,
            catalog=self.catalog,
            cluster=self.cluster,
            driver=self.driver,
            recoverable_jobs=self._recoverable_jobs,
        )
        self.catalog_handlers: dict[str, Handler] = handlers_of(
            CATALOG, CatalogApi(self.service, self.followers)
        )
        self.heartbeats_handlers: dict[str, Handler] = handlers_of(
            HEARTBEATS,
            HeartbeatsApi(
                catalog=self.catalog,
                service=self.service,
                change_feed=self.change_feed,
                cluster=self.cluster,
                host_registry=self.host_registry,
                followers=self.followers,
                desired_state=desired_state,
                lease_s=settings.lease_s,
            ),
        )

    def _recoverable_jobs(self) -> list[Job]:
        """The jobs that may still go on with what they left on their storageds."""
        current_manifests = {
            space.space_id: self.catalog.versions.current(space.space_id)
            for space in self.catalog.spaces.all()
        }
        return recoverable_jobs(
            self.driver.state.jobs.values(),
            current_manifests,
            now_ms=self._clock(),
            keep_ms=self._keep_builds_ms,
        )

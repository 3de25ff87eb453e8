"""Composition of metad: its components over a store, and the servers that expose them.

This is the only module that names the concrete store and the servers. `Components` works over any
store and without a server. `Metad` opens the data folder, the ports and the gauges."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

from asterism_access.credentials import api_keys
from asterism_access.guard import AccessGuard, GuardedCall
from asterism_daemonkit.access_control import AccessControl
from asterism_daemonkit.daemon_identity import open_folder
from asterism_daemonkit.exposure import log_insecure
from asterism_daemonkit.metrics import Metrics
from asterism_daemonkit.ports_file import clear_ports, write_ports
from asterism_daemonkit.rpc.call_context import Handler, current_principal
from asterism_daemonkit.rpc.connection_limits import raise_file_limit
from asterism_daemonkit.rpc.grpc_server import FIXED_WINDOW_OPTIONS, GrpcServer
from asterism_daemonkit.rpc.interceptor_chain import HandlerChecks
from asterism_daemonkit.rpc.transports import LocalTransport, handlers_of
from asterism_daemonkit.tls import DaemonTls
from asterism_io.remote_folder_addresses import AllowedAddresses
from asterism_proto.errors import Conflict, Corrupt, NotReady
from asterism_proto.methods import ACCESS, CATALOG, HEARTBEATS
from asterism_proto.transport import Transport
from asterism_proto.v1 import metad_pb2 as metad_pb
from metad.access_api import AccessApi
from metad.access_service import AccessService
from metad.catalog.catalog import Catalog
from metad.catalog_api import CatalogApi
from metad.catalog_service import CatalogService
from metad.change_feed import ChangeFeed
from metad.clock import Clock, steady_clock
from metad.desired_state import DesiredStateBuilder
from metad.follower_positions import Followers
from metad.heartbeats_api import HeartbeatsApi
from metad.host_registry import HostRegistry
from metad.jobs.build_data_retention import recoverable_jobs
from metad.jobs.driver import Driver
from metad.maintenance import Maintenance
from metad.membership import ClusterMembership
from metad.model.access import ApiKeyGenerator, GeneratedApiKey
from metad.model.hosts import DaemonRole
from metad.model.jobs import Job, JobState
from metad.settings import MetadSettings
from metad.store import keys
from metad.store.port import MetaStore
from metad.store.rocksdb_store import RocksStore
from metad.wire import record_encoding

if TYPE_CHECKING:  # imported when a port opens: an embedded metad has none, and starts sooner
    from fastapi import APIRouter

    from asterism_daemonkit.http.server import HttpServer


class Components:
    """Components of a metad over one store, and their gRPC handlers."""

    def __init__(
        self,
        settings: MetadSettings,
        *,
        store: MetaStore,
        uuid: str,
        accept_other_folder: bool = True,
        clock: Clock,
        generate_api_key: ApiKeyGenerator,
        addresses: AllowedAddresses | None = None,
    ) -> None:
        self.catalog = Catalog(
            store,
            folder_uuid=uuid,
            accept_other_folder=accept_other_folder,
            pin_limits=settings.pin_limits(),
            now_ms=clock(),
        )
        self.store = store = self.catalog.store
        # Revisions start above those of every earlier process on this store. Otherwise a poll that
        # knows a revision of a longer-lived process would wait for this one to reach it.
        self.change_feed = ChangeFeed(self.catalog.start_number << 32)
        hosts = [record_encoding.decode_host(value) for _, value in store.range(keys.HOSTS)]
        self.cluster = ClusterMembership(
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
            addresses=addresses or settings.addresses(),
            clock=clock,
        )
        self.access_service = AccessService(
            change_feed=self.change_feed,
            catalog=self.catalog,
            followers=self.followers,
            clock=clock,
            generate_api_key=generate_api_key,
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
        self.desired_state = DesiredStateBuilder(
            change_feed=self.change_feed,
            catalog=self.catalog,
            cluster=self.cluster,
            driver=self.driver,
            recoverable_jobs=self._recoverable_jobs,
        )
        self.catalog_handlers: dict[str, Handler] = handlers_of(
            CATALOG, CatalogApi(self.service, self.followers)
        )
        self.access_handlers: dict[str, Handler] = handlers_of(
            ACCESS, AccessApi(self.access_service)
        )
        self.heartbeats_handlers: dict[str, Handler] = handlers_of(
            HEARTBEATS,
            HeartbeatsApi(
                catalog=self.catalog,
                service=self.service,
                access_service=self.access_service,
                change_feed=self.change_feed,
                cluster=self.cluster,
                host_registry=self.host_registry,
                followers=self.followers,
                desired_state=self.desired_state,
                lease_s=settings.lease_s,
            ),
        )

    def _recoverable_jobs(self) -> list[Job]:
        """Return the ended jobs that can still resume from the data left on their storageds."""
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


class Metad:
    """A metad over its data folder.

    `handlers` serve callers in this process; `open_ports` serves the network.

    Parameters
    ----------
    settings : MetadSettings
    tls : DaemonTls, optional
        Certificates of the ports. Default: the ports are not encrypted.
    access_control : AccessControl, optional
        Authenticates callers; handlers then check their roles. Default: every caller may do
        everything, and API keys cannot be created.
    generate_api_key : callable, optional
        Returns a new API key. Default: `api_keys.generate` with access control, else a refusal.
    addresses : AllowedAddresses, optional
        Addresses that jobs may name. Default: those of the settings.

    Raises
    ------
    Conflict
        If another metad has the folder open.
    Corrupt
        If the stored catalog cannot be decoded.
    """

    def __init__(
        self,
        settings: MetadSettings,
        *,
        tls: DaemonTls | None = None,
        access_control: AccessControl | None = None,
        generate_api_key: ApiKeyGenerator | None = None,
        addresses: AllowedAddresses | None = None,
    ) -> None:
        self.settings, self._tls = settings, tls
        if generate_api_key is None:
            generate_api_key = _refuse_api_key if access_control is None else api_keys.generate
        self._identity = open_folder(settings.data, "metad")
        with ExitStack() as undo:
            undo.callback(self._identity.release)
            self._store = RocksStore(settings.data / "catalog")
            undo.callback(self._store.close)
            try:
                self.components = Components(
                    settings,
                    store=self._store,
                    uuid=self._identity.uuid,
                    accept_other_folder=self._identity.incarnation == 1,
                    clock=steady_clock(),
                    generate_api_key=generate_api_key,
                    addresses=addresses,
                )
            except (Corrupt, Conflict) as error:
                path = str(settings.data / "catalog")
                raise (
                    error if path in error.message else type(error)(f"{path}: {error.message}")
                ) from error
            undo.pop_all()
        self.handlers: dict[str, Handler] = {
            **self.components.catalog_handlers,
            **self.components.access_handlers,
            **self.components.heartbeats_handlers,
        }
        """Handlers by method path. With access control, they check the roles of the caller."""
        self._guard: AccessGuard | None = None
        self._authenticate = None
        if access_control is not None:
            self.components.catalog.spaces.hide_names()
            self._guard = _guard(self.components)
            self._authenticate = access_control.authenticate(
                self.components.desired_state.access_state
            )
        self.metrics = Metrics("metad")
        self._checks = HandlerChecks(
            settings,
            metrics=self.metrics,
            daemon="metad",
            guard=self._guard,
            state=self.components.desired_state.access_state,
            space_name=partial(_space_name, self.components),
        )
        self.handlers = {
            path: handler
            for methods in (CATALOG, ACCESS, HEARTBEATS)
            for path, handler in self._checks.wrap_all(methods, self.handlers).items()
        }
        self._add_gauges()
        self._grpc: GrpcServer | None = None
        self._http: HttpServer | None = None
        self._started = self._stopped = False
        self._insecure: list[str] = []
        self.grpc_port = 0
        self.http_port = 0

    def start(self) -> None:
        """Start the maintenance thread, which checks leases, retries and expiry."""
        self.components.maintenance.start()
        self._started = True

    def open_ports(self) -> None:
        """Serve gRPC and HTTP; `grpc_port` and `http_port` are set to the ports in use."""
        from asterism_daemonkit.http.server import HttpServer
        from asterism_daemonkit.http.turns import HttpTurns

        self._insecure = self.settings.insecure_addresses()
        log_insecure(self._insecure, self.settings)
        raise_file_limit()
        limits = self.settings.connection_limits()
        clear_ports(self.settings.ports_file)
        services = metad_pb.DESCRIPTOR.services_by_name
        self._grpc = GrpcServer(
            address=self.settings.listen,
            services={
                services[name].full_name: (methods, self.handlers)
                for name, methods in (
                    ("Catalog", CATALOG),
                    ("Access", ACCESS),
                    ("Heartbeats", HEARTBEATS),
                )
            },
            workers=self.settings.grpc_workers,
            queue=self.settings.grpc_queue,
            metrics=self.metrics,
            options=FIXED_WINDOW_OPTIONS,
            tls=self._tls,
            share_of=self._checks.share_of,
            authenticate=self._checks.counting("grpc", self._authenticate),
            limits=limits,
        )
        self._http = HttpServer(
            address=self.settings.http_listen,
            daemon="metad",
            status=self.status,
            ready=self.ready,
            flags=self.settings.flags(),
            metrics=self.metrics,
            allowed_hosts=self.settings.allowed_hosts(),
            routers=self.api_routers,
            tls=self._tls,
            authenticate=self._authenticate,
            refused_credentials=self._checks.refused_credentials,
            turns=HttpTurns(self._checks.share_of),
            limits=limits,
        )
        self.grpc_port = self._grpc.start()
        self.http_port = self._http.start()
        self._grpc.set_serving(True)
        write_ports(self.settings.ports_file, grpc=self.grpc_port, http=self.http_port)

    def api_routers(self, catalog: Transport | None = None) -> list[APIRouter]:
        """Return the HTTP API, for the HTTP port of this daemon or of its host process.

        Parameters
        ----------
        catalog : Transport, optional
            Carries calls of the Catalog service with the rights of the caller of a route. Default:
            the handlers of this daemon.
        """
        from asterism_daemonkit.http.job_routes import job_router
        from metad.http.routes import router

        catalog = catalog or LocalTransport(self.handlers, current_principal)
        return [job_router(catalog), router(self.components.service, catalog, self._guard)]

    def ready(self) -> list[str]:
        """Return the reasons why metad is not ready; empty if it is."""
        missing = [] if self._started and not self._stopped else ["metad is not started"]
        fault = self._store.fault() or self.components.followers.fault()
        return [*missing, fault] if fault else missing

    def status(self) -> dict[str, Any]:
        """Return the fields that ``/status`` reports."""
        return {
            "uuid": self._identity.uuid,
            "cluster": self.components.catalog.cluster,
            "incarnation": self._identity.incarnation,
            "insecure": self._insecure,
            "revision": self.components.change_feed.revision,
            "catalog": asdict(self.components.catalog.history.position),
            "removals_pending": self._pending_removals(),
            "spaces": len(self.components.service.spaces()),
            "storageds_online": self._online_hosts(DaemonRole.STORAGED),
            "graphds_online": self._online_hosts(DaemonRole.GRAPHD),
            "jobs": {state.name: self._jobs_in_state(state) for state in JobState},
        }

    def stop(self) -> None:
        """Stop maintenance, release parked polls, close the servers, then the store. Idempotent."""
        if self._stopped:
            return
        self._stopped = True
        if self._grpc is not None:
            self._grpc.set_serving(False)
        self.components.maintenance.stop()  # it would log that the feed is closed
        self.components.change_feed.close()
        if self._grpc is not None:
            self._grpc.stop(self.settings.stop_grace_s)
        if self._http is not None:
            self._http.stop()
        self._checks.close()
        self._store.close()
        self._identity.release()

    def _add_gauges(self) -> None:
        self.metrics.add_gauge(
            "spaces", "Number of spaces.", lambda: len(self.components.service.spaces())
        )
        self.metrics.add_gauge(
            "pins", "Number of pins of versions.", lambda: len(self.components.service.pins())
        )
        self.metrics.add_gauge(
            "removals_pending",
            "Removal orders that a storaged has not carried out yet.",
            self._pending_removals,
        )
        for role in DaemonRole:
            self.metrics.add_gauge(
                f"{role.name.lower()}s_online",
                f"Number of {role.name.lower()}s with a valid lease.",
                partial(self._online_hosts, role),
            )
        for state in JobState:
            self.metrics.add_gauge(
                f"jobs_{state.name.lower()}",
                f"Number of jobs in state {state.name}.",
                partial(self._jobs_in_state, state),
            )

    def _online_hosts(self, role: DaemonRole) -> int:
        with self.components.change_feed.lock:
            return len(self.components.cluster.online(role))

    def _pending_removals(self) -> int:
        with self.components.change_feed.lock:
            return len(self.components.catalog.removals.pending())

    def _jobs_in_state(self, state: JobState) -> int:
        return sum(job.state is state for job in self.components.driver.state.jobs.values())


def _guard(components: Components) -> AccessGuard:
    """Return the guard of metad's handlers, which looks ids up in the catalog."""
    service = components.service

    def space_of_load(load_id: int, call: GuardedCall) -> int:
        with components.change_feed.lock:
            return components.catalog.loads.get(load_id).space_id

    def space_of_pin(pin_id: int, call: GuardedCall) -> int:
        return next((pin.space_id for pin in service.pins() if pin.pin_id == pin_id), 0)

    return AccessGuard(
        space_name=partial(_space_name, components),
        space_of_load=space_of_load,
        space_of_job=lambda job_id, call: service.job(job_id).space_id,
        space_of_pin=space_of_pin,
    )


def _space_name(components: Components, space_id: int) -> str:
    with components.change_feed.lock:
        space = components.catalog.spaces.get(space_id)
    return "" if space is None else space.name


def _refuse_api_key() -> GeneratedApiKey:
    raise NotReady("API keys: expected a generator of keys; start metad with access control")

"""How a metad is composed: the only place that names its concrete store and its doors."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from typing import Any

from asterism_daemonkit.calls import Handler
from asterism_daemonkit.daemon_identity import open_folder
from asterism_daemonkit.grpc_server import GrpcServer
from asterism_daemonkit.http_server import HttpServer
from asterism_daemonkit.metrics import Metrics
from asterism_daemonkit.ports import clear_ports, write_ports
from asterism_proto.errors import Conflict, Corrupt
from asterism_proto.methods import CATALOG, HEARTBEATS
from asterism_proto.v1 import metad_pb2 as mpb
from metad.clock import steady_clock
from metad.components import Components
from metad.hosts import Role
from metad.http.routes import router
from metad.model.jobs import JobState
from metad.settings import MetadSettings
from metad.store.rocksdb_store import RocksStore


class Metad:
    """A metad on its folder. ``handlers`` answer in this process; `open_ports` lets others in.

    Raises
    ------
    Conflict
        Where another metad has the folder open.
    Corrupt
        Where its catalog is not what was written.
    """

    def __init__(self, settings: MetadSettings) -> None:
        self.settings = settings
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
                )
            except (Corrupt, Conflict) as error:
                path = str(settings.data / "catalog")
                raise (
                    error if path in error.message else type(error)(f"{path}: {error.message}")
                ) from error
            undo.pop_all()
        self.handlers: dict[str, Handler] = {
            **self.components.catalog_handlers,
            **self.components.heartbeats_handlers,
        }
        self.metrics = Metrics("metad")
        self._add_gauges()
        self._grpc: GrpcServer | None = None
        self._http: HttpServer | None = None
        self._started = self._stopped = False
        self.grpc_port = 0
        self.http_port = 0

    def start(self) -> None:
        """Begin to look at the clock: leases, retries, expiry."""
        self.components.maintenance.start()
        self._started = True

    def open_ports(self) -> None:
        """Answer gRPC and HTTP; `grpc_port` and `http_port` say where."""
        clear_ports(self.settings.ports_file)
        services = mpb.DESCRIPTOR.services_by_name
        self._grpc = GrpcServer(
            address=self.settings.listen,
            services={
                services["Catalog"].full_name: (CATALOG, self.components.catalog_handlers),
                services["Beats"].full_name: (HEARTBEATS, self.components.heartbeats_handlers),
            },
            workers=self.settings.grpc_workers,
            queue=self.settings.grpc_queue,
            metrics=self.metrics,
        )
        self._http = HttpServer(
            address=self.settings.http_listen,
            daemon="metad",
            status=self.status,
            ready=self.ready,
            flags=self.settings.flags(),
            metrics=self.metrics,
            allowed_hosts=self.settings.allowed_hosts(),
            routers=[router(self.components.service)],
        )
        self.grpc_port = self._grpc.start()
        self.http_port = self._http.start()
        self._grpc.set_serving(True)
        write_ports(self.settings.ports_file, grpc=self.grpc_port, http=self.http_port)

    def ready(self) -> list[str]:
        """What is missing before it can do its work; empty when nothing is."""
        missing = [] if self._started and not self._stopped else ["metad is not started"]
        fault = self._store.fault() or self.components.followers.fault()
        return [*missing, fault] if fault else missing

    def status(self) -> dict[str, Any]:
        """What it is and holds, for ``/status``."""
        return {
            "uuid": self._identity.uuid,
            "cluster": self.components.catalog.cluster,
            "incarnation": self._identity.incarnation,
            "revision": self.components.change_feed.revision,
            "catalog": asdict(self.components.catalog.history.position),
            "removals_pending": self._pending_removals(),
            "spaces": len(self.components.service.spaces()),
            "storageds_online": self._online_hosts(Role.STORAGED),
            "graphds_online": self._online_hosts(Role.GRAPHD),
            "jobs": {state.name: self._jobs_in_state(state) for state in JobState},
        }

    def stop(self) -> None:
        """Send parked polls home, close the doors, then the store; again, nothing."""
        if self._stopped:
            return
        self._stopped = True
        if self._grpc is not None:
            self._grpc.set_serving(False)
        self.components.change_feed.close()
        if self._grpc is not None:
            self._grpc.stop(self.settings.stop_grace_s)
        if self._http is not None:
            self._http.stop()
        self.components.maintenance.stop()
        self._store.close()
        self._identity.release()

    def _add_gauges(self) -> None:
        self.metrics.add_gauge(
            "spaces", "Spaces there are.", lambda: len(self.components.service.spaces())
        )
        self.metrics.add_gauge(
            "pins", "Leases on versions.", lambda: len(self.components.service.pins())
        )
        self.metrics.add_gauge(
            "removals_pending",
            "Removal orders that a storaged has not carried out yet.",
            self._pending_removals,
        )
        for role in Role:
            self.metrics.add_gauge(
                f"{role.name.lower()}s_online",
                f"{role.name.lower()}s whose lease holds.",
                partial(self._online_hosts, role),
            )
        for state in JobState:
            self.metrics.add_gauge(
                f"jobs_{state.name.lower()}",
                f"Jobs that are {state.name}.",
                partial(self._jobs_in_state, state),
            )

    def _online_hosts(self, role: Role) -> int:
        with self.components.change_feed.lock:
            return len(self.components.cluster.online(role))

    def _pending_removals(self) -> int:
        with self.components.change_feed.lock:
            return len(self.components.catalog.removals.pending())

    def _jobs_in_state(self, state: JobState) -> int:
        return sum(job.state is state for job in self.components.driver.state.jobs.values())

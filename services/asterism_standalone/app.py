"""Composition of the three daemons in one process, with calls instead of sockets."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from asterism_daemonkit.audit_settings import AuditSettings
from asterism_daemonkit.daemon_identity import FILE_NAME as IDENTITY
from asterism_daemonkit.daemon_identity import open_folder
from asterism_daemonkit.exposure import log_insecure
from asterism_daemonkit.http.allowed_hosts import AllowedHosts
from asterism_daemonkit.listening import split_address
from asterism_daemonkit.logs import keep_recent_records, print_errors_only
from asterism_daemonkit.metrics import Metrics
from asterism_daemonkit.request_limit_settings import RequestLimits
from asterism_daemonkit.rpc.call_context import Handler, current_principal
from asterism_daemonkit.rpc.connection_limits import raise_file_limit
from asterism_daemonkit.rpc.grpc_server import GrpcServer
from asterism_daemonkit.rpc.transports import LocalTransport
from asterism_graphkit.compile.jit import load_runtime
from asterism_io.control_groups import available_cores
from asterism_proto.errors import AsterismError, InvalidRequest, NotFound, NotReady
from asterism_proto.methods import ACCESS, CATALOG, GRAPH, HEARTBEATS
from asterism_proto.v1 import metad_pb2 as metad_pb
from asterism_standalone import compile_report
from asterism_standalone.kernel_compiler import KernelCompiler, is_cache_complete
from asterism_standalone.published_versions_file import PublishedFile
from asterism_standalone.read_only import ReadOnlyService
from asterism_standalone.settings import StandaloneSettings
from graphd.app import Graphd
from graphd.pages.rates import RateMonitor
from graphd.settings import GraphdSettings
from metad.app import Metad
from metad.settings import MetadSettings
from storaged.app import Storaged
from storaged.settings import StoragedSettings
from storaged.tasks.fork_server import ForkServer

if TYPE_CHECKING:  # imported when a port opens: an embedded service has none, and starts sooner
    from asterism_daemonkit.http.server import HttpServer
    from graphd.pages.service import Pages

logger = logging.getLogger(__name__)

_ANY_PORT = "127.0.0.1:0"
_GRPC_WORKERS, _GRPC_QUEUE, _STOP_GRACE_S = 16, 256, 10.0
_LAST_POLL_S = 5.0
_REPORT_INTERVAL_S = 2.0
"""Seconds between two reports of what a starting service waits for."""
_CATCH_UP_LIMIT_S = 30.0
"""Seconds to wait for a new version.

The wait is longer than between daemons: a caller that waits for a busy disk has no other graphd to
try, and holds up no other callers.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoints:
    """Addresses of a standalone service."""

    address: str
    """host:port of the gRPC port, as `asterism.connect` takes it."""
    http_address: str


_GRAPHD_ADDRESS = "standalone:0"
"""Address of the folder's only graphd.

It stays the same, so that metad recognizes the graphd when the folder is opened again.
"""


class Standalone:
    """The three daemons on one folder.

    Parameters
    ----------
    folder : Path
        Created if it does not exist. It has one writer at a time.
    settings : StandaloneSettings, optional
        Default: the defaults of every setting.
    compile_ahead : bool
        Compile all kernels before the service is ready. Otherwise each is compiled when it is first
        called; a process of its own compiles the others meanwhile. Default True.

    Raises
    ------
    Conflict
        If another process has the folder open.
    """

    def __init__(
        self,
        folder: Path,
        settings: StandaloneSettings | None = None,
        *,
        compile_ahead: bool = True,
    ) -> None:
        self.settings = settings or StandaloneSettings()
        access_control = self.settings.access_control()
        self._compiler = (
            None
            if compile_ahead or is_cache_complete()
            else KernelCompiler(workers=1, background=True)
        )
        self.folder = folder
        self.metrics = Metrics("standalone")
        fork_server = ForkServer()
        if self.settings.fork_tasks and threading.active_count() == 1:
            load_runtime()
            fork_server.fork()  # Before the folder is locked: the server would keep the lock.
        try:
            self._identity = open_folder(folder, "standalone")
        except BaseException:
            fork_server.close()
            raise
        self._published_file = PublishedFile(folder)
        heartbeat_interval_s = self.settings.heartbeat_interval_s
        limits: dict[str, Any] = self.settings.model_dump(include=set(RequestLimits.model_fields))
        audit: dict[str, Any] = self.settings.model_dump(include=set(AuditSettings.model_fields))
        try:
            metad_settings = MetadSettings.from_keywords(
                data=folder / "metad",
                listen=_ANY_PORT,
                http_listen=_ANY_PORT,
                keep_versions=self.settings.keep_versions,
                allowed_addresses=self.settings.allowed_addresses,
            )
            self._metad = Metad(
                metad_settings,
                access_control=access_control,
                addresses=replace(metad_settings.addresses(), host_folder=folder),
            )
            metad_transport = self._to_metad = LocalTransport(self._metad.handlers)
            self._storaged = Storaged(
                StoragedSettings.from_keywords(
                    data=folder / "storaged",
                    listen=_ANY_PORT,
                    http_listen=_ANY_PORT,
                    heartbeat_interval_s=heartbeat_interval_s,
                    memory_limit_mib=self.settings.memory_limit_mib,
                    conditions_mib=self.settings.conditions_mib,
                    allowed_addresses=self.settings.allowed_addresses,
                    **limits,
                    quarantine_grace_s=self.settings.quarantine_grace_s,
                ),
                metad_transport,
                fork_server=fork_server,
                fenced=False,  # its metad is in this process
                compile_ahead=compile_ahead,
            )
            storaged_transport = LocalTransport(self._storaged.handlers)
            self._graphd = Graphd(
                GraphdSettings.from_keywords(
                    listen=_ANY_PORT,
                    http_listen=_ANY_PORT,
                    heartbeat_interval_s=heartbeat_interval_s,
                    advertise=_GRAPHD_ADDRESS,
                    catch_up_s=_CATCH_UP_LIMIT_S,
                    **limits,
                    **audit,
                ),
                metad_transport,
                lambda *_: storaged_transport,
                on_poll_reply=self._published_file.update,
                compile_ahead=compile_ahead,
                access_control=access_control,
                access_metrics=self.metrics,
            )
        except BaseException:
            fork_server.close()
            self._identity.release()
            raise
        self.handlers: dict[str, Handler] = self._graphd.handlers
        self.limits = self.settings.limits
        self._grpc: GrpcServer | None = None
        self._http: HttpServer | None = None
        self._rates: RateMonitor | None = None
        self._pages: Callable[[], Pages] | None = None
        """Function that creates the web pages at its first call; None while no port is open."""
        self._started = self._stopped = False
        self._insecure: list[str] = []

    def start(self, on_wait: Callable[[str], None] = lambda _: None) -> None:
        """Start the three daemons, and wait until they can serve.

        Parameters
        ----------
        on_wait : callable, optional
            Called every two seconds with what the service waits for.

        Raises
        ------
        NotReady
            If that takes longer than the settings allow; the message lists the causes.
        """
        if self._compiler is not None:
            self._compiler.start()
        self._metad.start()
        self._storaged.start()
        self._graphd.start()
        reported_s = time.monotonic()
        deadline = reported_s + self.settings.ready_timeout_s
        while missing := self.ready():
            if time.monotonic() - reported_s > _REPORT_INTERVAL_S:
                reported_s = time.monotonic()
                on_wait("; ".join(missing))
            if not self.settings.adopting and (fault := self._metad.components.followers.fault()):
                raise NotReady(fault)
            if self.settings.adopting and self._metad.components.followers.is_adoptable():
                break
            if time.monotonic() > deadline:
                raise NotReady(
                    f"{self.folder} is not ready after {self.settings.ready_timeout_s} s: "
                    f"{'; '.join(missing)}"
                )
            time.sleep(0.005)
        self._started = True

    def ready(self) -> list[str]:
        """Return the reasons why the service cannot serve yet; empty if it can."""
        return [*self._metad.ready(), *self._storaged.ready(), *self._graphd.ready()]

    def status(self) -> dict[str, Any]:
        """Return the folder and the status of metad and graphd."""
        return {
            "folder": str(self.folder),
            "insecure": self._insecure,
            "metad": self._metad.status(),
            "graphd": self._graphd.status(),
        }

    def open_ports(
        self,
        *,
        listen: str = "127.0.0.1:9669",
        http_listen: str = "127.0.0.1:19669",
        http_names: Sequence[str] = (),
    ) -> Endpoints:
        """Open ports for other processes; port 0 selects a free port.

        gRPC serves the methods of a graphd. HTTP serves metad's routes and the web pages, and also
        accepts ``http_names`` as host names.

        Raises
        ------
        InvalidRequest
            If other hosts reach a port without TLS or access control, and the setting ``insecure``
            does not permit it.
        """
        from asterism_daemonkit.http.server import HttpServer
        from asterism_daemonkit.http.turns import HttpTurns

        self._insecure = self.settings.insecure_addresses(listen=listen, http_listen=http_listen)
        keep_recent_records()
        log_insecure(self._insecure, self.settings)
        tls, connection_limits = self.settings.tls(), self.settings.connection_limits()
        raise_file_limit()
        self._grpc = GrpcServer(
            address=listen,
            services={
                table[name].service: (
                    table,
                    {method.path: self.handlers[method.path] for method in table.values()},
                )
                for table, name in (
                    (GRAPH, "write"),
                    (CATALOG, "list_spaces"),
                    (ACCESS, "grant_role"),
                )
            },
            workers=_GRPC_WORKERS,
            queue=_GRPC_QUEUE,
            cores=available_cores(),
            metrics=self.metrics,
            tls=tls,
            share_of=self._graphd.share_of,
            authenticate=self._graphd.counting("grpc"),
            limits=connection_limits,
        )
        address = f"{split_address(listen)[0]}:{self._grpc.start()}"
        self._rates = rates = RateMonitor(self.metrics)
        self._pages = pages = cache(
            lambda: self._graphd.create_pages(daemon="standalone", rates=rates, missing=self.ready)
        )
        self._http = HttpServer(
            address=http_listen,
            daemon="standalone",
            status=self.status,
            ready=self.ready,
            flags=self.settings.model_dump(mode="json"),
            metrics=self.metrics,
            allowed_hosts=AllowedHosts(http_names, listen),
            routers=lambda: [
                *self._metad.api_routers(
                    LocalTransport(self._graphd.catalog_handlers, current_principal)
                ),
                *self._graphd.api_routers(lambda: address, tls=tls),
                *pages().routers,
            ],
            tls=tls,
            authenticate=self._graphd.authenticate,
            refused_credentials=self._graphd.refused_credentials,
            turns=HttpTurns(self._graphd.share_of, cores=available_cores()),
            sign_in=lambda: pages().sign_in,
            limits=connection_limits,
        )
        endpoints = Endpoints(
            address=address,
            http_address=f"{split_address(http_listen)[0]}:{self._http.start()}",
        )
        rates.start()
        self._grpc.set_serving(True)
        return endpoints

    def stop(self) -> None:
        """Close the ports, stop the three daemons and release the folder; idempotent."""
        if self._stopped:
            return
        self._stopped = True
        if self._compiler is not None:
            self._compiler.stop()
        if self._grpc is not None:
            self._grpc.set_serving(False)
            self._grpc.stop(_STOP_GRACE_S)
        if self._http is not None:
            self._http.stop()
        if self._rates is not None:
            self._rates.stop()
        self._graphd.stop()
        if self._started:
            self._save_last_state()
        self._storaged.stop()
        self._metad.stop()
        self._identity.release()

    def _save_last_state(self) -> None:
        """Save the latest published versions, which graphd may not have received yet."""
        try:
            self._published_file.update(
                cast(
                    metad_pb.PollReply,
                    self._to_metad.call(
                        HEARTBEATS["poll"],
                        metad_pb.PollRequest(role=metad_pb.GRAPHD, uuid=_GRAPHD_ADDRESS),
                        _LAST_POLL_S,
                    ),
                )
            )
        except AsterismError as error:
            logger.warning("shutdown_heartbeat_failed", extra={"reason": error.message})


def preload_kernels() -> None:
    """Load what a service that forks its tasks loads before it forks; idempotent."""
    load_runtime()


def embed(folder: Path, *, mode: str = "w", **settings: Any) -> Standalone | ReadOnlyService:
    """Return a started service on ``folder``; `asterism.open` is built on it."""
    if mode not in ("w", "r+", "r"):
        raise InvalidRequest(f"mode {mode!r}: expected 'w', 'r+' or 'r'")
    if folder.exists() and not folder.is_dir():
        raise InvalidRequest(f"path={str(folder)!r}: expected a folder, found a file")
    compile_report.install()
    print_errors_only()
    standalone_settings = StandaloneSettings.of(settings)
    if mode == "r+" and not (folder / IDENTITY).exists():
        raise NotFound(
            f"{folder}: {'there are no graphs in it' if folder.exists() else 'no such folder'}; "
            "create a space in it first"
        )
    service = (
        ReadOnlyService(folder, standalone_settings.limits)
        if mode == "r"
        else Standalone(folder, standalone_settings, compile_ahead=False)
    )
    try:
        service.start()
    except BaseException:
        service.stop()
        raise
    return service

"""Composition of a graphd: the routing table, storaged connections, handlers and ports."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from asterism_access.browser_sessions import BrowserSessions
from asterism_access.credentials.cluster_key import CLIENT_TICKET_S
from asterism_access.guard import AccessGuard, GuardedCall
from asterism_access.refused_credential_audit import RefusedCredentials
from asterism_access.roles import Role
from asterism_daemonkit.access_cache import AccessCache
from asterism_daemonkit.access_control import AccessControl
from asterism_daemonkit.catalog_position import CatalogPositionStore
from asterism_daemonkit.daemon_identity import Identity
from asterism_daemonkit.exposure import log_insecure
from asterism_daemonkit.heartbeat import HeartbeatClient, HeartbeatPayload
from asterism_daemonkit.host_resources import ResourceMeter
from asterism_daemonkit.listening import split_address
from asterism_daemonkit.metrics import Metrics
from asterism_daemonkit.ports_file import clear_ports, write_ports
from asterism_daemonkit.rpc.call_context import CallContext, Handler, current_principal
from asterism_daemonkit.rpc.connection_limits import raise_file_limit
from asterism_daemonkit.rpc.fair_pool import ShareSource
from asterism_daemonkit.rpc.grpc_server import Authenticate, GrpcServer
from asterism_daemonkit.rpc.interceptor_chain import HandlerChecks
from asterism_daemonkit.rpc.transports import (
    ConcurrentTransport,
    DelegatingTransport,
    LocalTransport,
    TrafficCallback,
)
from asterism_daemonkit.tls import DaemonTls
from asterism_graphkit.compile.activity import ACTIVITY
from asterism_io.control_groups import available_cores
from asterism_proto.errors import NotFound
from asterism_proto.framing import Frame
from asterism_proto.methods import ACCESS, CATALOG, GRAPH, Method
from asterism_proto.transport import Content
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from graphd.api.service import GraphService
from graphd.kernel_warmup import compile_kernels
from graphd.owning_spaces import SpaceLookups
from graphd.pages.rates import RateMonitor
from graphd.query.deferred_service import DeferredQueryService
from graphd.routing.access_change_arrival import expected_access
from graphd.routing.committed_loads import CommitLog
from graphd.routing.dispatch import Dispatcher, StoragedPool
from graphd.routing.routes import Routes, SpaceRoute
from graphd.routing.routing_table import RoutingTable
from graphd.settings import GraphdSettings
from graphd.sign_outs import SignOuts
from graphd.writes.load_commit import LoadCommitter

if TYPE_CHECKING:  # imported when a port opens: an embedded graphd has none, and starts sooner
    from fastapi import APIRouter

    from asterism_daemonkit.http.server import HttpServer
    from graphd.pages.service import Pages

logger = logging.getLogger(__name__)

_GRAPH_SERVICE, _CATALOG_SERVICE = GRAPH["write"].service, CATALOG["list_spaces"].service
_ACCESS_SERVICE = ACCESS["grant_role"].service


class Graphd:
    """One graphd, which listens on no port until `open_ports`.

    Parameters
    ----------
    settings : GraphdSettings
        Settings of this daemon.
    metad : DelegatingTransport
        Carries calls to metad; with access control, also on behalf of this daemon's callers.
    connect : callable
        Returns a transport to a storaged's address. The transport reports its traffic to the
        given callback.
    on_poll_reply : callable, optional
        Called with each of metad's poll replies before the reply is applied.
    compile_ahead : bool
        Compile all kernels at the start, and be ready afterwards. Otherwise a kernel is compiled
        when it is first called. Default True.
    tls : DaemonTls, optional
        Certificates of the ports. Default: the ports are not encrypted.
    access_control : AccessControl, optional
        Authenticates callers; handlers then check their roles. Default: every caller may do
        everything.
    access_metrics : Metrics, optional
        Metrics of the ports, in which access control counts. Default: those of the graphd.
    """

    def __init__(
        self,
        settings: GraphdSettings,
        metad: DelegatingTransport,
        connect: Callable[[str, TrafficCallback], ConcurrentTransport],
        *,
        on_poll_reply: Callable[[metad_pb.PollReply], None] | None = None,
        compile_ahead: bool = True,
        tls: DaemonTls | None = None,
        access_control: AccessControl | None = None,
        access_metrics: Metrics | None = None,
    ) -> None:
        self._tls, self._access_control = tls, access_control
        self._on_poll_reply, self._compile_ahead = on_poll_reply, compile_ahead
        self._settings = settings
        self._metad = metad
        self._routing = RoutingTable(settings.limits, lists_names=access_control is None)
        self.metrics = Metrics("graphd")
        self._hosts = StoragedPool(lambda address: connect(address, self.metrics.count_traffic))
        self._commits = CommitLog(metad)
        api = GraphService(
            routing=self._routing,
            dispatcher=Dispatcher(self._hosts, self.metrics.count_round),
            space_exists=self._exists,
            is_published=self._published,
            committed_loads=self._commits.committed_loads,
            metad=metad,
            catch_up_s=settings.catch_up_s,
            limits=settings.limits,
        )
        self._api = api
        self.handlers: dict[str, Handler] = {}
        """Handlers of the Graph, Catalog and Access services by method path."""
        self.query_service = DeferredQueryService(self.handlers, self._space_of)
        self.graph_handlers: dict[str, Handler] = {
            **api.handlers,
            GRAPH["get_routes"].path: self._get_routes,
            GRAPH["query"].path: self.query_service.query,
        }
        self.catalog_handlers: dict[str, Handler] = {
            method.path: self._forward(method) for method in CATALOG.values()
        }
        self._committer = LoadCommitter(
            metad, resolve_revivals=api.writes.resolve_revivals, seal=api.writes.seal
        )
        self.catalog_handlers[CATALOG["commit_load"].path] = self._commit
        self.access_handlers: dict[str, Handler] = {
            method.path: self._forward(method) for method in ACCESS.values()
        }
        self.access = AccessCache()
        self._sign_outs = SignOuts(metad)
        self._lookups = SpaceLookups(metad, self._wait_for_space)
        self._guard: AccessGuard | None = None
        self._sessions: BrowserSessions | None = None
        self._authenticate: Authenticate | None = None
        if access_control is not None:
            self._guard = AccessGuard(
                space_name=self._space_name,
                space_of_load=self._lookups.space_of_load,
                space_of_job=self._lookups.space_of_job,
                space_of_pin=self._lookups.space_of_pin,
            )
            authenticator = access_control.authenticator(self.access.state)
            self._authenticate = authenticator.authenticate
            self._sessions = BrowserSessions(
                access_control.cluster_key,
                authenticator,
                valid_s=settings.session_s,
                ended_in_cluster=self._sign_outs.ids,
                on_end=self._sign_outs.report,
            )
        self._checks = checks = HandlerChecks(
            settings,
            metrics=access_metrics or self.metrics,
            daemon=(access_metrics or self.metrics).daemon,
            guard=self._guard,
            state=self.access.state,
            space_name=self._space_name,
        )
        self.graph_handlers = checks.wrap_all(GRAPH, self.graph_handlers)
        self.catalog_handlers = checks.wrap_all(CATALOG, self.catalog_handlers)
        self.access_handlers = checks.wrap_all(ACCESS, self.access_handlers)
        self.handlers |= {**self.graph_handlers, **self.catalog_handlers, **self.access_handlers}
        self._followed = CatalogPositionStore(None)
        self._resource_meter = ResourceMeter(None)
        self._heartbeat = HeartbeatClient(
            metad=metad,
            role=metad_pb.GRAPHD,
            identity=_identity(settings),
            address=settings.advertised_address(split_address(settings.listen)[1]),
            http_address=settings.http_listen,
            on_poll=self._apply_poll,
            payload=self._report,
            interval_s=settings.heartbeat_interval_s,
            poll_wait_s=settings.poll_wait_s,
            followed_catalog=self._followed,
        )
        self._compiled = threading.Event()
        self._grpc: GrpcServer | None = None
        self._http: HttpServer | None = None
        self._rates: RateMonitor | None = None
        self._pages: Callable[[], Pages] | None = None
        """Function that creates the web pages at its first call; None while no port is open."""
        self.grpc_port = self.http_port = 0
        self._insecure: list[str] = []

    @property
    def authenticate(self) -> Authenticate | None:
        """Function that authenticates callers; None without access control."""
        return self._authenticate

    def counting(self, port: str) -> Authenticate | None:
        """Return the same function, with its refusals counted for a port."""
        return self._checks.counting(port, self._authenticate)

    @property
    def refused_credentials(self) -> RefusedCredentials | None:
        """Refused credentials of callers; None without access control."""
        return self._checks.refused_credentials

    @property
    def share_of(self) -> ShareSource:
        """Function that returns the weight of the turns of a principal."""
        return self._checks.share_of

    def start(self) -> None:
        """Start heartbeats to metad and compile the kernels; open no port."""
        threading.Thread(target=self._warm, name="warm", daemon=True).start()
        self._heartbeat.start()

    def ready(self) -> list[str]:
        """Return the reasons why this graphd cannot serve yet; empty if it can."""
        missing = [] if self._routing.has_reply else ["no reply from metad yet"]
        if self._followed.fault:
            missing.append(self._followed.fault)
        if self._access_control is not None:
            missing += self.access.missing()
        return missing if self._compiled.is_set() else [*missing, ACTIVITY.describe()]

    def open_ports(self) -> None:
        """Open the gRPC and HTTP ports."""
        from asterism_daemonkit.http.server import HttpServer
        from asterism_daemonkit.http.turns import HttpTurns

        settings = self._settings
        self._insecure = settings.insecure_addresses()
        log_insecure(self._insecure, settings)
        raise_file_limit()
        limits = settings.connection_limits()
        clear_ports(settings.ports_file)
        self._grpc = GrpcServer(
            address=settings.listen,
            services={
                _GRAPH_SERVICE: (GRAPH, self.graph_handlers),
                _CATALOG_SERVICE: (CATALOG, self.catalog_handlers),
                _ACCESS_SERVICE: (ACCESS, self.access_handlers),
            },
            workers=settings.grpc_workers,
            queue=settings.grpc_queue,
            cores=available_cores(),
            metrics=self.metrics,
            tls=self._tls,
            share_of=self._checks.share_of,
            authenticate=self._checks.counting("grpc", self._authenticate),
            limits=limits,
        )
        self.grpc_port = self._grpc.start()
        self._rates = rates = RateMonitor(self.metrics)
        self._pages = pages = cache(
            lambda: self.create_pages(daemon="graphd", rates=rates, missing=self.ready)
        )
        self._http = HttpServer(
            address=settings.http_listen,
            daemon="graphd",
            status=self.status,
            ready=self.ready,
            flags=settings.flags(),
            metrics=self.metrics,
            allowed_hosts=settings.allowed_hosts(),
            routers=lambda: [
                *self.api_routers(
                    lambda: settings.advertised_address(self.grpc_port), tls=self._tls
                ),
                self._job_router(),
                *pages().routers,
            ],
            tls=self._tls,
            authenticate=self._authenticate,
            refused_credentials=self._checks.refused_credentials,
            turns=HttpTurns(self._checks.share_of, cores=available_cores()),
            limits=limits,
            sign_in=lambda: pages().sign_in,
        )
        self.http_port = self._http.start()
        rates.start()
        self._heartbeat.address = settings.advertised_address(self.grpc_port)
        self._heartbeat.http_address = f"{split_address(settings.http_listen)[0]}:{self.http_port}"
        self._heartbeat.send_now()
        write_ports(settings.ports_file, grpc=self.grpc_port, http=self.http_port)
        threading.Thread(target=self._serve_when_ready, name="readiness", daemon=True).start()

    def api_routers(
        self, address: Callable[[], str], *, tls: DaemonTls | None = None
    ) -> list[APIRouter]:
        """Return the HTTP API, for the HTTP port of this daemon or of its host process.

        Parameters
        ----------
        address : callable
            Returns host:port of the gRPC port, which the self-test calls.
        tls : DaemonTls, optional
            Certificates of that port.
        """
        from graphd.http.sampling import sampling_router
        from graphd.http.self_test import verify_router
        from graphd.http.statements import query_router

        return [
            sampling_router(self.handlers, self._space_of),
            query_router(self.query_service.service),
            verify_router(address, tls, None if self._guard is None else self._own_calls),
        ]

    def _job_router(self) -> APIRouter:
        from asterism_daemonkit.http.job_routes import job_router

        return job_router(LocalTransport(self.catalog_handlers, current_principal))

    def create_pages(
        self, *, daemon: str, rates: RateMonitor, missing: Callable[[], list[str]]
    ) -> Pages:
        """Return the web pages, for the HTTP port of this daemon or of its host process."""
        from graphd.pages.service import Pages
        from graphd.pages.sign_in import PageSignIn

        return Pages(
            daemon=daemon,
            metad=self._metad,
            read_histogram=self._api.weight_histogram,
            storaged=self._hosts.transport,
            handlers=self.handlers,
            rates=rates,
            missing=missing,
            catalog=None
            if self._guard is None
            else LocalTransport(self.catalog_handlers, current_principal),
            may_read_logs=lambda: current_principal().is_cluster_admin,
            sign_in=None
            if self._sessions is None
            else PageSignIn(
                self._sessions, self._checks.audit_log, self._checks.refused_credentials
            ),
            access=None
            if self._guard is None
            else LocalTransport(self.access_handlers, current_principal),
        )

    def stop(self) -> None:
        """Close the ports, let calls in progress end, and stop heartbeats to metad."""
        if self._grpc is not None:
            self._grpc.set_serving(False)
            self._grpc.stop(self._settings.stop_grace_s)
        if self._http is not None:
            self._http.stop()
        if self._rates is not None:
            self._rates.stop()
        self._heartbeat.stop()
        self._hosts.close()
        self._checks.close()

    def status(self) -> dict[str, Any]:
        """Return the known spaces with their newest versions, and the storageds.

        In a request of HTTP, they are the spaces that its caller has a role in.
        """
        routes = self._routing.routes
        return {
            "revision": routes.revision,
            "insecure": self._insecure,
            "spaces": {
                space.name: {"version": space.current_version, "parts": len(space.host_of_part)}
                for space in routes.spaces.values()
                if current_principal().has_role(space.name, Role.READER)
            },
            "storageds": dict(routes.addresses),
        }

    def _apply_poll(self, reply: metad_pb.PollReply) -> None:
        previous_term = self._followed.position.term if self._followed.position is not None else ""
        self._followed.follow(reply.position)
        if previous_term != reply.position.term:
            self._commits.clear()
            self._lookups.clear()
        if self._on_poll_reply is not None:
            self._on_poll_reply(reply)
        self._sign_outs.follow(reply)
        self.access.follow(reply)
        previous_routes = self._routing.routes
        # Update addresses first: requests along the new routes must find their hosts. Keep hosts
        # that metad has lost sight of: a storaged that cannot reach metad still samples from
        # sealed versions, and one that is gone does not reply.
        self._hosts.update_addresses({host.uuid: host.address for host in reply.storaged})
        routes = self._routing.apply_reply(reply)
        for space in routes.spaces.values():
            previous_space = previous_routes.spaces.get(space.name)
            if space.current_version and (
                previous_space is None or previous_space.current_version != space.current_version
            ):
                logger.info(
                    "version_served", extra={"space": space.name, "version": space.current_version}
                )
        self._heartbeat.send_now()

    def _report(self) -> HeartbeatPayload:
        return HeartbeatPayload(
            held_versions=[
                metad_pb.HeldVersion(space_id=space_id, version=version)
                for space_id, version in self._routing.newest_versions()
            ],
            resources=self._resource_meter.measure(),
        )

    def _forward(self, method: Method) -> Handler:
        def forward(request: Content, call: CallContext) -> Content:
            principal = call.principal
            metad = self._metad if principal.is_trusted else self._metad.on_behalf_of(principal)
            reply = metad.call(method, request, call.remaining())
            is_visible = _expected_routes(request, reply)
            if is_visible is not None:
                self._routing.wait_for(is_visible, min(self._settings.catch_up_s, call.remaining()))
            is_followed = expected_access(request, reply)
            if is_followed is not None:
                self.access.wait_for(is_followed, min(self._settings.catch_up_s, call.remaining()))
            return reply

        return forward

    def _get_routes(
        self, request: Frame[graphd_pb.GetRoutesRequest], call: CallContext
    ) -> Frame[graphd_pb.GetRoutesReply]:
        """Return the routes, with a ticket of the caller's roles for storageds."""
        reply = self._routing.get_routes(request, call)
        if self._access_control is not None and not call.principal.is_trusted:
            spaces = self._routing.routes.spaces.values()
            reply.head.ticket = self._access_control.cluster_key.client_ticket(
                call.principal, {space.space_id: space.name for space in spaces}
            )
            reply.head.ticket_s = CLIENT_TICKET_S
        return reply

    def _space_of(self, name: str, call: CallContext) -> SpaceRoute:
        """Return a space that the caller has a role in, for statements and routes of HTTP."""
        if self._guard is not None:
            self._guard.require(call.principal, name, Role.READER)
        return self._api.versions.space_of(name, call)

    def _space_name(self, space_id: int) -> str:
        spaces = self._routing.routes.spaces.values()
        return next((space.name for space in spaces if space.space_id == space_id), "")

    def _wait_for_space(self, name: str, space_id: int, call: GuardedCall) -> None:
        """Wait for the route of a space that another graphd has just created."""
        if self._space_name(space_id):
            return
        try:
            space = self._metad.call(
                CATALOG["describe_space"], metad_pb.SpaceRequest(space=name), call.remaining()
            )
        except NotFound:
            return
        if isinstance(space, common_pb.Space) and space.space_id == space_id:
            self._routing.wait_for(
                lambda routes: bool(self._space_name(space_id)),
                min(self._settings.catch_up_s, call.remaining()),
            )

    def _own_calls(self) -> LocalTransport:
        """Return a transport to the handlers with the rights of the caller of a route."""
        caller = current_principal()
        return LocalTransport(self.handlers, lambda: caller)

    def _commit(self, request: metad_pb.CommitLoadRequest, call: CallContext) -> Content:
        """Commit a load once every host is sealed and knows the nodes that the load revives."""
        if not request.space:
            load = self._metad.call(
                CATALOG["get_load"], metad_pb.LoadRequest(load_id=request.load_id), call.remaining()
            )
            assert isinstance(load, metad_pb.Load)
            request.space = load.space
        return self._committer.commit(request, call, revivals_resolved=False)

    def _exists(self, space: str, call: CallContext) -> bool:
        try:
            self._metad.call(
                CATALOG["describe_space"], metad_pb.SpaceRequest(space=space), call.remaining()
            )
        except NotFound:
            return False
        return True

    def _published(self, space: str, version: int, call: CallContext) -> bool:
        try:
            self._metad.call(
                CATALOG["get_manifest"],
                metad_pb.ManifestRequest(space=space, version=version),
                call.remaining(),
            )
        except NotFound:
            return False
        return True

    def _warm(self) -> None:
        if self._compile_ahead:
            compile_kernels()
        self._compiled.set()
        if self._compile_ahead:
            self.query_service.prepare()

    def _serve_when_ready(self) -> None:
        while self.ready():
            time.sleep(0.05)
        if self._grpc is not None:
            self._grpc.set_serving(True)
            logger.info("graphd_ready", extra={"address": self._heartbeat.address})


def _expected_routes(request: Content, reply: Content) -> Callable[[Routes], bool] | None:
    """Return a predicate that routes must satisfy before a reply is sent, or None.

    A client that created or dropped a space, or saw a build finish, then finds this graphd's
    routes up to date with that reply."""
    if isinstance(request, metad_pb.DropSpaceRequest):
        return lambda routes: request.space not in routes.spaces
    if isinstance(request, metad_pb.CreateSpaceRequest) and isinstance(reply, common_pb.Space):
        space_id = reply.space_id
        return lambda routes: (
            request.name in routes.spaces and routes.spaces[request.name].space_id == space_id
        )
    if (
        isinstance(request, metad_pb.JobRequest)
        and isinstance(reply, common_pb.Job)
        and reply.state == common_pb.FINISHED
        and reply.version
    ):
        space, version = reply.space, reply.version
        return lambda routes: (
            space not in routes.spaces or routes.spaces[space].current_version >= version
        )
    return None


def _identity(settings: GraphdSettings) -> Identity:
    """Return this graphd's identity, with a uuid derived from its known address.

    A graphd has no data folder to keep a uuid in. Without a known address the uuid is random.
    """
    _, port = split_address(settings.listen)
    known_address = settings.advertise or (f"{uuid.getnode()}:{settings.listen}" if port else "")
    name = (
        uuid.uuid5(uuid.NAMESPACE_DNS, f"graphd@{known_address}") if known_address else uuid.uuid4()
    )
    return Identity(name.hex, time.time_ns() // 1_000_000, lock_fd=-1)

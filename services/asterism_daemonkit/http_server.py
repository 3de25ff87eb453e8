"""HTTP server of every daemon on FastAPI, with the routes that metad adds."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from email.utils import formatdate
from typing import Any

import uvicorn
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse, RedirectResponse
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from asterism_access.browser_sessions import ActiveSession
from asterism_access.principals import ANONYMOUS, LOCAL, Principal
from asterism_access.refused_credentials import RefusedCredentials
from asterism_daemonkit import api_docs
from asterism_daemonkit.allowed_hosts import AllowedHosts
from asterism_daemonkit.browser_requests import SignIn, csrf_fault, sign_in_redirect
from asterism_daemonkit.call_context import current_principal, serving
from asterism_daemonkit.connection_limits import DEFAULT_LIMITS, ConnectionLimits
from asterism_daemonkit.grpc_server import Authenticate
from asterism_daemonkit.http_connections import MAX_HEADER_BYTES, HttpConnections
from asterism_daemonkit.http_errors import (
    add_error_handlers,
    error_response,
    handle_error,
    retry_after_headers,
)
from asterism_daemonkit.http_turns import HttpTurns
from asterism_daemonkit.listening import listen
from asterism_daemonkit.metrics import Metrics
from asterism_daemonkit.tls import DaemonTls
from asterism_model import unicode_text
from asterism_proto.errors import AsterismError, Busy, InvalidRequest, Unauthenticated

MAX_BODY_BYTES = 1 << 20
"""Maximum size of a request body, in bytes."""
_MAX_LENGTH_DIGITS = 19
_INVALID_EVENT_INTERVAL_S = 1.0
"""Least seconds between two events about bytes that are not HTTP."""
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_PROBE_PATHS = ("/healthz", "/readyz", "/metrics")
"""Paths that monitors may request under any host name, without credentials.

They reveal nothing of a graph."""
WITHHELD_REASONS = "administrators of the cluster find the reasons in /status"
"""Text in the place of reasons, which may contain names of spaces and folders."""
API_PREFIX = "/api/v1"
"""Prefix of the routes that count as calls. Pages and probes poll theirs."""
_CALL_PREFIXES = (f"{API_PREFIX}/", "/ui/api/")
"""Prefixes of routes that make calls when they are read."""


def _cross_origin_fault(request: Request) -> str:
    """Return why a state-changing request is refused for its origin; empty if it is allowed.

    A browser sends the page that a request comes from (`Origin`, `Sec-Fetch-Site`), and asks for
    permission before it sends JSON to another host. This server never grants it. A page of
    another host therefore cannot change anything through a browser that can reach this server."""
    headers = request.headers
    origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
    if origin is not None and origin.partition("://")[2] != headers.get("host"):
        return (
            f"origin {origin[:200]!r}: expected this server's own address; pages of other "
            "origins may not change anything"
        )
    if site not in ("none", "same-origin"):
        return (
            f"sec-fetch-site {site[:50]!r}: expected 'same-origin' or 'none'; pages of other "
            "sites may not change anything"
        )
    return ""


def _media_type_fault(request: Request) -> str:
    """Return why the type of a body is refused; empty if it is JSON.

    A browser sends other types to any host without permission, so this protects as well as
    `_cross_origin_fault` against pages of other hosts."""
    content_type = request.headers.get("content-type", "")
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type == "application/json":
        return ""
    return (
        f"content-type={content_type[:100]!r}: expected 'application/json'; with curl, "
        "-H 'content-type: application/json'"
    )


async def _caller(
    request: Request, authenticate: Authenticate | None, sign_in: SignIn | None
) -> tuple[Principal, ActiveSession | None]:
    """Return the caller of a request, and its session if it has no other credentials.

    Raises
    ------
    Unauthenticated
        If the credentials or the session are missing or not accepted.
    """
    path = _path(request)
    if authenticate is None or path in _PROBE_PATHS:
        return LOCAL, None
    authorization = request.headers.get("authorization", "")
    if sign_in is not None:
        if path in sign_in.open_paths:
            return ANONYMOUS, None
        if not authorization and (session := sign_in.session_of(request)) is not None:
            return session.principal, session
    # In a thread, because it may fetch an issuer's keys.
    return await run_in_threadpool(authenticate, authorization), None


def _unauthenticated(request: Request, error: AsterismError, sign_in: SignIn | None) -> Response:
    if sign_in is not None and isinstance(error, Unauthenticated):
        redirect = sign_in_redirect(request, sign_in.page)
        if redirect is not None:
            return redirect
    response = handle_error(request, error)
    response.headers["www-authenticate"] = "Bearer"
    return response


def _path(request: Request) -> str:
    """Return the path that routes are found by; that of `Request.url` depends on ``Host`` too."""
    path: str = request.scope["path"]
    return path


def _peer(request: Request) -> str:
    """Return the address of a caller in the form of gRPC, such as ``ipv4:10.0.0.7:51234``."""
    if request.client is None:
        return ""
    host, port = request.client
    return f"ipv6:[{host}]:{port}" if ":" in host else f"ipv4:{host}:{port}"


def _takes_turn(request: Request) -> bool:
    """Return whether a request makes calls.

    Probes, the daemon's own state, pages and their files are read from memory, without a turn."""
    return request.method not in _SAFE_METHODS or _path(request).startswith(_CALL_PREFIXES)


def _no_turn(error: AsterismError, metrics: Metrics) -> Response:
    """Return the reply to a request that gets no turn."""
    metrics.count_call("refused", error.code, 0.0)
    status = 503 if isinstance(error, Busy) else error.http
    headers = retry_after_headers(error)
    return error_response(type(error).__name__, error.message, status, headers=headers)


def _surrogate_fault(body: bytes) -> str:
    """Return why a text in a JSON body has no UTF-8 encoding; empty if all texts have one."""
    if b"\\ud" not in body.lower():
        return ""
    try:
        unicode_text.check("body", json.loads(body))
    except InvalidRequest as error:
        return error.message
    except (ValueError, RecursionError):  # not JSON: the route refuses it
        return ""
    return ""


def create_app(
    *,
    daemon: str,
    status: Callable[[], Mapping[str, Any]],
    ready: Callable[[], list[str]],
    flags: Mapping[str, Any],
    metrics: Metrics,
    allowed_hosts: AllowedHosts,
    routers: Sequence[APIRouter] = (),
    authenticate: Authenticate | None = None,
    sign_in: SignIn | None = None,
    turns: HttpTurns | None = None,
    refused_credentials: RefusedCredentials | None = None,
) -> FastAPI:
    """Return the HTTP application of a daemon.

    It serves ``/status /healthz /readyz /metrics /flags`` and the daemon's own routers."""
    app = _Application(
        title=f"Asterism {daemon}",
        description=f"HTTP API of {daemon}.",
        docs_url=None,
        redoc_url=None,
    )
    add_error_handlers(app)
    turns = turns or HttpTurns()

    @app.middleware("http")
    async def check_request(
        request: Request, proceed: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        length = request.headers.get("content-length", "0")
        if (
            "transfer-encoding" in request.headers
            or not (length.isascii() and length.isdigit() and len(length) <= _MAX_LENGTH_DIGITS)
            or int(length) > MAX_BODY_BYTES
        ):
            return error_response(
                "InvalidRequest",
                (
                    f"content-length={length[:100]!r}: expected a body of at most "
                    f"{MAX_BODY_BYTES:,} bytes"
                ),
                413,
            )
        host = request.headers.get("host", "")
        if _path(request) not in _PROBE_PATHS and not allowed_hosts.allows(host):
            return error_response(
                "InvalidRequest",
                (
                    f"host={host[:200]!r}: not a name of this server; add it to the setting "
                    "http_names"
                ),
                403,
            )
        try:
            principal, session = await _caller(request, authenticate, sign_in)
        except AsterismError as error:
            if isinstance(error, Unauthenticated) and refused_credentials is not None:
                method = f"{request.method} {_path(request)}"
                await run_in_threadpool(  # in a thread, because it may wait for the disk
                    refused_credentials.refuse_request, error, method, _peer(request)
                )
            return _unauthenticated(request, error, sign_in)
        if request.method not in _SAFE_METHODS:
            if fault := _cross_origin_fault(request):
                return error_response("InvalidRequest", fault, 403)
            if session is not None and (fault := csrf_fault(request, session)):
                return error_response("Forbidden", fault, 403)
            if int(length) and (fault := _media_type_fault(request)):
                return error_response("InvalidRequest", fault, 415)
        if int(length):
            try:
                body = await request.body()
            except ClientDisconnect:
                return Response(status_code=400)  # the caller does not see it
            if fault := _surrogate_fault(body):
                return error_response("InvalidRequest", fault, 422)
        started_at = time.monotonic()
        held: AbstractContextManager[None] = contextlib.nullcontext()
        if _takes_turn(request):
            try:
                held = await turns.take(principal, request)
            except AsterismError as error:
                return _no_turn(error, metrics)
        try:
            with held, serving(principal, lambda: _peer(request)):
                response = await proceed(request)
        except Exception as error:  # logged once, here: uvicorn would log the error again
            response = handle_error(request, error)
        if _path(request).startswith(API_PREFIX) and (route := request.scope.get("route")):
            code = "OK" if response.status_code < 400 else str(response.status_code)
            path = API_PREFIX + route.path.removeprefix(API_PREFIX)
            metrics.count_call(f"{request.method} {path}", code, time.monotonic() - started_at)
        return response

    @app.get("/status", tags=["daemon"])
    def get_status() -> dict[str, Any]:
        """Return identity and state of the daemon."""
        missing = ready()
        may_read = current_principal().is_cluster_admin
        return {
            "daemon": daemon,
            "ready": not missing,
            "missing": missing if may_read else [WITHHELD_REASONS] * bool(missing),
            **status(),
        }

    @app.get("/healthz", tags=["daemon"], response_class=PlainTextResponse)
    def healthz() -> str:
        """Return "ok" if the process responds."""
        return "ok"

    @app.get("/readyz", tags=["daemon"])
    def readyz() -> JSONResponse:
        """Return 200 if the daemon is ready, else 503 with the reasons.

        With access control, ``/status`` has the reasons, for administrators of the cluster."""
        missing = ready()
        if missing and authenticate is not None:
            missing = [WITHHELD_REASONS]
        return JSONResponse(
            {"ready": not missing, "missing": missing}, status_code=503 if missing else 200
        )

    @app.get("/metrics", tags=["daemon"], response_class=PlainTextResponse)
    def get_metrics() -> Response:
        """Return Prometheus metrics."""
        return Response(metrics.render(), media_type="text/plain; version=0.0.4; charset=utf-8")

    @app.get("/flags", tags=["daemon"])
    def get_flags() -> dict[str, Any]:
        """Return the settings that the daemon runs with."""
        return dict(flags)

    session_path = "" if sign_in is None else sign_in.session_path
    docs = api_docs.router(app.title, session_path=session_path)
    for router in [*routers, _index_router(daemon), docs]:
        app.include_router(router)
    return app


class _Application(FastAPI):
    """FastAPI application that summarizes each route by the first sentence of its description."""

    def openapi(self) -> dict[str, Any]:
        document = super().openapi()
        for operations in document["paths"].values():
            for operation in operations.values():
                if text := operation.get("description"):
                    operation["summary"] = text.partition("\n")[0]
        return document


def _index_router(daemon: str) -> APIRouter:
    """Return the router of ``/`` for daemons without web pages."""
    api = APIRouter(include_in_schema=False)

    @api.get("/")
    def get_index(request: Request) -> Response:
        if "text/html" in request.headers.get("accept", ""):
            return RedirectResponse("/docs", status_code=307)
        return JSONResponse(
            {
                "daemon": daemon,
                "routes": {
                    "/docs": "description of every route, for browsers",
                    "/openapi.json": "description of every route, as OpenAPI",
                    "/status": "identity and state of the daemon",
                    "/healthz": "whether the process responds",
                    "/readyz": "whether the daemon is ready",
                    "/metrics": "Prometheus metrics",
                    "/flags": "settings",
                },
            }
        )

    return api


class _DateHeader:
    """ASGI wrapper that adds a Date header to each response.

    uvicorn's own header is refreshed by a timer that wakes the process continually.

    Parameters
    ----------
    app : ASGI application
        Application to wrap.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_dated(message: Message) -> None:
            if message["type"] == "http.response.start":
                date = (b"date", formatdate(usegmt=True).encode())
                message["headers"] = [date, *message.get("headers", ())]
            await send(message)

        await self._app(scope, receive, send_dated)


class _UvicornServer(uvicorn.Server):
    """uvicorn server with a main loop that sleeps until it is stopped.

    uvicorn's own loop wakes ten times a second."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = asyncio.Event()

    async def main_loop(self) -> None:
        self._loop = asyncio.get_running_loop()
        if not await self.on_tick(0):  # sets the default headers of all responses
            await self._stopping.wait()

    def stop(self) -> None:
        """Stop the main loop. Thread-safe."""
        self.should_exit = True
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed already
                self._loop.call_soon_threadsafe(self._stopping.set)


class _InvalidRequestFilter(logging.Filter):
    """Turns uvicorn's message about bytes that are not HTTP into an event with the usual cause.

    There is one event per second at most, so that such bytes do not fill the log."""

    def __init__(self) -> None:
        super().__init__()
        self._next_s = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is logged."""
        if record.msg == "Invalid HTTP request received.":
            now = time.monotonic()
            if now < self._next_s:
                return False
            self._next_s = now + _INVALID_EVENT_INTERVAL_S
            record.msg = "http_request_invalid"
            vars(record)["cause"] = "not HTTP/1.1; a gRPC client needs the daemon's gRPC port"
        return True


class HttpServer:
    """HTTP server of a daemon's application (`create_app`) on a port, in a thread of its own.

    Parameters
    ----------
    address : str
        host:port; port 0 picks a free one.
    daemon : str
        Name of the daemon.
    status : callable
        Returns the fields of ``/status``.
    ready : callable
        Returns the reasons why the daemon is not ready; empty if it is.
    flags : mapping
        Settings for ``/flags``.
    metrics : Metrics
    allowed_hosts : AllowedHosts
        Host names under which the server may be called.
    routers : sequence of APIRouter
        Further routes.
    tls : DaemonTls, optional
        Certificates of the port. Default: the port is not encrypted.
    authenticate : callable, optional
        Returns the principal of an authorization text, or raises Unauthenticated. Only the probes
        ``/healthz /readyz /metrics`` need no principal. Default: every caller is `LOCAL`.
    sign_in : SignIn, optional
        Sessions of browsers, for requests without the header ``Authorization``. Default: there are
        none.
    limits : ConnectionLimits
        Limits of the port's connections.
    turns : HttpTurns, optional
        Turns of requests. Default: principals have equal shares.
    refused_credentials : RefusedCredentials, optional
        Counts and records requests without accepted credentials. Default: they are not.
    """

    def __init__(
        self,
        *,
        address: str,
        daemon: str,
        status: Callable[[], Mapping[str, Any]],
        ready: Callable[[], list[str]],
        flags: Mapping[str, Any],
        metrics: Metrics,
        allowed_hosts: AllowedHosts,
        routers: Sequence[APIRouter] = (),
        tls: DaemonTls | None = None,
        authenticate: Authenticate | None = None,
        sign_in: SignIn | None = None,
        limits: ConnectionLimits = DEFAULT_LIMITS,
        turns: HttpTurns | None = None,
        refused_credentials: RefusedCredentials | None = None,
    ) -> None:
        self._address = address
        self.app = create_app(
            daemon=daemon,
            status=status,
            ready=ready,
            flags=flags,
            metrics=metrics,
            allowed_hosts=allowed_hosts,
            routers=routers,
            authenticate=authenticate,
            sign_in=sign_in,
            turns=turns,
            refused_credentials=refused_credentials,
        )
        self._log_filter = _InvalidRequestFilter()
        self._connections = HttpConnections(limits)
        config = uvicorn.Config(
            _DateHeader(self.app),
            http=self._connections.protocol,  # type: ignore[arg-type]  # any factory
            ws="none",
            h11_max_incomplete_event_size=MAX_HEADER_BYTES,
            log_config=None,
            access_log=False,
            date_header=False,
            proxy_headers=False,  # callers could state any address
            lifespan="off",
            timeout_graceful_shutdown=2,
        )
        if tls is not None:
            config.load()
            config.ssl = tls.http_context()
        self._server = _UvicornServer(config)
        self._thread: threading.Thread | None = None
        self._socket: socket.socket | None = None

    def start(self) -> int:
        """Open the port and return its number; Unavailable if it is taken."""
        self._socket = listen(self._address)
        logging.getLogger("uvicorn.error").addFilter(self._log_filter)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, name="http", daemon=True
        )
        self._thread.start()
        while not self._server.started and self._thread.is_alive():
            time.sleep(0.005)
        bound_port: int = self._socket.getsockname()[1]
        return bound_port

    def stop(self) -> None:
        """Close the port; running requests get two seconds."""
        self._server.stop()
        if self._thread is not None:
            self._thread.join(5)
        logging.getLogger("uvicorn.error").removeFilter(self._log_filter)
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.close()

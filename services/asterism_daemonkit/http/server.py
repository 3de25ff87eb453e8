"""HTTP server of every daemon: its port, and the application that it serves.

The application (`asterism_daemonkit.http.application.create_app`) is created at the first request
that is not a probe. FastAPI and the routes take as long as the rest of a daemon's start, and most
daemons are only probed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from email.utils import formatdate
from typing import TYPE_CHECKING, Any

import uvicorn

from asterism_access.refused_credential_audit import RefusedCredentials
from asterism_daemonkit.http.allowed_hosts import AllowedHosts
from asterism_daemonkit.http.connections import MAX_HEADER_BYTES, HttpConnections
from asterism_daemonkit.http.probes import Probes
from asterism_daemonkit.http.turns import HttpTurns
from asterism_daemonkit.listening import listen
from asterism_daemonkit.metrics import Metrics
from asterism_daemonkit.rpc.connection_limits import DEFAULT_LIMITS, ConnectionLimits
from asterism_daemonkit.rpc.grpc_server import Authenticate
from asterism_daemonkit.tls import DaemonTls

if TYPE_CHECKING:  # imported with the application
    from fastapi import APIRouter, FastAPI

    from asterism_daemonkit.http.browser_requests import SignIn

_INVALID_EVENT_INTERVAL_S = 1.0
"""Least seconds between two events about bytes that are not HTTP."""

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[Message, Receive, Send], Awaitable[None]]


class _LateApplication:
    """ASGI application that replies to probes, and creates another one for all other requests.

    Parameters
    ----------
    probes : Probes
    create : callable
        Returns the other application. Called once, in a thread, at the first request for it.
    """

    def __init__(self, probes: Probes, create: Callable[[], FastAPI]) -> None:
        self._probes, self._create = probes, create
        self._lock = threading.Lock()
        self._app: FastAPI | None = None

    def app(self) -> FastAPI:
        """Return the other application. Thread-safe."""
        with self._lock:
            if self._app is None:
                self._app = self._create()
            return self._app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if self._probes.answers(scope):
            try:
                messages = await self._probes.reply(scope["path"])
            except Exception:  # the other application logs errors and replies with them
                pass
            else:
                for message in messages:
                    await send(message)
                return
        app = self._app
        if app is None:
            app = await asyncio.to_thread(self.app)
        await app(scope, receive, send)


class _DateHeader:
    """ASGI wrapper that adds a Date header to each response.

    uvicorn's own header is refreshed by a timer that wakes the process continually.

    Parameters
    ----------
    app : ASGI application
        Application to wrap.
    """

    def __init__(self, app: AsgiApp) -> None:
        self._app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
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
    """HTTP server of a daemon's application on a port, in a thread of its own.

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
    routers : callable
        Returns further routes; called when the application is created.
    tls : DaemonTls, optional
        Certificates of the port. Default: the port is not encrypted.
    authenticate : callable, optional
        Returns the principal of an authorization text, or raises Unauthenticated. Only the probes
        ``/healthz /readyz /metrics`` need no principal. Default: every caller is `LOCAL`.
    sign_in : callable
        Returns the sessions of browsers, for requests without the header ``Authorization``, or
        None; called when the application is created.
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
        routers: Callable[[], Sequence[APIRouter]] = tuple,
        tls: DaemonTls | None = None,
        authenticate: Authenticate | None = None,
        sign_in: Callable[[], SignIn | None] = lambda: None,
        limits: ConnectionLimits = DEFAULT_LIMITS,
        turns: HttpTurns | None = None,
        refused_credentials: RefusedCredentials | None = None,
    ) -> None:
        self._address = address

        def create() -> FastAPI:
            from asterism_daemonkit.http.application import create_app

            return create_app(
                daemon=daemon,
                status=status,
                ready=ready,
                flags=flags,
                metrics=metrics,
                allowed_hosts=allowed_hosts,
                routers=routers(),
                authenticate=authenticate,
                sign_in=sign_in(),
                turns=turns,
                refused_credentials=refused_credentials,
            )

        probes = Probes(ready, metrics, withheld=authenticate is not None)
        self._application = _LateApplication(probes, create)
        self._log_filter = _InvalidRequestFilter()
        self._connections = HttpConnections(limits)
        config = uvicorn.Config(
            _DateHeader(self._application),
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

    @property
    def app(self) -> FastAPI:
        """The application."""
        return self._application.app()

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

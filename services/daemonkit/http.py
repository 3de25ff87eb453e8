"""FastAPI's one door: what every daemon answers over HTTP, and the routes that metad adds."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import uvicorn
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from starlette.exceptions import HTTPException

from asterism_proto import texts
from asterism_proto.errors import AsterismError, InvalidRequest, Place, Unavailable
from daemonkit.hostnames import Hostnames
from daemonkit.metrics import Metrics
from daemonkit.server import refused
from daemonkit.settings import split_address

MAX_BODY = 1 << 20
"""Bytes of a request's body."""
_DATE_S = 1.0
"""Resolution of the Date header."""
_READING = ("GET", "HEAD", "OPTIONS")
_PROBES = ("/healthz", "/readyz", "/metrics")
"""What monitors ask by whatever name; it holds nothing of a graph."""


def _problem(error: str, message: str, status: int, place: Place | None = None) -> JSONResponse:
    return JSONResponse({"error": error, "message": message, **({} if place is None else asdict(place))}, status_code=status)


def _ours(_: Request, error: Exception) -> JSONResponse:
    known = refused(error)
    return _problem(type(known).__name__, known.message, known.http, known.place)


def _invalid(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return _problem("InvalidRequest", f"{where} = {first.get('input')!r}: {first['msg']}"[:1000], 422)


def _http(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return _problem("NotFound" if error.status_code == 404 else "InvalidRequest", str(error.detail), error.status_code)


def _foreign(request: Request, length: int) -> str:
    """Why a request that may change something is not taken from where it comes; "" where it is.

    A browser says by itself from which page a request is (`Origin`, `Sec-Fetch-Site`), and asks before it sends JSON to another
    host; nobody answers that question here. So a page of another host can not have a browser within reach change anything.
    """
    headers = request.headers
    origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
    if origin is not None and origin.partition("://")[2] != headers.get("host"):
        return f"origin {origin[:200]!r}: only this host's own pages may change something from a browser"
    if site not in ("none", "same-origin"):
        return f"sec-fetch-site {site[:50]!r}: only this host's own pages may change something from a browser"
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if length and kind != "application/json":
        return f"content-type {kind[:100]!r}: expected 'application/json'"
    return ""


def _unencodable(body: bytes) -> str:
    """Return why a text in a JSON body has no UTF-8 encoding; empty where all have one."""
    if b"\\ud" not in body.lower():
        return ""
    try:
        texts.check("body", json.loads(body))
    except InvalidRequest as error:
        return error.message
    except (ValueError, RecursionError):  # no JSON: for the route to refuse
        return ""
    return ""


def application(
    *,
    daemon: str,
    status: Callable[[], Mapping[str, Any]],
    ready: Callable[[], list[str]],
    flags: Mapping[str, Any],
    metrics: Metrics,
    hostnames: Hostnames,
    routers: Sequence[APIRouter] = (),
) -> FastAPI:
    """The HTTP application of a daemon: ``/status /healthz /readyz /metrics /flags`` and its own routers."""
    app = FastAPI(title=f"Asterism {daemon}", description=f"HTTP door of {daemon}.", docs_url="/docs", redoc_url=None)
    for kind, handler in ((AsterismError, _ours), (RequestValidationError, _invalid), (HTTPException, _http)):
        app.add_exception_handler(kind, handler)

    @app.middleware("http")
    async def bounded(request: Request, proceed: Callable[[Request], Awaitable[Response]]) -> Response:
        length = request.headers.get("content-length", "0")
        if "transfer-encoding" in request.headers or not length.isdigit() or int(length) > MAX_BODY:
            return _problem("InvalidRequest", f"content-length {length!r}: a body has a length of at most {MAX_BODY} bytes", 413)
        host = request.headers.get("host", "")
        if request.url.path not in _PROBES and not hostnames.has(host):
            return _problem("InvalidRequest", f"host {host[:200]!r} is no name of this door; the setting http_names takes further ones", 403)
        if request.method not in _READING and (why := _foreign(request, int(length))):
            return _problem("InvalidRequest", why, 403)
        if int(length) and (why := _unencodable(await request.body())):
            return _problem("InvalidRequest", why, 422)
        try:
            return await proceed(request)
        except Exception as error:  # logged once, here: past this point uvicorn would tell the story again
            return _ours(request, error)

    @app.get("/status", tags=["daemon"])
    def get_status() -> dict[str, Any]:
        """What the daemon is and holds."""
        return {"daemon": daemon, "ready": not ready(), **status()}

    @app.get("/healthz", tags=["daemon"], response_class=PlainTextResponse)
    def healthz() -> str:
        """Whether the process answers."""
        return "ok"

    @app.get("/readyz", tags=["daemon"])
    def readyz() -> JSONResponse:
        """Whether it can do its work: 200, or 503 with what is missing."""
        missing = ready()
        return JSONResponse({"ready": not missing, "missing": missing}, status_code=503 if missing else 200)

    @app.get("/metrics", tags=["daemon"], response_class=PlainTextResponse)
    def get_metrics() -> Response:
        """Prometheus metrics."""
        return Response(metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    @app.get("/flags", tags=["daemon"])
    def get_flags() -> dict[str, Any]:
        """The settings that it runs with."""
        return dict(flags)

    for router in routers:
        app.include_router(router)
    return app


class _Server(uvicorn.Server):
    """uvicorn's server, whose main loop sleeps until it is stopped instead of looking ten times a second."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over = asyncio.Event()

    async def main_loop(self) -> None:
        self._loop = asyncio.get_running_loop()
        while not await self.on_tick(0):  # which renews the Date header
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), _DATE_S)

    def stop(self) -> None:
        """End the main loop; called from any thread."""
        self.should_exit = True
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed already
                self._loop.call_soon_threadsafe(self._over.set)


class HttpDoor:
    """An `application` on a port, in a thread of its own.

    Parameters
    ----------
    address : str
        host:port; port 0 takes a free one.
    hostnames : Hostnames
        By which it may be called.
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
        hostnames: Hostnames,
        routers: Sequence[APIRouter] = (),
    ) -> None:
        self._address = address
        self.app = application(daemon=daemon, status=status, ready=ready, flags=flags, metrics=metrics, hostnames=hostnames, routers=routers)
        self._server = _Server(uvicorn.Config(self.app, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=2))
        self._thread: threading.Thread | None = None
        self._socket: socket.socket | None = None

    def start(self) -> int:
        """Open the port and give its number; Unavailable when it is taken."""
        host, port = split_address(self._address)
        try:
            self._socket = socket.create_server((host, port), backlog=128)
        except OSError as error:
            raise Unavailable(f"can not listen on {self._address}: {error}; is the port taken?") from error
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]}, name="http", daemon=True)
        self._thread.start()
        while not self._server.started and self._thread.is_alive():
            time.sleep(0.005)
        chosen: int = self._socket.getsockname()[1]
        return chosen

    def stop(self) -> None:
        """Close the port; requests under way get two seconds."""
        self._server.stop()
        if self._thread is not None:
            self._thread.join(5)
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.close()

"""HTTP application of every daemon on FastAPI: its checks of requests, and its own routes.

`asterism_daemonkit.http.server` serves it, and imports this module at the first request that
needs it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse, RedirectResponse
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from asterism_access.browser_sessions import ActiveSession
from asterism_access.principals import ANONYMOUS, LOCAL, Principal
from asterism_access.refused_credential_audit import RefusedCredentials
from asterism_daemonkit.http import api_docs
from asterism_daemonkit.http.allowed_hosts import AllowedHosts
from asterism_daemonkit.http.browser_requests import SignIn, csrf_fault, sign_in_redirect
from asterism_daemonkit.http.errors import (
    add_error_handlers,
    error_response,
    handle_error,
    retry_after_headers,
)
from asterism_daemonkit.http.probes import METRICS_MEDIA_TYPE, WITHHELD_REASONS, readiness
from asterism_daemonkit.http.turns import HttpTurns
from asterism_daemonkit.metrics import Metrics
from asterism_daemonkit.rpc.call_context import current_principal, serving
from asterism_daemonkit.rpc.grpc_server import Authenticate
from asterism_model import unicode_text
from asterism_proto.errors import AsterismError, Busy, InvalidRequest, Unauthenticated

MAX_BODY_BYTES = 1 << 20
"""Maximum size of a request body, in bytes."""
_MAX_LENGTH_DIGITS = 19
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_PROBE_PATHS = ("/healthz", "/readyz", "/metrics")
"""Paths that monitors may request under any host name, without credentials.

They reveal nothing of a graph."""
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
        held: AbstractContextManager[None] = nullcontext()
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
        status_code, content = readiness(ready(), withheld=authenticate is not None)
        return JSONResponse(content, status_code=status_code)

    @app.get("/metrics", tags=["daemon"], response_class=PlainTextResponse)
    def get_metrics() -> Response:
        """Return Prometheus metrics."""
        return Response(metrics.render(), media_type=METRICS_MEDIA_TYPE)

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

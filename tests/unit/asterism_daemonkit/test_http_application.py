"""Tests of the HTTP application of every daemon: refusals, its index, its description."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
from collections import Counter
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import httpx
import pytest
from fastapi import APIRouter, Body, FastAPI, Query, Request
from tests.kit.waiting import HANG_S

from asterism_access.audit_log import AuditLog, AuditRecord, read_audit_log
from asterism_access.browser_sessions import ActiveSession
from asterism_access.principals import LOCAL, Principal, PrincipalKind
from asterism_access.refused_credential_audit import RefusedCredentials
from asterism_access.roles import EVERY_SPACE, Role
from asterism_daemonkit.http.allowed_hosts import AllowedHosts
from asterism_daemonkit.http.api_docs import CONTENT_SECURITY_POLICY
from asterism_daemonkit.http.application import create_app
from asterism_daemonkit.http.browser_requests import SignIn
from asterism_daemonkit.http.models import HttpModel
from asterism_daemonkit.http.probes import WITHHELD_REASONS
from asterism_daemonkit.http.server import HttpServer
from asterism_daemonkit.metrics import Metrics
from asterism_daemonkit.rpc.call_context import CallContext, current_peer, current_principal
from asterism_proto.errors import QuotaExceeded, Unauthenticated

HTTP2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
JSON = {"content-type": "application/json"}


class Letter(HttpModel):
    """Body of the route."""

    text: str
    copies: int = 1
    stamps: tuple[int | str, ...] = ()
    prices: list[int] | list[list[int]] | None = None


def letter_router() -> APIRouter:
    api = APIRouter(tags=["letters"])

    @api.post("/letters")
    def send_letter(letter: Annotated[Letter, Body()]) -> Letter:
        """Send a letter.

        Nothing is sent."""
        return letter

    @api.get("/letters/{name}")
    def get_letter(name: str, page: Annotated[int, Query(ge=1)] = 1) -> str:
        """Return a letter."""
        if name == "one-too-many":
            raise QuotaExceeded("calls_per_s=100: used up by 'alice'", retry_after_s=1.2)
        return f"{name} {page}"

    return api


@pytest.fixture(scope="module")
def app() -> FastAPI:
    return create_app(
        daemon="metad",
        status=dict,
        ready=list,
        flags={},
        metrics=Metrics("metad"),
        allowed_hosts=AllowedHosts(),
        routers=[letter_router()],
    )


def send(
    app: FastAPI,
    method: str,
    path: str,
    content: bytes | None = None,
    headers: Mapping[str, str] = JSON,
) -> httpx.Response:
    """Return the reply of the application to one request, without a socket."""

    async def request() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://metad:1") as client:
            return await client.request(method, path, content=content, headers=headers)

    return asyncio.run(request())


def message(reply: httpx.Response) -> str:
    assert set(reply.json()) == {"error", "message"}
    return str(reply.json()["message"])


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_another_content_type_is_refused_with_415(app: FastAPI, kind: str) -> None:
    reply = send(app, "POST", "/letters", b'{"text": "x"}', {"content-type": kind})
    assert reply.status_code == 415
    assert f"content-type={kind!r}: expected 'application/json'" in message(reply)


def test_a_content_type_may_have_parameters(app: FastAPI) -> None:
    headers = {"content-type": "Application/JSON; charset=utf-8"}
    assert send(app, "POST", "/letters", b'{"text": "x"}', headers).status_code == 200


def test_a_page_of_another_host_is_refused_with_403(app: FastAPI) -> None:
    for kind in ("text/plain", "application/json"):
        headers = {"content-type": kind, "origin": "http://evil.example"}
        reply = send(app, "POST", "/letters", b'{"text": "x"}', headers)
        assert reply.status_code == 403
        assert "evil.example" in message(reply)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b'{"text": "x",}', r"body: expected JSON; .*property name.* at character 1[34]"),
        (b"{", r"body: expected JSON; expecting property name .* at character 2"),
        (b"\xff{", r"body: expected JSON in UTF-8"),
        (b"[" * 100_000, r"body: expected JSON"),
        (b"", r"body: expected a JSON object, but the request has no body"),
        (b"{}", r"text: expected a value, but the field is missing"),
        (b"[]", r"body=\[\]: expected a valid dictionary"),
        (b'{"text": 3}', r"text=3: expected a valid string"),
        (b'{"text": "x", "copies": "many"}', r"copies='many': expected a valid integer"),
        (b'{"text": "x", "copy": 2}', r"copy=2: no such field; GET /docs"),
        (b'{"txt": "x"}', r"txt='x': no such field; did you mean text\?"),
        (
            b'{"text": "x", "stamps": [1, "a", {}]}',
            r"stamps\[2\]={}: expected a valid integer or a valid string",
        ),
        (b'{"text": "x", "prices": [[1], ["a"]]}', r"prices\[0\]=\[1\]: expected a valid integer"),
        (b'{"text": "' + b"x" * 5000 + b'", "copies": []}', r"copies=\[\]: expected"),
    ],
)
def test_an_invalid_body_is_refused_with_field_and_value(
    app: FastAPI, content: bytes, expected: str
) -> None:
    reply = send(app, "POST", "/letters", content)
    assert reply.status_code in (400, 422)
    assert reply.json()["error"] == "InvalidRequest"
    assert re.match(expected, message(reply)), message(reply)


def test_requests_to_the_api_count_as_calls_by_route() -> None:
    metrics, api = Metrics("metad"), APIRouter(prefix="/api/v1")
    api.include_router(letter_router())
    app = create_app(
        daemon="metad",
        status=dict,
        ready=list,
        flags={},
        metrics=metrics,
        allowed_hosts=AllowedHosts(),
        routers=[api, letter_router()],
    )
    for path, content in (("/api/v1", b'{"text": "x"}'), ("/api/v1", b"{}"), ("", b"{}")):
        send(app, "POST", f"{path}/letters", content)
    for name in "ab":
        send(app, "GET", f"/api/v1/letters/{name}")
    stats = metrics.method_stats()
    assert {name: (method.calls, method.errors) for name, method in stats.items()} == {
        "POST /api/v1/letters": (2, 1),
        "GET /api/v1/letters/{name}": (2, 0),
    }


def test_an_invalid_parameter_is_refused_by_its_name(app: FastAPI) -> None:
    reply = send(app, "GET", "/letters/x?page=0", headers={})
    assert reply.status_code == 422
    assert message(reply) == "page='0': expected greater than or equal to 1"


def test_a_reached_limit_names_the_seconds_to_wait(app: FastAPI) -> None:
    reply = send(app, "GET", "/letters/one-too-many")
    assert (reply.status_code, reply.json()["error"]) == (429, "QuotaExceeded")
    assert reply.headers["Retry-After"] == "2"
    assert "Retry-After" not in send(app, "GET", "/letters/a", headers={}).headers


def test_an_unknown_route_is_answered_with_similar_ones(app: FastAPI) -> None:
    reply = send(app, "GET", "/leters", headers={})
    assert (reply.status_code, reply.json()["error"]) == (404, "NotFound")
    assert message(reply).startswith("GET /leters: no such route; did you mean /letters")
    assert message(send(app, "GET", "/zzzzzzzz", headers={})) == (
        "GET /zzzzzzzz: no such route; GET /docs describes every route"
    )


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [("GET", "/letters", "POST"), ("DELETE", "/letters/x", "GET"), ("PUT", "/status", "GET")],
)
def test_another_method_is_refused_with_those_allowed(
    app: FastAPI, method: str, path: str, allowed: str
) -> None:
    reply = send(app, method, path, headers={})
    assert (reply.status_code, reply.headers["allow"]) == (405, allowed)
    assert message(reply) == f"{method} {path}: expected {allowed}"


def test_the_index_names_the_routes_of_every_daemon(app: FastAPI) -> None:
    index = send(app, "GET", "/", headers={}).json()
    assert index["daemon"] == "metad"
    for path in index["routes"]:
        assert send(app, "GET", path, headers={}).status_code == 200, path
    reply = send(app, "GET", "/", headers={"accept": "text/html,*/*"})
    assert (reply.status_code, reply.headers["location"]) == (307, "/docs")


def test_summaries_of_routes_are_their_first_sentences(app: FastAPI) -> None:
    paths = send(app, "GET", "/openapi.json", headers={}).json()["paths"]
    assert paths["/letters"]["post"]["summary"] == "Send a letter."
    for operations in paths.values():
        for operation in operations.values():
            assert operation["summary"].endswith("."), operation["summary"]
            assert operation["description"].startswith(operation["summary"])


def test_the_page_of_routes_has_files_of_this_host_only(app: FastAPI) -> None:
    page = send(app, "GET", "/docs", headers={})
    assert 'data-session=""' in page.text, "without sessions there is no token to ask for"
    assert page.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    assert "http" not in page.text
    assert "http" not in CONTENT_SECURITY_POLICY
    references: list[Any] = re.findall(r'(?:src|href)="(/[^"]*)"', page.text)
    assert len(references) == 3
    for reference in references:
        file = send(app, "GET", reference, headers={})
        assert file.status_code == 200, reference
        again = send(app, "GET", reference, headers={"if-none-match": file.headers["etag"]})
        assert again.status_code == 304
    assert send(app, "GET", "/docs/nothing.js", headers={}).status_code == 404


def test_swagger_ui_has_its_license() -> None:
    folder = resources.files("asterism_daemonkit.http") / "swagger_ui"
    assert "Apache License" in (folder / "LICENSE").read_text()
    assert "SmartBear" in (folder / "NOTICE").read_text()
    assert (folder / "swagger-ui-bundle.js.LICENSE.txt").is_file()
    assert "validatorUrl: null" in (folder / "start.js").read_text()


def test_grpc_call_to_the_http_port_is_logged_as_such(caplog: pytest.LogCaptureFixture) -> None:
    server = HttpServer(
        address="127.0.0.1:0",
        daemon="toy",
        status=dict,
        ready=list,
        flags={},
        metrics=Metrics("toy"),
        allowed_hosts=AllowedHosts(),
    )
    port = server.start()
    try:
        with (
            caplog.at_level(logging.WARNING, "uvicorn.error"),
            socket.create_connection(("127.0.0.1", port), HANG_S) as connection,
        ):
            connection.sendall(HTTP2_PREFACE)
            while connection.recv(4096):  # until the server has logged, replied and closed
                pass
    finally:
        server.stop()
    (record,) = caplog.records
    assert record.getMessage() == "http_request_invalid"
    assert "gRPC port" in vars(record)["cause"]


def _caller_router() -> APIRouter:
    api = APIRouter()

    @api.get("/caller")
    def get_caller() -> str:
        """Return the name of the caller."""
        return current_principal().name

    @api.get("/peer")
    def get_peer() -> list[str]:
        """Return the address of the caller, and as a call has it."""
        return [current_peer(), CallContext.with_timeout(1).peer()]

    return api


def _authenticate(authorization: str) -> Principal:
    if not authorization.startswith("Bearer ak_"):
        raise Unauthenticated("authorization: expected 'Bearer' and a credential")
    name = authorization.removeprefix("Bearer ak_")
    roles = {EVERY_SPACE: Role.ADMIN} if name == "root" else {}
    return Principal(name=name, kind=PrincipalKind.API_KEY, roles=roles)


def _session_of(request: Request) -> ActiveSession | None:
    text = request.cookies.get("session")
    if text is None:
        return None
    principal = _authenticate(f"Bearer {text}")
    return ActiveSession(principal=principal, text=text, csrf_token="t", expires_s=0)


def _guarded_app(*missing: str) -> FastAPI:
    return create_app(
        daemon="graphd",
        status=dict,
        ready=lambda: list(missing),
        flags={},
        metrics=Metrics("graphd"),
        allowed_hosts=AllowedHosts(),
        routers=[_caller_router()],
        authenticate=_authenticate,
        sign_in=SignIn(page="/ui/sign-in", open_paths=frozenset(), session_of=_session_of),
    )


def test_routes_get_the_caller_of_the_header_or_the_session() -> None:
    app = _guarded_app()
    header = {"authorization": "Bearer ak_alice"}
    cookie = {"cookie": "session=ak_bob"}
    assert send(app, "GET", "/caller", headers=header).json() == "alice"
    assert send(app, "GET", "/caller", headers=cookie).json() == "bob"
    assert send(app, "GET", "/caller", headers=header | cookie).json() == "alice"
    assert current_principal() is LOCAL


def test_only_probes_are_open_without_credentials() -> None:
    app = _guarded_app()
    for path in ("/healthz", "/readyz", "/metrics"):
        assert send(app, "GET", path).status_code == 200
    closed = (
        "/caller",
        "/status",
        "/flags",
        "/",
        "/docs",
        "/openapi.json",
        "/nowhere",
        "/healthz/",
    )
    for path in closed:
        for headers in ({}, {"authorization": "Bearer x"}, {"cookie": "session=x"}):
            reply = send(app, "GET", path, headers=headers)
            assert (reply.status_code, reply.json()["error"]) == (401, "Unauthenticated"), path
            assert reply.headers["www-authenticate"] == "Bearer"


def test_refused_credentials_are_counted_and_recorded(tmp_path: Path) -> None:
    counts: Counter[tuple[str, str]] = Counter()
    log = AuditLog(tmp_path / "audit.jsonl", 1 << 20, 2)
    refused = RefusedCredentials(lambda *labels: counts.update([labels]), log)
    app = create_app(
        daemon="graphd",
        status=dict,
        ready=list,
        flags={},
        metrics=Metrics("graphd"),
        allowed_hosts=AllowedHosts(),
        routers=[_caller_router()],
        authenticate=_authenticate,
        sign_in=SignIn(page="/ui/sign-in", open_paths=frozenset(), session_of=_session_of),
        refused_credentials=refused,
    )
    secret = "x" * 43
    for headers in (
        {"authorization": f"Bearer {secret}"},
        {"cookie": f"session={secret}"},
        {"authorization": "Bearer ak_alice"},
    ):
        send(app, "GET", f"/caller?key={secret}", headers=headers)
    log.close()
    assert counts == {("http", "malformed"): 2}
    (record,) = read_audit_log(log.path)
    assert isinstance(record, AuditRecord)
    assert (record.method, record.outcome, record.kind) == (
        "GET /caller",
        "Unauthenticated",
        "anonymous",
    )
    assert record.peer.startswith("ipv4:")
    assert secret not in log.path.read_text()


def test_without_access_control_every_caller_is_the_process() -> None:
    open_app = create_app(
        daemon="graphd",
        status=dict,
        ready=list,
        flags={},
        metrics=Metrics("graphd"),
        allowed_hosts=AllowedHosts(),
        routers=[_caller_router()],
    )
    header = {"authorization": "Bearer ak_alice"}
    assert send(open_app, "GET", "/caller", headers=header).json() == LOCAL.name


def test_reasons_are_withheld_from_callers_without_rights() -> None:
    secret = "version 3 of space bank is not served"
    app = _guarded_app(secret)
    probe = send(app, "GET", "/readyz")
    assert (probe.status_code, probe.json()["ready"]) == (503, False)
    assert probe.json()["missing"] == [WITHHELD_REASONS]
    alice, root = ({"authorization": f"Bearer ak_{name}"} for name in ("alice", "root"))
    assert send(app, "GET", "/status", headers=alice).json()["missing"] == [WITHHELD_REASONS]
    assert send(app, "GET", "/status", headers=root).json()["missing"] == [secret]
    assert send(_guarded_app(), "GET", "/status", headers=alice).json()["missing"] == []


def test_calls_of_a_request_have_the_address_of_its_caller() -> None:
    server = HttpServer(
        address="127.0.0.1:0",
        daemon="toy",
        status=dict,
        ready=list,
        flags={},
        metrics=Metrics("toy"),
        allowed_hosts=AllowedHosts(),
        routers=lambda: [_caller_router()],
    )
    port = server.start()
    try:
        with httpx.Client(timeout=HANG_S) as client:
            stated = {"x-forwarded-for": "6.6.6.6", "forwarded": "for=6.6.6.6"}
            peers = client.get(f"http://127.0.0.1:{port}/peer", headers=stated).json()
    finally:
        server.stop()
    assert len(set(peers)) == 1
    assert re.fullmatch(r"ipv4:127\.0\.0\.1:\d+", peers[0])
    assert (current_peer(), CallContext.with_timeout(1).peer()) == ("", "")

"""Tests of requests of browsers: sessions, their token and origin, redirects, cookies."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from fastapi import APIRouter, FastAPI, Request, Response

from asterism_access.browser_sessions import ActiveSession
from asterism_access.principals import Principal, PrincipalKind
from asterism_daemonkit.http import browser_requests
from asterism_daemonkit.http.allowed_hosts import AllowedHosts
from asterism_daemonkit.http.application import create_app
from asterism_daemonkit.http.browser_requests import (
    SignIn,
    csrf_fault,
    remove_session,
    session_text,
    set_session,
    sign_in_redirect,
)
from asterism_daemonkit.metrics import Metrics
from asterism_daemonkit.rpc.call_context import current_principal
from asterism_proto.errors import NotReady, Unauthenticated

HOST = "graphd:1"
TOKEN = "token-of-bob"
SAME = {"origin": f"http://{HOST}"}
COOKIE = {"cookie": "asterism_session=bob"}
BEARER = {"authorization": "Bearer ak_alice"}


def _session(name: str) -> ActiveSession:
    principal = Principal(name=name, kind=PrincipalKind.API_KEY)
    return ActiveSession(principal=principal, text=name, csrf_token=f"token-of-{name}", expires_s=9)


def _session_of(request: Request) -> ActiveSession | None:
    name = session_text(request)
    if name == "expired":
        raise Unauthenticated("session: expired; sign in")
    if name == "early":
        raise NotReady("session: no API keys are known here yet; try again in a moment")
    return _session(name) if name else None


def _authenticate(authorization: str) -> Principal:
    if not authorization.startswith("Bearer ak_"):
        raise Unauthenticated("authorization: expected 'Bearer' and a credential")
    return Principal(name=authorization.removeprefix("Bearer ak_"), kind=PrincipalKind.API_KEY)


def _router() -> APIRouter:
    api = APIRouter()

    @api.get("/caller")
    @api.post("/caller")
    @api.put("/caller")
    @api.delete("/caller")
    @api.patch("/caller")
    @api.get("/open")
    @api.post("/open")
    def name_caller() -> str:
        """Return the name and kind of the caller."""
        principal = current_principal()
        return f"{principal.name} {principal.kind.value}"

    return api


@pytest.fixture(scope="module")
def app() -> FastAPI:
    return create_app(
        daemon="graphd",
        status=dict,
        ready=list,
        flags={},
        metrics=Metrics("graphd"),
        allowed_hosts=AllowedHosts(),
        routers=[_router()],
        authenticate=_authenticate,
        sign_in=SignIn(page="/ui/sign-in", open_paths=frozenset({"/open"}), session_of=_session_of),
    )


def send(
    app: FastAPI, method: str, path: str, headers: Mapping[str, str], host: str = HOST
) -> httpx.Response:
    """Return the reply of the application to one request, without a socket."""

    async def request() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url=f"http://{host}") as client:
            return await client.request(method, path, headers=headers)

    return asyncio.run(request())


def request_of(headers: Mapping[str, str], *, scheme: str = "http", path: str = "/") -> Request:
    path, _, query = path.partition("?")
    return Request(
        {
            "type": "http",
            "method": "GET",
            "scheme": scheme,
            "path": path,
            "query_string": query.encode(),
            "server": ("graphd", 1),
            "headers": [
                (name.encode(), value.encode("latin-1")) for name, value in headers.items()
            ],
        }
    )


def test_a_session_reads_without_a_token(app: FastAPI) -> None:
    assert send(app, "GET", "/caller", COOKIE).json() == "bob api_key"
    assert send(app, "GET", "/caller", COOKIE | BEARER).json() == "alice api_key"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_a_change_with_a_session_needs_its_token(app: FastAPI, method: str) -> None:
    right = {"x-csrf-token": TOKEN}
    assert send(app, method, "/caller", COOKIE | SAME | right).json() == "bob api_key"
    for wrong in (
        {},
        {"x-csrf-token": ""},
        {"x-csrf-token": "token-of-eve"},
        {"x-csrf-token": "é"},
    ):
        encoded = {name: value.encode("latin-1") for name, value in wrong.items()}
        reply = send(app, method, "/caller", COOKIE | SAME | encoded)  # type: ignore[operator]
        assert (reply.status_code, reply.json()["error"]) == (403, "Forbidden"), wrong
        assert reply.json()["message"].startswith("x-csrf-token: expected the token")
        assert TOKEN not in reply.text


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({}, False),
        ({"sec-fetch-site": "none"}, False),
        ({"sec-fetch-site": "same-site"}, False),
        ({"sec-fetch-site": "cross-site"}, False),
        ({"origin": "null"}, False),
        ({"origin": f"http://{HOST}.evil.example"}, False),
        ({"origin": "http://graphd:2"}, False),
        ({"origin": "http://evil.example", "sec-fetch-site": "same-origin"}, False),
        ({"origin": f"http://{HOST}", "sec-fetch-site": "cross-site"}, False),
        ({"sec-fetch-site": "same-origin"}, True),
        ({"origin": f"http://{HOST}"}, True),
        ({"origin": f"https://{HOST}"}, True),
    ],
)
def test_a_change_with_a_session_needs_this_origin(
    app: FastAPI, headers: dict[str, str], allowed: bool
) -> None:
    reply = send(app, "POST", "/caller", COOKIE | headers | {"x-csrf-token": TOKEN})
    assert reply.status_code == (200 if allowed else 403)


def test_a_change_with_a_header_needs_no_token(app: FastAPI) -> None:
    assert send(app, "POST", "/caller", BEARER).json() == "alice api_key"
    assert send(app, "POST", "/caller", BEARER | COOKIE).json() == "alice api_key"
    refused = send(app, "POST", "/caller", {"authorization": "Basic x"} | COOKIE)
    assert refused.status_code == 401


def test_open_paths_have_an_anonymous_caller(app: FastAPI) -> None:
    for headers in ({}, COOKIE, BEARER, {"cookie": "asterism_session=expired"}):
        assert send(app, "GET", "/open", headers).json() == " anonymous"
    assert send(app, "POST", "/open", SAME).json() == " anonymous"
    foreign = send(app, "POST", "/open", {"origin": "http://evil.example"})
    assert foreign.status_code == 403
    assert send(app, "GET", "/open/", {}).status_code == 401
    rebound = send(app, "POST", "/open", {}, "rebound.example")
    assert rebound.status_code == 403


@pytest.mark.parametrize(
    "host", ["graphd/open?", "graphd/healthz?", "graphd/open#", "graphd\\open?"]
)
def test_a_host_with_a_path_opens_nothing(app: FastAPI, host: str) -> None:
    assert send(app, "GET", "/caller", {"host": host}).status_code in (401, 403)


def test_browsers_are_sent_to_the_sign_in_page(app: FastAPI) -> None:
    html = {"accept": "text/html,*/*"}
    for headers in ({}, {"cookie": "asterism_session=expired"}):
        reply = send(app, "GET", "/caller?a=1&b=//x", headers | html)
        assert reply.status_code == 303
        assert reply.headers["cache-control"] == "no-store"
        location = urlsplit(reply.headers["location"])
        assert (location.scheme, location.netloc, location.path) == ("", "", "/ui/sign-in")
        assert parse_qs(location.query) == {"next": ["/caller?a=1&b=//x"]}
    for method, headers in (
        ("GET", {}),
        ("GET", {"accept": "application/json"}),
        ("GET", html | {"authorization": "Bearer x"}),
        ("POST", html),
    ):
        reply = send(app, method, "/caller", headers)
        assert (reply.status_code, reply.json()["error"]) == (401, "Unauthenticated")
        assert reply.headers["www-authenticate"] == "Bearer"
    early = send(app, "GET", "/caller", {"cookie": "asterism_session=early"} | html)
    assert (early.status_code, early.json()["error"]) == (409, "NotReady")


def test_an_address_that_is_too_long_is_not_returned_to() -> None:
    accept = {"accept": "text/html"}
    long = sign_in_redirect(request_of(accept, path="/ui?q=" + "x" * 3000), "/ui/sign-in")
    assert long is not None
    assert long.headers["location"] == "/ui/sign-in"
    odd = sign_in_redirect(request_of(accept, path="//evil.example/\r\nx: y"), "/ui/sign-in")
    assert odd is not None
    assert odd.headers["location"] == "/ui/sign-in?next=//evil.example/%250D%250Ax%253A%2520y"


@pytest.mark.parametrize(
    ("scheme", "origin", "name", "secure"),
    [
        ("http", "http://graphd:1", "asterism_session", False),
        ("http", "https://graphd:1", "asterism_session", True),  # TLS ends at a proxy
        ("https", "https://graphd:1", "__Host-asterism_session", True),
        ("https", "", "__Host-asterism_session", True),
    ],
)
def test_scripts_and_other_sites_do_not_get_the_cookie(
    scheme: str, origin: str, name: str, secure: bool
) -> None:
    request = request_of({"origin": origin} if origin else {}, scheme=scheme)
    response = Response()
    set_session(request, response, _session("bob"), 600)
    remove_session(request, response)
    stored, removed = response.headers.getlist("set-cookie")
    for cookie, value, seconds in ((stored, "bob", 600), (removed, '""', 0)):
        pair, *attributes = cookie.split("; ")
        assert pair == f"{name}={value}"
        expected = {"HttpOnly", "SameSite=strict", "Path=/", f"Max-Age={seconds}"}
        assert set(attributes) == expected | ({"Secure"} if secure else set())
    back = request_of({"cookie": f"{name}=bob; other=1"}, scheme=scheme)
    assert session_text(back) == "bob"


def test_a_cookie_without_tls_is_none_over_tls() -> None:
    """A page of this host without TLS can set the former only."""
    request = request_of({"cookie": "asterism_session=eve"}, scheme="https")
    assert session_text(request) == ""


def test_tokens_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []

    def compare(given: bytes, expected: bytes) -> bool:
        compared.append((given, expected))
        return given == expected

    monkeypatch.setattr(browser_requests.hmac, "compare_digest", compare)
    request = request_of(SAME | {"x-csrf-token": TOKEN})
    assert csrf_fault(request, _session("bob")) == ""
    assert compared == [(TOKEN.encode(), TOKEN.encode())]

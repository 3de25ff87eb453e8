"""Requests of browsers with a session: their cookie, their token, and the way to sign in.

A session comes as a cookie, which a browser adds to every request to this host, whichever page
makes it. A change therefore needs more: the header `CSRF_HEADER` with the token of the session,
which only pages of this server can read, and the origin that the browser states.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote

from fastapi import Request, Response
from fastapi.responses import RedirectResponse

from asterism_access.browser_sessions import ActiveSession

CSRF_HEADER = "x-csrf-token"
"""Header with the token of a session, in requests that change something."""
_COOKIE = "asterism_session"
_SECURE_COOKIE = "__Host-asterism_session"
"""Name of the cookie over TLS: browsers accept it from this host over TLS only."""
_MAX_ADDRESS_CHARS = 2000
"""Characters of the longest address to which a sign-in returns."""

SessionOf = Callable[[Request], ActiveSession | None]
"""Function that returns the session of a request; None without one.

It raises Unauthenticated if the session is not accepted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """How people sign in on the pages of an HTTP server."""

    page: str
    """Path of the page to which browsers without a session are sent."""
    open_paths: frozenset[str]
    """Paths that need no principal: that page, what it consists of, and the sign-in."""
    session_of: SessionOf
    session_path: str = ""
    """Path that returns the token of the caller's session; empty: there is none."""


def session_text(request: Request) -> str:
    """Return the text of the session in a request's cookie; empty without one."""
    return request.cookies.get(_cookie_name(request), "")


def set_session(request: Request, response: Response, session: ActiveSession, seconds: int) -> None:
    """Add the cookie of a session, which ends in some seconds, to a reply."""
    _set_cookie(request, response, session.text, seconds)


def remove_session(request: Request, response: Response) -> None:
    """Make the browser delete the cookie of its session."""
    _set_cookie(request, response, "", 0)


def csrf_fault(request: Request, session: ActiveSession) -> str:
    """Return why a change with a session is refused; empty if a page of this server made it.

    A wrong origin is refused before, with or without a session.
    """
    headers = request.headers
    if "origin" not in headers and headers.get("sec-fetch-site") != "same-origin":
        return (
            "origin: expected this server's own address in a change with a session; programs send "
            "the header 'Authorization' instead"
        )
    token = headers.get(CSRF_HEADER, "")
    if not hmac.compare_digest(token.encode("latin-1"), session.csrf_token.encode()):
        return (
            f"{CSRF_HEADER}: expected the token of the session in a change with a session; reload "
            "the page, or send the header 'Authorization' instead"
        )
    return ""


def sign_in_redirect(request: Request, page: str) -> Response | None:
    """Return the redirect of a browser to the sign-in page; None for other requests.

    After the sign-in, the browser returns to the address of the request.
    """
    headers = request.headers
    if (
        request.method != "GET"
        or "authorization" in headers
        or "text/html" not in headers.get("accept", "")
    ):
        return None
    query_string = request.scope["query_string"].decode("latin-1")
    address = quote(request.scope["path"], safe="/") + (f"?{query_string}" if query_string else "")
    query = f"?next={quote(address, safe='/')}" if len(address) <= _MAX_ADDRESS_CHARS else ""
    return RedirectResponse(page + query, status_code=303, headers={"cache-control": "no-store"})


def _set_cookie(request: Request, response: Response, text: str, seconds: int) -> None:
    response.set_cookie(
        _cookie_name(request),
        text,
        max_age=seconds,
        path="/",
        # Over TLS to a proxy too, which this server cannot see; the browser can.
        secure=_is_encrypted(request) or request.headers.get("origin", "").startswith("https://"),
        httponly=True,
        samesite="strict",
    )


def _cookie_name(request: Request) -> str:
    return _SECURE_COOKIE if _is_encrypted(request) else _COOKIE


def _is_encrypted(request: Request) -> bool:
    return bool(request.scope["scheme"] == "https")

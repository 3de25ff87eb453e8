"""Sign-in and sign-out of people on the pages: routes, limit of failures, audit records."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from asterism_access.audit_log import OK, AuditLog
from asterism_access.browser_sessions import ActiveSession, BrowserSessions
from asterism_access.failed_sign_ins import FailedSignIns
from asterism_access.principals import ANONYMOUS, Principal
from asterism_access.refused_credential_audit import RefusedCredentials
from asterism_access.roles import EVERY_SPACE
from asterism_daemonkit.http.browser_requests import (
    SignIn,
    remove_session,
    session_text,
    set_session,
)
from asterism_daemonkit.http.errors import handle_error
from asterism_daemonkit.rpc.call_context import current_peer, current_principal
from asterism_proto.errors import AsterismError, InvalidRequest, Unauthenticated
from graphd.pages import views

SIGN_IN_PAGE = "/ui/sign-in"
_SIGN_IN_ROUTE = "/ui/api/sign-in"
_SESSION_ROUTE = "/ui/api/session"
_FILES = ("api.js", "dom.js", "icon.svg", "sign-in.js", "style.css", "theme.js")
"""Files of the sign-in page, which need no principal."""
_RECORD_WAIT_S = 10.0
"""Seconds that a sign-in may wait for its audit record."""


class PageSignIn:
    """Sign-in of people on the pages of one daemon.

    Parameters
    ----------
    sessions : BrowserSessions
    audit_log : AuditLog or None
        Log of sign-ins, failed sign-ins and sign-outs; None: they are not recorded.
    refused_credentials : RefusedCredentials, optional
        Counts failed sign-ins.
    clock : callable
        Returns seconds since 1970.
    """

    def __init__(
        self,
        sessions: BrowserSessions,
        audit_log: AuditLog | None,
        refused_credentials: RefusedCredentials | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._sessions, self._audit_log, self._clock = sessions, audit_log, clock
        self._refused_credentials = refused_credentials
        self._failed = FailedSignIns()
        self.sign_in = SignIn(
            page=SIGN_IN_PAGE,
            open_paths=frozenset(
                [SIGN_IN_PAGE, _SIGN_IN_ROUTE, *(f"/ui/static/{name}" for name in _FILES)]
            ),
            session_of=self._session_of,
            session_path=_SESSION_ROUTE,
        )
        """What the HTTP server needs to know."""
        self.router = self._router()

    def _session_of(self, request: Request) -> ActiveSession | None:
        text = session_text(request)
        return self._sessions.find(text) if text else None

    def _router(self) -> APIRouter:
        api = APIRouter(prefix="/ui/api", tags=["pages"])

        @api.post("/sign-in", include_in_schema=False)
        async def sign_in(request: Request) -> Response:
            # Not a model: the message of a wrong body would show what may be a credential.
            credential = _credential(await _json(request))
            address = "" if request.client is None else request.client.host
            session = await run_in_threadpool(self._begin, credential, address)
            response = JSONResponse(
                _session_view(session.principal, session).model_dump(),
                headers={"cache-control": "no-store"},
            )
            set_session(request, response, session, max(session.expires_s - int(self._clock()), 1))
            return response

        @api.post("/sign-out", status_code=204)
        def sign_out(request: Request) -> Response:
            """End the session of the caller, at all graphds."""
            text, error = session_text(request), None
            if text and "authorization" not in request.headers:
                try:
                    self._sessions.end(text)
                except AsterismError as failure:  # the browser forgets the session all the same
                    error = failure
                outcome = (OK, "") if error is None else (type(error).__name__, error.message)
                self._record(current_principal(), "SignOut", *outcome)
            response = Response(status_code=204) if error is None else handle_error(request, error)
            remove_session(request, response)
            return response

        @api.get("/session")
        def get_session(request: Request, response: Response) -> views.SessionView:
            """Return who is signed in, with which roles."""
            response.headers["cache-control"] = "no-store"
            session = None if "authorization" in request.headers else self._session_of(request)
            return _session_view(current_principal(), session)

        return api

    def _begin(self, credential: str, address: str) -> ActiveSession:
        """Begin a session, within the limit of failures, and record it."""
        if self._audit_log is not None:
            self._audit_log.check_writable()
        self._failed.take(address)
        try:
            session = self._sessions.start(credential)
        except Unauthenticated as error:
            if self._refused_credentials is not None:
                self._refused_credentials.count("http", error)
            self._record(ANONYMOUS, "SignIn", type(error).__name__, error.message)
            raise
        except AsterismError:  # not for the credential, such as while keys cannot be fetched
            self._failed.give_back(address)
            raise
        self._failed.give_back(address)
        self._record(session.principal, "SignIn")
        return session

    def _record(
        self, principal: Principal, method: str, outcome: str = OK, detail: str = ""
    ) -> None:
        if self._audit_log is not None:
            self._audit_log.record(
                principal,
                method=method,
                outcome=outcome,
                detail=detail,
                peer=current_peer(),
                deadline=time.monotonic() + _RECORD_WAIT_S,
            )


async def _json(request: Request) -> Any:
    try:
        return await request.json()
    except (ValueError, RecursionError):
        return None


def _credential(body: Any) -> str:
    """Return the credential in the body of a sign-in; the message of a wrong one shows nothing."""
    credential = body.get("credential") if isinstance(body, dict) and len(body) == 1 else None
    if not isinstance(credential, str):
        raise InvalidRequest(
            'body: expected {"credential": "..."} with an API key, a token or a root ticket'
        )
    return credential.strip()


def _session_view(principal: Principal, session: ActiveSession | None) -> views.SessionView:
    return views.SessionView(
        principal=principal.name,
        kind=principal.kind.value,
        credential_id=principal.credential_id,
        is_cluster_admin=principal.is_cluster_admin,
        role_everywhere=_role_name(principal, EVERY_SPACE),
        roles={
            space: role.name.lower()
            for space, role in sorted(principal.roles.items())
            if space != EVERY_SPACE
        },
        csrf_token="" if session is None else session.csrf_token,
        expires_ms=0 if session is None else 1000 * session.expires_s,
    )


def _role_name(principal: Principal, space: str) -> str:
    role = principal.role_in(space)
    return "" if role is None else role.name.lower()

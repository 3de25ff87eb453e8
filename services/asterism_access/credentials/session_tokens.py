"""Sessions of people on the web pages: what a graphd signs when they sign in.

The form is ``ss_<payload>_<signature>``: JSON and the HMAC-SHA256 of all characters before the
last ``_``, both in base64url without padding. A session names the credential that it began with
and contains no part of it, so a session ends with its credential, and reveals no credential.
"""

from __future__ import annotations

import hmac
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from asterism_access.credentials.signatures import (
    SIGNATURE_CHARS,
    base64_content,
    base64_text,
    signature,
)
from asterism_access.credentials.verified_credential import utc_text
from asterism_access.principals import PrincipalKind
from asterism_access.roles import Role
from asterism_proto.errors import InvalidRequest, Unauthenticated

PREFIX = "ss_"
MAX_SESSION_CHARS = 3800
"""Characters of the longest session; browsers keep cookies of up to 4096 bytes."""
KINDS = (PrincipalKind.API_KEY, PrincipalKind.TOKEN, PrincipalKind.TICKET)
"""Kinds of principals that may have a session."""
_CSRF_PREFIX = "csrf_"
_FIELDS = frozenset({"name", "kind", "credential", "roles", "exp", "id"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionContent:
    """Content of a session, without its signature."""

    name: str
    """Name of the principal."""
    kind: PrincipalKind
    """Kind of the credential; one of `KINDS`."""
    credential_id: str
    """Public part of the credential."""
    roles: Mapping[str, Role] = field(default_factory=dict)
    """Roles that the credential itself names. Granted ones are looked up in each request."""
    expires_s: int
    """Seconds since 1970."""
    session_id: str


@dataclass(frozen=True, slots=True)
class VerifiedSession:
    """A session with a valid signature, and the token that its changing requests need."""

    session: SessionContent
    csrf_token: str = field(repr=False)


def sign(session: SessionContent, key: bytes) -> str:
    """Return a session as a browser keeps it.

    Raises
    ------
    InvalidRequest
        If the credential names too many roles.
    """
    payload = {
        "name": session.name,
        "kind": session.kind.value,
        "credential": session.credential_id,
        "roles": {space: int(role) for space, role in session.roles.items()},
        "exp": session.expires_s,
        "id": session.session_id,
    }
    signed = PREFIX + base64_text(json.dumps(payload, separators=(",", ":")).encode("ascii"))
    text = f"{signed}_{signature(signed, key)}"
    if len(text) > MAX_SESSION_CHARS:
        raise InvalidRequest(
            f"principal={session.name!r}: expected a credential that names fewer than "
            f"{len(session.roles)} roles, for a session of at most {MAX_SESSION_CHARS} "
            "characters; grant roles, or sign in with an API key"
        )
    return text


def verify(text: str, keys: Sequence[bytes], now_s: float) -> VerifiedSession:
    """Return the content of a session that one of some keys signed.

    Parameters
    ----------
    text : str
    keys : sequence of bytes
    now_s : float
        Time in seconds since 1970.

    Raises
    ------
    Unauthenticated
        If the text is not a session, no key signed it, or it has expired. The message does not
        show the text.
    """
    signed, found = text[: -SIGNATURE_CHARS - 1], text[-SIGNATURE_CHARS:]
    if (
        len(text) > MAX_SESSION_CHARS
        or not text.isascii()
        or not signed.startswith(PREFIX)
        or text[len(signed) : -SIGNATURE_CHARS] != "_"
    ):
        raise Unauthenticated("session: expected one that this cluster began; sign in")
    # All keys are tried, whichever fits.
    fitting = [
        key for key in keys if hmac.compare_digest(signature(signed, key).encode(), found.encode())
    ]
    if not fitting:
        raise Unauthenticated(
            "session: its signature is not of a key of this cluster; sign in", reason="signature"
        )
    session = _parse(signed.removeprefix(PREFIX))
    if now_s >= session.expires_s:
        raise Unauthenticated(
            f"session: expired at {utc_text(session.expires_s)}; sign in", reason="expired"
        )
    # Of the key that signed: the token stays the same while keys are replaced.
    return VerifiedSession(session, signature(_CSRF_PREFIX + text, fitting[0]))


def _parse(payload: str) -> SessionContent:
    """Return the content of a payload with a valid signature; another release may have made it."""
    try:
        data = json.loads(base64_content(payload))
        if set(data) != _FIELDS or not math.isfinite(data["exp"]):
            raise ValueError(sorted(data))
        kind = PrincipalKind(data["kind"])
        if kind not in KINDS:
            raise ValueError(kind)
        return SessionContent(
            name=str(data["name"]),
            kind=kind,
            credential_id=str(data["credential"]),
            roles={space: Role(role) for space, role in data["roles"].items()},
            expires_s=int(data["exp"]),
            session_id=str(data["id"]),
        )
    except (ValueError, ArithmeticError, LookupError, TypeError, AttributeError, RecursionError):
        raise Unauthenticated(
            "session: expected the fields of this release; sign in, and run one release on all "
            "daemons"
        ) from None

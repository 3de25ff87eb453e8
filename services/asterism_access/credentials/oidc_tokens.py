"""Tokens of an OpenID Connect issuer: JSON Web Tokens (RFC 7519) that its public keys verify.

The checks follow RFC 8725: a token must have a form with one reading only, an algorithm with public
keys that fits the key it names, and the configured issuer and audience.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, Protocol

from asterism_access.credentials.jwks import ALGORITHMS, KeySource, key_source
from asterism_access.credentials.verified_credential import (
    MAX_CREDENTIAL_CHARS,
    MAX_NAME_CHARS,
    VerifiedCredential,
    is_principal_name,
    utc_text,
)
from asterism_access.principals import Principal, PrincipalKind
from asterism_access.roles import Role, parse_role
from asterism_proto.errors import InvalidRequest, Unauthenticated

_TYPES = frozenset({"jwt", "at+jwt", "application/at+jwt"})
"""Values of the header `typ` in lower case, of tokens that name a caller."""
_LATEST_S = 1e11
"""Times in seconds above this are refused: they are in milliseconds, or unusable."""
_MAX_SKEW_S = 600
_MAX_ROLES = 1000


class TokenSettings(Protocol):
    """Settings of tokens."""

    @property
    def token_issuer(self) -> str:
        """Issuer of accepted tokens; empty: none are accepted."""

    @property
    def token_audience(self) -> str:
        """Audience that tokens for this cluster have."""

    @property
    def token_jwks(self) -> str:
        """File or URL of the issuer's keys; empty: the URL in its configuration."""

    @property
    def token_name_claim(self) -> str:
        """Claim with the name of the principal."""

    @property
    def token_roles_claim(self) -> str:
        """Claim with roles; empty: roles come from grants only."""

    @property
    def token_skew_s(self) -> float:
        """Seconds by which the clock of the issuer may differ."""


class TokenVerifier:
    """Verifies tokens of one issuer. Threads may share an object.

    Parameters
    ----------
    settings : TokenSettings
    clock : callable
        Returns seconds since 1970.
    keys : KeySource, optional
        Keys of the issuer; by default those that the settings name.

    Raises
    ------
    InvalidRequest
        If a setting cannot be used.
    """

    def __init__(
        self,
        settings: TokenSettings,
        clock: Callable[[], float] = time.time,
        keys: KeySource | None = None,
    ) -> None:
        for name in ("token_issuer", "token_audience", "token_name_claim"):
            if not getattr(settings, name):
                raise InvalidRequest(f"{name}='': expected a value where tokens are accepted")
        if not 0 <= settings.token_skew_s <= _MAX_SKEW_S:
            raise InvalidRequest(
                f"token_skew_s={settings.token_skew_s}: expected 0 to {_MAX_SKEW_S} seconds"
            )
        self._settings = settings
        self._clock = clock
        self._keys = keys or key_source(settings.token_jwks, settings.token_issuer)

    def __repr__(self) -> str:
        return f"TokenVerifier({self._settings.token_issuer!r})"

    @property
    def revision(self) -> int:
        """Number that grows when the keys of the issuer change."""
        return self._keys.revision

    def verify(self, token: str) -> VerifiedCredential:
        """Return the principal of a token, with the roles that the token itself names.

        Raises
        ------
        Unauthenticated
            If the token is not accepted. The message does not show it.
        Unavailable
            If the keys of the issuer could not be fetched yet.
        """
        claims = self._signed_claims(token)
        self._check_addressees(claims)
        expires_s = self._check_times(claims)
        name = claims.get(self._settings.token_name_claim)
        if not isinstance(name, str) or not is_principal_name(name):
            _refuse(
                f"expected in its claim {self._settings.token_name_claim!r} a name of 1 to "
                f"{MAX_NAME_CHARS} printable characters",
                "claims",
            )
        token_id = claims.get("jti")
        principal = Principal(
            name=name,
            kind=PrincipalKind.TOKEN,
            roles=self._roles(claims),
            credential_id=token_id if isinstance(token_id, str) and _is_short(token_id) else "",
        )
        return VerifiedCredential(principal, expires_s + self._settings.token_skew_s)

    def _signed_claims(self, token: str) -> Mapping[str, Any]:
        segments = token.split(".")
        if len(token) > MAX_CREDENTIAL_CHARS or len(segments) != 3 or not token.isascii():
            _refuse(
                "expected three parts in base64url, joined by '.', of at most "
                f"{MAX_CREDENTIAL_CHARS} characters"
            )
        header = _json_object(segments[0], "header")
        signature = _decode(segments[2], "signature")
        algorithm, key_id = header.get("alg"), header.get("kid", "")
        if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
            _refuse(
                f"expected a signature with a public key (RS256, ES256, EdDSA), not "
                f"alg={_shown(algorithm)}"
            )
        if "crit" in header or "b64" in header:
            _refuse("expected no header 'crit' or 'b64'")
        if str(header.get("typ", "jwt")).lower() not in _TYPES:
            _refuse(f"expected an access or id token, not typ={_shown(header['typ'])}")
        if not isinstance(key_id, str) or not _is_short(key_id):
            _refuse(f"expected a key id as text, not kid={_shown(key_id)}")
        keys = self._keys.find(key_id, algorithm)
        if not keys:
            _refuse(
                f"expected a key of the issuer for {algorithm}, not kid={_shown(key_id)}; the "
                "issuer may have replaced its keys less than a minute ago",
                "unknown",
            )
        signed = f"{segments[0]}.{segments[1]}".encode("ascii")
        if not any(key.verify(signed, signature, algorithm) for key in keys):
            _refuse("its signature is not of the issuer's key; get another token", "signature")
        return _json_object(segments[1], "claims")

    def _check_addressees(self, claims: Mapping[str, Any]) -> None:
        issuer, audience = claims.get("iss"), claims.get("aud")
        if issuer != self._settings.token_issuer:
            _refuse(
                f"expected issuer {self._settings.token_issuer!r}, not {_shown(issuer)}", "claims"
            )
        if self._settings.token_audience not in (
            audience if isinstance(audience, list) else [audience]
        ):
            _refuse(
                f"expected audience {self._settings.token_audience!r}, not {_shown(audience)}; ask "
                "the issuer for a token for this cluster",
                "claims",
            )

    def _check_times(self, claims: Mapping[str, Any]) -> float:
        """Check the validity of a token, and return when it expires."""
        now, skew_s = self._clock(), self._settings.token_skew_s
        expires_s = _seconds(claims, "exp")
        if expires_s is None:
            _refuse("expected a time of expiry in its claim 'exp'")
        if now >= expires_s + skew_s:
            _refuse(f"expired at {utc_text(expires_s)}; get another token", "expired")
        for claim in ("nbf", "iat"):
            starts_s = _seconds(claims, claim)
            if starts_s is not None and now < starts_s - skew_s:
                _refuse(
                    f"not valid before {utc_text(starts_s)} (its claim {claim!r}); check the "
                    "clocks of this host and the issuer",
                    "claims",
                )
        return expires_s

    def _roles(self, claims: Mapping[str, Any]) -> Mapping[str, Role]:
        """Return the roles in a token: ``{"shop": "reader"}`` or ``["shop:reader"]``."""
        claim = self._settings.token_roles_claim
        stated = claims.get(claim) if claim else None
        if stated is None:
            return {}
        if isinstance(stated, list) and all(isinstance(text, str) for text in stated):
            pairs = [(space, role) for space, _, role in (text.rpartition(":") for text in stated)]
        elif isinstance(stated, dict):
            pairs = list(stated.items())
        else:
            pairs = [("", "")]
        roles: dict[str, Role] = {}
        try:
            if len(pairs) > _MAX_ROLES:
                raise InvalidRequest(f"expected at most {_MAX_ROLES} roles, not {len(pairs)}")
            for space, text in pairs:
                if not space or not isinstance(text, str):
                    raise InvalidRequest('expected {"space": "role"} or ["space:role"]')
                role = parse_role(text[:MAX_NAME_CHARS])
                roles[space] = max(role, roles.get(space, role))
        except InvalidRequest as error:
            _refuse(f"its claim {claim!r}: {error.message}", "claims")
        return roles


def _refuse(message: str, reason: str = "malformed") -> NoReturn:
    raise Unauthenticated(f"token: {message}", reason=reason)


def _decode(segment: str, name: str) -> bytes:
    """Return the bytes of a part of a token, which has one form only."""
    encoded = segment.encode("ascii")
    try:
        content = base64.b64decode(encoded + b"=" * (-len(encoded) % 4), b"-_", validate=True)
    except ValueError:
        content = b""
    if not content or base64.urlsafe_b64encode(content).rstrip(b"=") != encoded:
        _refuse(f"expected its {name} in base64url without padding")
    return content


def _json_object(segment: str, name: str) -> Mapping[str, Any]:
    try:
        data = json.loads(_decode(segment, name))
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        _refuse(f"expected its {name} as a JSON object")
    return data


def _seconds(claims: Mapping[str, Any], claim: str) -> float | None:
    """Return a time in a token; None if it has none."""
    value = claims.get(claim)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _LATEST_S:
        _refuse(f"expected seconds since 1970 in its claim {claim!r}")
    return float(value)


def _is_short(text: str) -> bool:
    return len(text) <= MAX_NAME_CHARS and (text.isprintable() or not text)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."

"""Authentication: the principal of the credentials that a caller sends.

Credentials are API keys, tickets or tokens, sent as ``Bearer <credential>``. Accepted ones are
cached by their SHA-256 until they expire, or until a key of the cluster, an API key, a grant or a
key of the issuer changes. Refused ones are not cached.
"""

from __future__ import annotations

import hashlib
import math
import threading
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple, Protocol

from asterism_access.credentials import api_keys, tickets
from asterism_access.credentials.cluster_key import ClusterKey
from asterism_access.credentials.tickets import SKEW_S, TicketKind
from asterism_access.credentials.verified_credential import (
    MAX_CREDENTIAL_CHARS,
    VerifiedCredential,
    utc_text,
)
from asterism_access.principals import Principal, PrincipalKind
from asterism_access.roles import Role
from asterism_proto.errors import Unauthenticated, Unavailable
from asterism_proto.v1.metad_pb2 import AccessState, ApiKey

_CACHE_SIZE = 4096
"""Most credentials that are cached."""
_TOKEN_CACHE_S = 60.0
"""Seconds after which a cached token is verified again, so that keys of its issuer are renewed."""
_SCHEME = "bearer "
_MAX_CHARS = len(_SCHEME) + MAX_CREDENTIAL_CHARS
_NO_HASH = bytes(32)
"""Hash that is compared for unknown keys, so that they take as long as known ones."""
_ROLES: Mapping[int, Role] = {int(role): role for role in Role}
_NO_ROLES: Mapping[str, Role] = MappingProxyType({})


class Tokens(Protocol):
    """Verifier of tokens; see `asterism_access.credentials.oidc_tokens.TokenVerifier`."""

    @property
    def revision(self) -> int:
        """Number that grows when a token that was valid may no longer be."""

    def verify(self, token: str) -> VerifiedCredential:
        """Return the principal of a token, with the roles that the token itself names.

        Raises
        ------
        Unauthenticated
            If the token is not accepted.
        """


class _Cached(NamedTuple):
    principal: Principal
    until_s: float


class _IndexedState:
    """API keys and grants of one state, with the credentials that are accepted under it."""

    def __init__(self, state: AccessState | None, key_revision: int, token_revision: int) -> None:
        self.state = state
        self.key_revision = key_revision
        self.token_revision = token_revision
        self.keys: dict[str, ApiKey] = {
            key.key_id: key for key in (state.keys if state is not None else ())
        }
        self.cache: dict[bytes, _Cached] = {}
        roles: dict[str, dict[str, Role]] = {}
        for grant in state.grants if state is not None else ():
            if grant.role in _ROLES:
                of_principal = roles.setdefault(grant.principal, {})
                role = _ROLES[grant.role]
                of_principal[grant.space] = max(role, of_principal.get(grant.space, role))
        self._roles = {name: MappingProxyType(held) for name, held in roles.items()}

    def check_received(self) -> None:
        """Raise Unavailable if the API keys and grants are not known yet."""
        if self.state is None:
            raise Unavailable(
                "this daemon has not received the roles yet; try again in a second, and check that "
                "it reaches metad"
            )

    def roles_of(self, name: str, more: Mapping[str, Role] = _NO_ROLES) -> Mapping[str, Role]:
        """Return the granted roles of a principal, joined with others."""
        granted = self._roles.get(name, _NO_ROLES)
        if not more:
            return granted
        return {
            space: max(granted.get(space, role), more.get(space, role))
            for space, role in {**granted, **more}.items()
        }


class Authenticator:
    """Accepts or refuses the credentials of callers. Threads may share an object.

    Parameters
    ----------
    cluster_key : ClusterKey
    tokens : Tokens or None
        None: tokens are refused.
    state : callable
        Returns the API keys and grants; None while they are not known yet, so that only tickets are
        accepted. They are indexed when another object is returned; an object is not changed after
        it was returned.
    accepts_client_tickets : bool
        True for storageds only. A graphd refuses the tickets that it issues, so that a client with
        a revoked credential cannot exchange its last ticket for the next one.
    clock : callable
        Returns seconds since 1970.
    """

    def __init__(
        self,
        cluster_key: ClusterKey,
        tokens: Tokens | None,
        state: Callable[[], AccessState | None],
        *,
        accepts_client_tickets: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._cluster_key = cluster_key
        self._tokens = tokens
        self._state = state
        self._accepts_client_tickets = accepts_client_tickets
        self._clock = clock
        self._lock = threading.Lock()
        self._indexed = _IndexedState(None, -1, -1)

    def authenticate(self, authorization: str) -> Principal:
        """Return the principal of a call's credentials, with its roles.

        Parameters
        ----------
        authorization : str
            Value of `errors.AUTHORIZATION_KEY`: ``Bearer`` and an API key, ticket or token. Empty
            if the call has none.

        Raises
        ------
        Unauthenticated
            If the credentials are not accepted. The message has their kind and the reason, and no
            part that is secret.
        Unavailable
            If they are an API key or a token, and the keys and grants are not known yet; or a
            token, and the keys of its issuer could not be fetched yet.
        """
        indexed = self._current_index()
        _check_form(authorization)
        digest = hashlib.sha256(authorization.encode("ascii")).digest()
        cached = indexed.cache.get(digest)
        if cached is not None and self._clock() < cached.until_s:
            return cached.principal
        verified = self._verify(authorization, indexed)
        principal, until_s = _with_grants(verified.principal, indexed), verified.expires_s
        if principal.kind is PrincipalKind.TOKEN:
            until_s = min(until_s, self._clock() + _TOKEN_CACHE_S)
        self._keep(indexed, digest, _Cached(principal, until_s))
        return principal

    def verify(self, authorization: str) -> VerifiedCredential:
        """Return the principal of credentials with the roles that they name, and their expiry.

        Parameters
        ----------
        authorization : str
            As in `authenticate`. Nothing is cached.

        Raises
        ------
        Unauthenticated, Unavailable
            As in `authenticate`.
        """
        _check_form(authorization)
        return self._verify(authorization, self._current_index())

    def admit(self, stated: Principal) -> Principal:
        """Return a principal that `verify` returned before, with its roles of now.

        Raises
        ------
        Unauthenticated
            If it has an API key that is no longer valid.
        Unavailable
            If the keys and grants are not known yet.
        """
        indexed = self._current_index()
        if stated.kind is PrincipalKind.API_KEY:
            indexed.check_received()
            known = indexed.keys.get(stated.credential_id)
            if known is None or known.principal != stated.name:
                raise _unknown_key(stated.credential_id)
            self._check_valid(known)
        return _with_grants(stated, indexed)

    def _current_index(self) -> _IndexedState:
        indexed, state = self._indexed, self._state()
        key_revision = self._cluster_key.revision
        token_revision = 0 if self._tokens is None else self._tokens.revision
        if (
            state is indexed.state
            and key_revision == indexed.key_revision
            and token_revision == indexed.token_revision
        ):
            return indexed
        with self._lock:  # one thread indexes, and the others wait
            indexed = self._indexed
            if key_revision != indexed.key_revision or token_revision != indexed.token_revision:
                indexed = _IndexedState(state, key_revision, token_revision)
            elif state is not indexed.state:
                if state == indexed.state:
                    indexed.state = state
                else:
                    indexed = _IndexedState(state, key_revision, token_revision)
            self._indexed = indexed
            return indexed

    def _keep(self, indexed: _IndexedState, digest: bytes, cached: _Cached) -> None:
        """Cache an accepted credential; if the cache is full, without the oldest ones."""
        with self._lock:
            if len(indexed.cache) >= _CACHE_SIZE:
                for old in list(indexed.cache)[: _CACHE_SIZE // 4]:
                    del indexed.cache[old]
            indexed.cache[digest] = cached

    def _verify(self, authorization: str, indexed: _IndexedState) -> VerifiedCredential:
        credential = _credential(authorization)
        if credential.startswith(api_keys.PREFIX):
            return self._api_key(credential, indexed)
        if credential.startswith(tickets.PREFIX):
            return self._ticket(credential)
        if credential.count(".") == 2:
            return self._token(credential, indexed)
        raise Unauthenticated(
            "authorization: expected after 'Bearer' an API key (ak_...), a ticket (tk_...), or a "
            "token (three parts joined by '.')"
        )

    def _api_key(self, credential: str, indexed: _IndexedState) -> VerifiedCredential:
        key = api_keys.parse(credential)
        indexed.check_received()
        known = indexed.keys.get(key.key_id)
        matches = key.matches(_NO_HASH if known is None else known.secret_hash)
        if known is None or not matches:
            raise _unknown_key(key.key_id)
        expires_s = self._check_valid(known)
        principal = Principal(
            name=known.principal, kind=PrincipalKind.API_KEY, credential_id=key.key_id
        )
        return VerifiedCredential(principal, expires_s)

    def _check_valid(self, known: ApiKey) -> float:
        """Return when an API key expires; Unauthenticated if it has ended."""
        if known.revoked_ms:
            raise Unauthenticated(
                f"api_key={known.key_id!r}: revoked at {utc_text(known.revoked_ms / 1e3)}; ask an "
                "administrator for another key",
                reason="revoked",
            )
        expires_s = known.expires_ms / 1e3 if known.expires_ms else math.inf
        if self._clock() >= expires_s:
            raise Unauthenticated(
                f"api_key={known.key_id!r}: expired at {utc_text(expires_s)}; ask an administrator "
                "for another key",
                reason="expired",
            )
        return expires_s

    def _ticket(self, credential: str) -> VerifiedCredential:
        ticket = self._cluster_key.verify(credential)
        if ticket.kind is TicketKind.CLIENT and not self._accepts_client_tickets:
            raise Unauthenticated(
                f"ticket of {ticket.name!r}: expected an API key or token; tickets of clients are "
                "for storageds",
                reason="kind",
            )
        is_daemon = ticket.kind is TicketKind.DAEMON
        principal = Principal(
            name=ticket.name,
            kind=PrincipalKind.DAEMON if is_daemon else PrincipalKind.TICKET,
            roles=ticket.roles,
            roles_by_id=ticket.roles_by_id,
            credential_id=ticket.ticket_id,
        )
        return VerifiedCredential(principal, ticket.expires_s + SKEW_S)

    def _token(self, credential: str, indexed: _IndexedState) -> VerifiedCredential:
        if self._tokens is None:
            raise Unauthenticated(
                "token: expected an API key; this cluster accepts no tokens (the setting "
                "token_issuer is empty)",
                reason="kind",
            )
        indexed.check_received()
        return self._tokens.verify(credential)


def _with_grants(stated: Principal, indexed: _IndexedState) -> Principal:
    """Return a principal with its granted roles, in addition to those that it states."""
    if stated.kind not in (PrincipalKind.API_KEY, PrincipalKind.TOKEN):
        return stated
    return Principal(
        name=stated.name,
        kind=stated.kind,
        roles=indexed.roles_of(stated.name, stated.roles),
        credential_id=stated.credential_id,
    )


def _unknown_key(key_id: str) -> Unauthenticated:
    return Unauthenticated(
        f"api_key={key_id!r}: expected the id and the secret of a key of this cluster; ask an "
        "administrator for another key",
        reason="unknown",
    )


def _check_form(authorization: str) -> None:
    if len(authorization) > _MAX_CHARS or not authorization.isascii():
        raise Unauthenticated(
            "authorization: expected 'Bearer' and a credential of at most "
            f"{MAX_CREDENTIAL_CHARS} ASCII characters"
        )


def _credential(authorization: str) -> str:
    if not authorization:
        raise Unauthenticated(
            "authorization: expected 'Bearer' and an API key, ticket or token; the call has no "
            "credentials",
            reason="missing",
        )
    if authorization[: len(_SCHEME)].lower() != _SCHEME:
        # What comes first is not shown: it may be a credential.
        raise Unauthenticated("authorization: expected 'Bearer', a space, and the credential")
    return authorization[len(_SCHEME) :].strip(" ")

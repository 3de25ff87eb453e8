"""Sessions of browsers at one daemon: how they begin, are found again, and end."""

from __future__ import annotations

import heapq
import math
import secrets
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from asterism_access.authentication import Authenticator
from asterism_access.credentials.cluster_key import ClusterKey
from asterism_access.credentials.session_tokens import KINDS, SessionContent
from asterism_access.credentials.verified_credential import MAX_CREDENTIAL_CHARS
from asterism_access.principals import Principal
from asterism_proto.errors import Unauthenticated, Unavailable

_MAX_ENDED = 100_000
"""Ended sessions that are remembered; beyond, those that would expire first are forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveSession:
    """A session that is accepted now."""

    principal: Principal
    """Principal with its roles of now."""
    text: str = field(repr=False)
    """Session as the browser keeps it."""
    csrf_token: str = field(repr=False)
    """Token that changing requests of the session must send."""
    expires_s: int
    """Seconds since 1970."""


def _none_known() -> Collection[str]:
    return ()


def _ignore(session: SessionContent) -> None:
    pass


class BrowserSessions:
    """Sessions that one daemon begins and accepts. Threads may share an object.

    Every daemon with the key of the cluster accepts the sessions of the others until they end.

    Parameters
    ----------
    cluster_key : ClusterKey
    authenticator : Authenticator
    valid_s : float
        Seconds after which a session expires; it does not outlive its credential.
    ended_in_cluster : callable, optional
        Returns the ids of the sessions that ended at any daemon; None while they are not known yet.
        Default: none.
    on_end : callable, optional
        Makes the end of a session known to the other daemons. Default: they do not learn of it.
    clock : callable
        Returns seconds since 1970.
    """

    def __init__(
        self,
        cluster_key: ClusterKey,
        authenticator: Authenticator,
        *,
        valid_s: float,
        ended_in_cluster: Callable[[], Collection[str] | None] = _none_known,
        on_end: Callable[[SessionContent], None] = _ignore,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._cluster_key, self._authenticator = cluster_key, authenticator
        self._ended_in_cluster, self._on_end = ended_in_cluster, on_end
        self._valid_s, self._clock = valid_s, clock
        self._lock = threading.Lock()
        self._ended: set[str] = set()
        """Ids of sessions that ended at this daemon and have not expired."""
        self._expiries: list[tuple[int, str]] = []
        """Heap of their expiries and ids."""

    def start(self, credential: str) -> ActiveSession:
        """Begin a session.

        Parameters
        ----------
        credential : str
            API key, token or root ticket.

        Raises
        ------
        Unauthenticated
            If the credential is not accepted, or is that of a daemon.
        InvalidRequest
            If it names too many roles.
        """
        if not credential or len(credential) > MAX_CREDENTIAL_CHARS:
            raise Unauthenticated(
                f"credential: expected an API key or a token of at most {MAX_CREDENTIAL_CHARS} "
                "characters; copy all of it"
            )
        verified = self._authenticator.verify(f"Bearer {credential}")
        stated = verified.principal
        if stated.kind not in KINDS:
            raise Unauthenticated(
                "credential: expected an API key, a token or a root ticket; tickets of daemons "
                "are for daemons",
                reason="kind",
            )
        session = SessionContent(
            name=stated.name,
            kind=stated.kind,
            credential_id=stated.credential_id,
            roles=stated.roles,
            expires_s=math.floor(min(verified.expires_s, self._clock() + self._valid_s)),
            session_id=secrets.token_hex(16),
        )
        return self.find(self._cluster_key.sign_session(session))

    def find(self, text: str) -> ActiveSession:
        """Return a session, with the roles that its principal has now.

        Raises
        ------
        Unauthenticated
            If it is not accepted: it was not signed by this cluster, has expired or ended, or its
            API key was revoked.
        Unavailable
            If the ended sessions are not known yet.
        """
        verified = self._cluster_key.verify_session(text)
        session = verified.session
        ended_in_cluster = self._ended_in_cluster()
        if ended_in_cluster is None:
            raise Unavailable(
                "this daemon has not received the ended sessions yet; try again in a second, and "
                "check that it reaches metad"
            )
        if session.session_id in self._ended or session.session_id in ended_in_cluster:
            raise Unauthenticated("session: signed out; sign in again", reason="signed_out")
        principal = Principal(
            name=session.name,
            kind=session.kind,
            roles=session.roles,
            credential_id=session.credential_id,
        )
        return ActiveSession(
            principal=self._authenticator.admit(principal),
            text=text,
            csrf_token=verified.csrf_token,
            expires_s=session.expires_s,
        )

    def end(self, text: str) -> None:
        """End a session: this daemon does not accept it any more, and the others neither.

        Raises
        ------
        AsterismError
            If the others could not be informed. This daemon refuses the session all the same.
        """
        session = self._cluster_key.verify_session(text).session
        with self._lock:
            now = self._clock()
            while self._expiries and (
                self._expiries[0][0] <= now or len(self._expiries) >= _MAX_ENDED
            ):
                self._ended.discard(heapq.heappop(self._expiries)[1])
            if session.session_id not in self._ended:
                self._ended.add(session.session_id)
                heapq.heappush(self._expiries, (session.expires_s, session.session_id))
        self._on_end(session)

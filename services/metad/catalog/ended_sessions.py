"""Sessions of the web pages that were signed out, until they expire."""

from __future__ import annotations

import re

from asterism_access.credentials.verified_credential import MAX_NAME_CHARS
from asterism_proto.errors import Conflict, InvalidRequest
from metad.model.access import EndedSession
from metad.store import keys
from metad.store.port import MetaStore
from metad.wire import record_encoding

MAX_SESSIONS = 20_000
"""Most ended sessions that are stored."""
MAX_SESSIONS_OF_PRINCIPAL = 1000
"""Most ended sessions of one principal: one that signs out often displaces its own records only."""
_SESSION_ID = re.compile(r"[0-9a-f]{32}")


class EndedSessions:
    """All ended sessions that had not expired at the last change.

    Not thread-safe: called under the lock of `metad.change_feed`.

    Parameters
    ----------
    store : MetaStore
    """

    def __init__(self, store: MetaStore) -> None:
        self._store = store
        self._sessions = {
            session.session_id: session
            for session in (
                record_encoding.decode_ended_session(value)
                for _, value in store.range(keys.ENDED_SESSIONS)
            )
        }

    def all(self) -> list[EndedSession]:
        """Return the ended sessions, by id."""
        return [self._sessions[session_id] for session_id in sorted(self._sessions)]

    def add(self, session: EndedSession, *, now_ms: int) -> bool:
        """Store an ended session, and delete expired ones; return whether it was added.

        If the maximum number of its principal is stored, the one that expires first is deleted.

        Raises
        ------
        InvalidRequest
            If the id is not that of a session, or the principal's name is too long.
        Conflict
            If the maximum number of sessions is stored, and none has expired.
        """
        if not _SESSION_ID.fullmatch(session.session_id):
            raise InvalidRequest(
                f"session_id: expected 32 hexadecimal digits, found {len(session.session_id)} "
                "characters; run one release on all daemons"
            )
        if not 1 <= len(session.principal) <= MAX_NAME_CHARS:
            raise InvalidRequest(
                f"principal: expected 1 to {MAX_NAME_CHARS} characters, found "
                f"{len(session.principal)}"
            )
        if session.session_id in self._sessions or session.expires_ms <= now_ms:
            return False
        kept = [other for other in self._sessions.values() if other.expires_ms > now_ms]
        own = [other for other in kept if other.principal == session.principal]
        if len(own) >= MAX_SESSIONS_OF_PRINCIPAL:
            kept.remove(min(own, key=lambda other: (other.expires_ms, other.session_id)))
        if len(kept) >= MAX_SESSIONS:
            raise Conflict(
                f"ended_sessions={len(kept)}: expected fewer than {MAX_SESSIONS} that have not "
                "expired; lower session_s of the graphds"
            )
        remaining = {other.session_id: other for other in kept}
        self._store.write(
            {
                keys.ended_session_key(session.session_id): record_encoding.encode_ended_session(
                    session
                ),
                **{
                    keys.ended_session_key(session_id): None
                    for session_id in self._sessions.keys() - remaining.keys()
                },
            }
        )
        self._sessions = {**remaining, session.session_id: session}
        return True

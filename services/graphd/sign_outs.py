"""Sessions of the web pages that ended at any graphd, as metad keeps them."""

from __future__ import annotations

from asterism_access.credentials.session_tokens import SessionContent
from asterism_proto.errors import AsterismError, Unavailable
from asterism_proto.methods import HEARTBEATS
from asterism_proto.transport import Transport
from asterism_proto.v1 import metad_pb2 as metad_pb

_METAD_TIMEOUT_S = 5.0


class SignOuts:
    """Sign-outs at all graphds of the cluster.

    The ids are replaced as a whole, so reads need no lock.

    Parameters
    ----------
    metad : Transport
    """

    def __init__(self, metad: Transport) -> None:
        self._metad = metad
        self._ids: frozenset[str] | None = None

    def ids(self) -> frozenset[str] | None:
        """Return the ids of the ended sessions; None before the first reply of metad."""
        return self._ids

    def follow(self, reply: metad_pb.PollReply) -> None:
        """Take the ended sessions of a poll reply; one that must not be followed has no state."""
        if reply.HasField("access"):
            self._ids = frozenset(session.session_id for session in reply.ended_sessions)

    def report(self, session: SessionContent) -> None:
        """Make metad keep the end of a session, and send it to all graphds.

        Raises
        ------
        Unavailable
            If metad did not take it.
        """
        request = metad_pb.EndedSession(
            session_id=session.session_id,
            principal=session.name,
            expires_ms=1000 * session.expires_s,
        )
        try:
            self._metad.call(HEARTBEATS["end_session"], request, _METAD_TIMEOUT_S)
        except AsterismError as error:
            raise Unavailable(
                "session: signed out here, but other graphds accept copies of it until it expires; "
                "revoke its API key if the cookie may have been copied, and check metad: "
                f"{error.message}"
            ) from error

"""Access control of a daemon: how it authenticates its callers, and itself to other daemons."""

from __future__ import annotations

from collections.abc import Callable

from asterism_access.authentication import Authenticator, Tokens
from asterism_access.credentials.cluster_key import ClusterKey
from asterism_access.principals import Principal
from asterism_proto.v1 import metad_pb2 as metad_pb


class AccessControl:
    """Access control of one daemon.

    Parameters
    ----------
    cluster_key : ClusterKey
    tokens : Tokens or None
        Verifier of tokens; None: tokens are refused.
    role : {"metad", "storaged", "graphd"}
        Role of the daemon.
    """

    def __init__(self, cluster_key: ClusterKey, tokens: Tokens | None, role: str) -> None:
        self.cluster_key = cluster_key
        self._tokens, self._role = tokens, role

    def ticket(self) -> str:
        """Return a ticket of this daemon, for its next call to another one."""
        return self.cluster_key.daemon_ticket(self._role)

    def authenticate(
        self, state: Callable[[], metad_pb.AccessState | None]
    ) -> Callable[[str], Principal]:
        """Return the function that authenticates the callers of this daemon.

        Parameters
        ----------
        state : callable
            As in `authenticator`.
        """
        return self.authenticator(state).authenticate

    def authenticator(self, state: Callable[[], metad_pb.AccessState | None]) -> Authenticator:
        """Return the authenticator of the callers of this daemon.

        Parameters
        ----------
        state : callable
            Returns the API keys and grants that the daemon knows; the same object until they
            change, and None before it has received any.
        """
        return Authenticator(
            self.cluster_key,
            self._tokens,
            state,
            accepts_client_tickets=self._role == "storaged",
        )

"""Calls of administrators: API keys, roles in spaces, and limits."""

from __future__ import annotations

import math

from asterism.calls import validation
from asterism.client_state import Session
from asterism.records.access import EVERY, AccessLimits, ApiKey, RoleGrant, role_to_proto
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import metad_pb2 as metad_pb


class AccessClient:
    """Calls of access control, as part of `asterism.graph.Client`.

    Principals are names: of API keys, of the subjects of tokens, or in certificates.
    """

    session: Session
    """State of the connection."""

    def create_api_key(
        self, principal: str, *, expires_s: float | None = None, description: str = ""
    ) -> ApiKey:
        """Create an API key of a principal; only the result has its secret.

        Parameters
        ----------
        principal : str
            Name of the principal, such as a user or a service.
        expires_s : float, optional
            Seconds for which the key is valid. None: no end.
        description : str, default ""
            Text for lists, such as the purpose of the key.

        Returns
        -------
        ApiKey
            The key; ``secret`` is what ``asterism.connect`` takes as ``api_key``.

        Raises
        ------
        InvalidRequest
            If an argument is invalid.
        Forbidden
            If the caller is no administrator of the cluster.

        Examples
        --------
        >>> key = client.create_api_key("alice", expires_s=90 * 86400)  # doctest: +SKIP
        >>> client.grant("alice", "shop", "reader")  # doctest: +SKIP
        """
        seconds = 0.0
        if expires_s is not None:
            seconds = validation.number("expires_s", expires_s, 0, math.inf, above=True)
        request = metad_pb.CreateApiKeyRequest(
            principal=_text("principal", principal),
            expires_s=seconds,
            description=description,
        )
        reply = self.session.access("create_api_key", request)
        return ApiKey.from_proto(reply.key, reply.secret)

    def api_keys(self, principal: str | None = None) -> list[ApiKey]:
        """Return the API keys, without their secrets.

        Parameters
        ----------
        principal : str, optional
            Only keys of this principal. None: all.

        Returns
        -------
        list of ApiKey
            The keys, with revoked and expired ones that the service still keeps.

        Raises
        ------
        Unavailable
            If metad does not respond.

        Examples
        --------
        >>> [key.key_id for key in client.api_keys() if key.principal == "alice"]  # doctest: +SKIP
        """
        request = metad_pb.ListApiKeysRequest(principal=_name("principal", principal))
        return [
            ApiKey.from_proto(key) for key in self.session.access("list_api_keys", request).keys
        ]

    def revoke_api_key(self, key_id: str) -> ApiKey:
        """Revoke an API key; a key that is revoked already stays so.

        Parameters
        ----------
        key_id : str
            Public part of the key.

        Returns
        -------
        ApiKey
            The revoked key.

        Raises
        ------
        NotFound
            If there is no such key.

        Examples
        --------
        >>> client.revoke_api_key("V1StGXR8Z5jd")  # doctest: +SKIP
        """
        request = metad_pb.RevokeApiKeyRequest(key_id=_text("key_id", key_id))
        return ApiKey.from_proto(self.session.access("revoke_api_key", request))

    def grant(self, principal: str, space: str, role: str) -> RoleGrant:
        """Grant a role in a space, in the place of the principal's role there.

        Parameters
        ----------
        principal : str
            Name of the principal.
        space : str
            Name of the space. ``"*"``: every space, and with ``"admin"`` the cluster.
        role : {"reader", "writer", "builder", "admin"}
            Role; each has the rights of those before it.

        Returns
        -------
        RoleGrant
            The grant.

        Raises
        ------
        InvalidRequest
            If an argument is invalid.
        Forbidden
            If the caller is no administrator of the space.

        Examples
        --------
        >>> client.grant("alice", "shop", "reader")  # doctest: +SKIP
        """
        request = metad_pb.RoleGrant(
            principal=_text("principal", principal),
            space=_text("space", space),
            role=role_to_proto(role),
        )
        return RoleGrant.from_proto(self.session.access("grant_role", request))

    def revoke(self, principal: str, space: str) -> str:
        """Remove a principal's role in a space; nothing happens if it has none.

        Parameters
        ----------
        principal : str
            Name of the principal.
        space : str
            Name of the space, or ``"*"``, as it was granted.

        Returns
        -------
        str
            How to regain access, if this was the last administrator of the cluster; else empty.

        Raises
        ------
        Forbidden
            If the caller is no administrator of the space.

        Examples
        --------
        >>> client.revoke("alice", "shop")  # doctest: +SKIP
        """
        request = metad_pb.RevokeRoleRequest(
            principal=_text("principal", principal), space=_text("space", space)
        )
        return str(self.session.access("revoke_role", request).notice)

    def grants(self, principal: str | None = None, space: str | None = None) -> list[RoleGrant]:
        """Return the grants that the caller may see.

        Parameters
        ----------
        principal : str, optional
            Only roles of this principal. None: all.
        space : str, optional
            Only roles in this space. None: all.

        Returns
        -------
        list of RoleGrant
            Principal, space and role of each grant.

        Raises
        ------
        Unavailable
            If metad does not respond.

        Examples
        --------
        >>> client.grants(space="shop")  # doctest: +SKIP
        """
        request = metad_pb.ListGrantsRequest(
            principal=_name("principal", principal), space=_name("space", space)
        )
        return [
            RoleGrant.from_proto(grant)
            for grant in self.session.access("list_grants", request).grants
        ]

    def set_access_limits(
        self,
        principal: str,
        space: str = EVERY,
        *,
        calls_per_s: float = 0.0,
        rows_per_s: float = 0.0,
        bytes_per_s: float = 0.0,
        concurrent_calls: int = 0,
        stored_bytes: int = 0,
        pins: int = 0,
        jobs: int = 0,
        share: float = 0.0,
    ) -> AccessLimits:
        """Set the limits of a principal in a space, in the place of all its limits there.

        Parameters
        ----------
        principal : str
            Name of the principal. ``"*"``: every principal without limits of its own.
        space : str, default "*"
            Name of the space. ``"*"``: all spaces together.
        calls_per_s, rows_per_s, bytes_per_s : float, default 0.0
            Calls, rows and bytes per second. 0: no limit, as for the others.
        concurrent_calls : int, default 0
            Calls at a time.
        stored_bytes : int, default 0
            Bytes of the stored data.
        pins : int, default 0
            Pinned versions.
        jobs : int, default 0
            Jobs that wait or run.
        share : float, default 0.0
            Weight of the principal's turns while calls wait; 0 is the same as 1.

        Returns
        -------
        AccessLimits
            The limits. If all are 0, the service no longer keeps them.

        Raises
        ------
        InvalidRequest
            If a limit is below 0 or no number.
        Forbidden
            If the caller is no administrator of the cluster.

        Examples
        --------
        >>> client.set_access_limits("alice", "shop", calls_per_s=100, jobs=2)  # doctest: +SKIP
        """
        rates = {
            "calls_per_s": calls_per_s,
            "rows_per_s": rows_per_s,
            "bytes_per_s": bytes_per_s,
            "share": share,
        }
        counts = {
            "concurrent_calls": concurrent_calls,
            "stored_bytes": stored_bytes,
            "pins": pins,
            "jobs": jobs,
        }
        request = metad_pb.AccessLimits(
            principal=_text("principal", principal), space=_text("space", space)
        )
        for field, rate in rates.items():
            setattr(request, field, validation.number(field, rate, 0, _MAX_RATE))
        for field, count in counts.items():
            setattr(request, field, validation.count(field, count, maximum=validation.MAX_ID))
        return AccessLimits.from_proto(self.session.access("set_access_limits", request))

    def access_limits(
        self, principal: str | None = None, space: str | None = None
    ) -> list[AccessLimits]:
        """Return the limits that the caller may see.

        Parameters
        ----------
        principal : str, optional
            Only limits of this principal. None: all.
        space : str, optional
            Only limits in this space. None: all.

        Returns
        -------
        list of AccessLimits
            The limits.

        Raises
        ------
        Unavailable
            If metad does not respond.

        Examples
        --------
        >>> client.access_limits(principal="alice")  # doctest: +SKIP
        """
        request = metad_pb.ListGrantsRequest(
            principal=_name("principal", principal), space=_name("space", space)
        )
        return [
            AccessLimits.from_proto(limits)
            for limits in self.session.access("list_access_limits", request).limits
        ]


_MAX_RATE = 1e18


def _text(argument: str, value: str) -> str:
    """Return a text, or raise InvalidRequest if it is empty."""
    if not value:
        raise InvalidRequest(f"{argument}={value!r}: expected a name that is not empty")
    return value


def _name(argument: str, value: str | None) -> str:
    """Return the name that a list is restricted to, in its wire form: empty for all."""
    return "" if value is None else _text(argument, value)

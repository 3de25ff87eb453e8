"""Principals: who makes a call, and with which rights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from asterism_access.roles import EVERY_SPACE, Role


class PrincipalKind(Enum):
    """Origin of a principal's identity."""

    LOCAL = "local"
    """The process itself, or any caller of a daemon without access control."""
    DAEMON = "daemon"
    """A daemon of the cluster."""
    API_KEY = "api_key"
    TOKEN = "token"
    """A token of an OpenID Connect issuer."""
    TICKET = "ticket"
    """A ticket that a graphd issued for calls to storageds."""
    CERTIFICATE = "certificate"
    ANONYMOUS = "anonymous"
    """A caller that is not authenticated, such as before a sign-in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who makes a call."""

    name: str
    """Name in grants, limits and the audit log."""
    kind: PrincipalKind
    roles: Mapping[str, Role] = field(default_factory=dict)
    """Role by name of a space; `EVERY_SPACE` is every space."""
    roles_by_id: Mapping[int, Role] = field(default_factory=dict)
    """Role by id of a space; of tickets only."""
    credential_id: str = ""
    """Public part of the credential, for the audit log: the id of a key or token."""
    is_forwarded: bool = field(default=False, compare=False)
    """True if another daemon, or another part of this process, has counted the call already."""

    @property
    def is_trusted(self) -> bool:
        """True for the process itself and for daemons, which check their own callers."""
        return self.kind in (PrincipalKind.LOCAL, PrincipalKind.DAEMON)

    @property
    def is_cluster_admin(self) -> bool:
        """True if the principal may do everything."""
        return self.is_trusted or self.roles.get(EVERY_SPACE) is Role.ADMIN

    def role_in(self, space: str) -> Role | None:
        """Return the role in a space; None if the principal has none there."""
        if self.is_trusted:
            return Role.ADMIN
        return max(
            (role for key in (space, EVERY_SPACE) if (role := self.roles.get(key)) is not None),
            default=None,
        )

    def has_role(self, space: str, role: Role) -> bool:
        """Return whether the principal has at least a role in a space."""
        held = self.role_in(space)
        return held is not None and held >= role


LOCAL = Principal(name="local", kind=PrincipalKind.LOCAL)
"""Principal of calls within a process, and of every call without access control."""

ANONYMOUS = Principal(name="", kind=PrincipalKind.ANONYMOUS)
"""Principal of a caller that is not authenticated. It has no roles."""

"""Records of access control: API keys, roles, limits and ended sessions. Pure module."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from asterism_access.roles import Role

EVERY_PRINCIPAL = "*"
"""Principal of limits that apply to each principal without limits of its own."""


class GeneratedApiKey(Protocol):
    """A generated API key with its secret, which the catalog never stores."""

    @property
    def key_id(self) -> str:
        """Public part of the key."""

    @property
    def hash(self) -> bytes:
        """SHA-256 of the secret part."""

    @property
    def text(self) -> str:
        """The whole key, as clients send it."""


ApiKeyGenerator = Callable[[], GeneratedApiKey]
"""Function that returns an API key with random parts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """An API key as the catalog keeps it: without its secret."""

    key_id: str
    principal: str
    secret_hash: bytes
    """SHA-256 of the secret."""
    created_ms: int
    expires_ms: int = 0
    """Time at which the key expires, in milliseconds since 1970; 0: never."""
    revoked_ms: int = 0
    """Time at which the key was revoked; 0 if it was not."""
    description: str = ""

    def ended_ms(self, now_ms: int) -> int | None:
        """Return when the key was revoked or expired, whichever is first; None if it is valid."""
        ends_ms = [ms for ms in (self.expires_ms, self.revoked_ms) if 0 < ms <= now_ms]
        return min(ends_ms, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleGrant:
    """The role of a principal in one space, or in every space."""

    principal: str
    space: str
    """Name of the space; `asterism_access.roles.EVERY_SPACE` is every space."""
    role: Role


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessLimits:
    """Limits of a principal in one space, or in all spaces together; 0 is no limit."""

    principal: str
    """`EVERY_PRINCIPAL`: each principal without limits of its own."""
    space: str
    """Name of the space; `asterism_access.roles.EVERY_SPACE` is all spaces together."""
    calls_per_s: float = 0.0
    rows_per_s: float = 0.0
    bytes_per_s: float = 0.0
    concurrent_calls: int = 0
    stored_bytes: int = 0
    pins: int = 0
    jobs: int = 0
    """Maximum number of waiting and running jobs."""
    share: float = 0.0
    """Weight of the principal's turns; 0 is a weight of 1."""

    @property
    def is_unlimited(self) -> bool:
        """True if the record limits nothing."""
        return not (
            self.calls_per_s
            or self.rows_per_s
            or self.bytes_per_s
            or self.concurrent_calls
            or self.stored_bytes
            or self.pins
            or self.jobs
            or self.share
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedSession:
    """A session of the web pages that was signed out before it expired."""

    session_id: str
    principal: str
    expires_ms: int
    """Time at which the session would have expired, in milliseconds since 1970."""

"""Records of access control: API keys, roles and limits of principals."""

from __future__ import annotations

from dataclasses import dataclass, field

from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import metad_pb2 as metad_pb

_ROLES = {
    "reader": metad_pb.READER,
    "writer": metad_pb.WRITER,
    "builder": metad_pb.BUILDER,
    "admin": metad_pb.ADMIN,
}
ROLES = tuple(_ROLES)
"""Roles in a space, each with the rights of those before it."""
EVERY = "*"
"""Space of a grant that holds in every space, and principal or space of limits for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """API key of a principal."""

    key_id: str
    """Public part of the key."""
    principal: str
    """Name of the principal that calls with the key."""
    description: str
    created_ms: int
    expires_ms: int
    """End of the key's validity, in ms since the epoch; 0: never."""
    revoked_ms: int
    """Time of the revocation; 0: not revoked."""
    secret: str = field(default="", repr=False)
    """The whole key, as ``asterism.connect`` takes it; empty except in the reply that creates it.

    The service keeps only a hash of it.
    """

    @classmethod
    def from_proto(cls, message: metad_pb.ApiKey, secret: str = "") -> ApiKey:
        """Build a record from its protobuf message, and the secret of a new key."""
        return cls(
            key_id=message.key_id,
            principal=message.principal,
            description=message.description,
            created_ms=message.created_ms,
            expires_ms=message.expires_ms,
            revoked_ms=message.revoked_ms,
            secret=secret,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleGrant:
    """Role of a principal in a space."""

    principal: str
    space: str
    """Name of the space; ``"*"``: every space."""
    role: str
    """``"reader"``, ``"writer"``, ``"builder"`` or ``"admin"``."""

    @classmethod
    def from_proto(cls, message: metad_pb.RoleGrant) -> RoleGrant:
        """Build a record from its protobuf message."""
        role = metad_pb.SpaceRole.Name(message.role).lower()
        return cls(principal=message.principal, space=message.space, role=role)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessLimits:
    """Limits of a principal in a space; 0 in a field: no limit."""

    principal: str
    """Name of the principal; ``"*"``: every principal without limits of its own."""
    space: str
    """Name of the space; ``"*"``: all spaces together."""
    calls_per_s: float
    rows_per_s: float
    bytes_per_s: float
    concurrent_calls: int
    stored_bytes: int
    pins: int
    jobs: int
    """Jobs that wait or run."""
    share: float
    """Weight of the principal's turns; 0 is the same as 1."""

    @classmethod
    def from_proto(cls, message: metad_pb.AccessLimits) -> AccessLimits:
        """Build a record from its protobuf message."""
        return cls(
            principal=message.principal,
            space=message.space,
            calls_per_s=message.calls_per_s,
            rows_per_s=message.rows_per_s,
            bytes_per_s=message.bytes_per_s,
            concurrent_calls=message.concurrent_calls,
            stored_bytes=message.stored_bytes,
            pins=message.pins,
            jobs=message.jobs,
            share=message.share,
        )


def role_to_proto(role: str) -> metad_pb.SpaceRole:
    """Return a role in its wire form, or raise InvalidRequest."""
    if role.lower() not in _ROLES:
        raise InvalidRequest(f"role={role!r}: expected reader, writer, builder or admin")
    return _ROLES[role.lower()]

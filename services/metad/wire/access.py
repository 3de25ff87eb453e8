"""Conversion of `metad.model.access` records to messages and back.

Invalid roles in messages are refused here; other values are checked by
`metad.catalog.access_validation`."""

from __future__ import annotations

from collections.abc import Iterable

from asterism_access.roles import Role
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import metad_pb2 as metad_pb
from metad.model.access import AccessLimits, ApiKey, EndedSession, RoleGrant


def api_key_to_proto(key: ApiKey, *, with_hash: bool) -> metad_pb.ApiKey:
    """Return an API key as a message. Clients get it without the hash of its secret."""
    return metad_pb.ApiKey(
        key_id=key.key_id,
        principal=key.principal,
        secret_hash=key.secret_hash if with_hash else b"",
        created_ms=key.created_ms,
        expires_ms=key.expires_ms,
        revoked_ms=key.revoked_ms,
        description=key.description,
    )


def api_key_from_proto(message: metad_pb.ApiKey) -> ApiKey:
    """Return the API key in a message."""
    return ApiKey(
        key_id=message.key_id,
        principal=message.principal,
        secret_hash=message.secret_hash,
        created_ms=message.created_ms,
        expires_ms=message.expires_ms,
        revoked_ms=message.revoked_ms,
        description=message.description,
    )


def grant_to_proto(grant: RoleGrant) -> metad_pb.RoleGrant:
    """Return a role grant as a message."""
    return metad_pb.RoleGrant(principal=grant.principal, space=grant.space, role=grant.role.name)


def grant_from_proto(message: metad_pb.RoleGrant) -> RoleGrant:
    """Return the role grant in a message; InvalidRequest for an unknown role."""
    try:
        role = Role(message.role)
    except ValueError as error:
        expected = ", ".join(f"{role.name} ({role.value})" for role in Role)
        raise InvalidRequest(f"role={message.role}: expected one of {expected}") from error
    return RoleGrant(principal=message.principal, space=message.space, role=role)


def limits_to_proto(limits: AccessLimits) -> metad_pb.AccessLimits:
    """Return access limits as a message."""
    return metad_pb.AccessLimits(
        principal=limits.principal,
        space=limits.space,
        calls_per_s=limits.calls_per_s,
        rows_per_s=limits.rows_per_s,
        bytes_per_s=limits.bytes_per_s,
        concurrent_calls=limits.concurrent_calls,
        stored_bytes=limits.stored_bytes,
        pins=limits.pins,
        jobs=limits.jobs,
        share=limits.share,
    )


def limits_from_proto(message: metad_pb.AccessLimits) -> AccessLimits:
    """Return the access limits in a message."""
    return AccessLimits(
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


def access_state_to_proto(
    keys: Iterable[ApiKey], grants: Iterable[RoleGrant], limits: Iterable[AccessLimits]
) -> metad_pb.AccessState:
    """Return everything that daemons need to authenticate and authorize, as a message."""
    return metad_pb.AccessState(
        keys=[api_key_to_proto(key, with_hash=True) for key in keys],
        grants=[grant_to_proto(grant) for grant in grants],
        limits=[limits_to_proto(entry) for entry in limits],
    )


def ended_session_to_proto(session: EndedSession) -> metad_pb.EndedSession:
    """Return an ended session as a message."""
    return metad_pb.EndedSession(
        session_id=session.session_id, principal=session.principal, expires_ms=session.expires_ms
    )


def ended_session_from_proto(message: metad_pb.EndedSession) -> EndedSession:
    """Return the ended session in a message."""
    return EndedSession(
        session_id=message.session_id, principal=message.principal, expires_ms=message.expires_ms
    )

"""Changes of access control that a graphd forwards: whether it has received their effect.

A client that creates a key, or grants a role, may use it at the same graphd at once, and a revoked
one is refused at once."""

from __future__ import annotations

from collections.abc import Callable

from asterism_proto.transport import Content
from asterism_proto.v1 import metad_pb2 as metad_pb


def expected_access(
    request: Content, reply: Content
) -> Callable[[metad_pb.AccessState], bool] | None:
    """Return a predicate of the access state after a change; None for other calls.

    Parameters
    ----------
    request : message
    reply : message
        Reply of metad.
    """
    if isinstance(reply, metad_pb.CreateApiKeyReply):
        key_id = reply.key.key_id
        return lambda state: any(key.key_id == key_id for key in state.keys)
    if isinstance(request, metad_pb.RevokeApiKeyRequest):
        revoked_id = request.key_id
        return lambda state: all(key.revoked_ms for key in state.keys if key.key_id == revoked_id)
    if isinstance(request, metad_pb.RoleGrant):
        return lambda state: request in state.grants
    if isinstance(request, metad_pb.RevokeRoleRequest):
        revoked = request.principal, request.space
        return lambda state: all(
            (grant.principal, grant.space) != revoked for grant in state.grants
        )
    if isinstance(request, metad_pb.AccessLimits):
        return lambda state: _limits_of(state, request) == request
    return None


def _limits_of(
    state: metad_pb.AccessState, request: metad_pb.AccessLimits
) -> metad_pb.AccessLimits:
    """Return the limits of the request's principal and space; without any, unlimited ones."""
    for limits in state.limits:
        if (limits.principal, limits.space) == (request.principal, request.space):
            return limits
    return metad_pb.AccessLimits(principal=request.principal, space=request.space)

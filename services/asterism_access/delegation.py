"""Delegation: a daemon forwards a call and names the principal that made it.

The principal is the value of `asterism_proto.errors.ON_BEHALF_KEY` in the metadata, as JSON in
ASCII. A server honours it if the caller is a daemon.
"""

from __future__ import annotations

import json

from asterism_access.principals import Principal, PrincipalKind
from asterism_access.roles import Role
from asterism_proto.errors import Forbidden, InvalidRequest


def to_text(principal: Principal) -> str:
    """Return a principal as metadata."""
    return json.dumps(
        {
            "name": principal.name,
            "kind": principal.kind.value,
            "roles": {space: int(role) for space, role in principal.roles.items()},
            "credential_id": principal.credential_id,
        },
        separators=(",", ":"),
    )


def from_text(text: str, *, forwarder: Principal) -> Principal:
    """Return the principal that made a forwarded call.

    Parameters
    ----------
    text : str
        Value of the metadata.
    forwarder : Principal
        Caller of this daemon.

    Raises
    ------
    Forbidden
        If the forwarder is not a daemon.
    InvalidRequest
        If the text is not that of a principal.
    """
    if not forwarder.is_trusted:
        raise Forbidden(
            f"principal={forwarder.name!r}: expected a daemon of the cluster as the forwarder of "
            "another principal's call; send your own credentials only"
        )
    try:
        data = json.loads(text)
        return Principal(
            name=str(data["name"]),
            kind=PrincipalKind(data["kind"]),
            roles={str(space): Role(role) for space, role in data["roles"].items()},
            credential_id=str(data["credential_id"]),
            is_forwarded=True,
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidRequest(
            "asterism-on-behalf-of: expected a principal as JSON; run one release on all daemons"
        ) from error

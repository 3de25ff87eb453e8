"""Tickets: short-lived credentials that daemons sign with the key of their cluster.

The form is ``tk_<payload>_<signature>``: JSON and the HMAC-SHA256 of all characters before the
second ``_``, both in base64url without padding.
"""

from __future__ import annotations

import hmac
import json
import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from asterism_access.credentials.signatures import SIGNATURE_CHARS as _SIGNATURE_CHARS
from asterism_access.credentials.signatures import base64_content, base64_text
from asterism_access.credentials.signatures import signature as _signature
from asterism_access.credentials.verified_credential import is_principal_name, utc_text
from asterism_access.roles import Role
from asterism_proto.errors import InvalidRequest, Unauthenticated

PREFIX = "tk_"
MAX_TICKET_CHARS = 6 * 1024
"""Characters of the longest ticket; gRPC refuses metadata of more than 8 KiB."""
SKEW_S = 30.0
"""Seconds by which the clocks of two daemons may differ."""
_FIELDS = frozenset({"name", "kind", "roles", "roles_by_id", "exp", "id"})


class TicketKind(Enum):
    """Bearer of a ticket."""

    DAEMON = "daemon"
    """A daemon of the cluster, named after its role."""
    CLIENT = "client"
    """A client that calls storageds directly, with its own roles."""
    ROOT = "root"
    """An administrator with the key of the cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """Content of a ticket, without its signature."""

    name: str
    """Name of the principal."""
    kind: TicketKind
    roles: Mapping[str, Role] = field(default_factory=dict)
    """Role by name of a space; `EVERY_SPACE` is every space."""
    roles_by_id: Mapping[int, Role] = field(default_factory=dict)
    """Role by id of a space."""
    expires_s: int
    """Seconds since 1970."""
    ticket_id: str = ""
    """Public id, for the audit log."""


def new_ticket_id() -> str:
    """Return a random id of a ticket."""
    return secrets.token_hex(6)


def sign(ticket: Ticket, key: bytes) -> str:
    """Return a ticket as clients send it.

    Raises
    ------
    InvalidRequest
        If the name cannot be that of a principal, or the ticket has too many roles.
    """
    if not is_principal_name(ticket.name):
        raise InvalidRequest(f"principal={ticket.name!r}: expected 1 to 256 printable characters")
    payload = {
        "name": ticket.name,
        "kind": ticket.kind.value,
        "roles": {space: int(role) for space, role in ticket.roles.items()},
        "roles_by_id": {str(space): int(role) for space, role in ticket.roles_by_id.items()},
        "exp": ticket.expires_s,
        "id": ticket.ticket_id,
    }
    signed = PREFIX + base64_text(json.dumps(payload, separators=(",", ":")).encode("ascii"))
    text = f"{signed}_{_signature(signed, key)}"
    if len(text) > MAX_TICKET_CHARS:
        raise InvalidRequest(
            f"principal={ticket.name!r}: expected roles in fewer spaces than "
            f"{len(ticket.roles) + len(ticket.roles_by_id)}, for a ticket of at most "
            f"{MAX_TICKET_CHARS} characters; grant a role in '*', or connect without direct=True"
        )
    return text


def verify(text: str, keys: Sequence[bytes], now_s: float) -> Ticket:
    """Return the content of a ticket that one of some keys signed.

    Parameters
    ----------
    text : str
    keys : sequence of bytes
    now_s : float
        Time in seconds since 1970.

    Raises
    ------
    Unauthenticated
        If the text is not a ticket, no key signed it, or it has expired. The message does not show
        the text.
    """
    signed, signature = text[: -_SIGNATURE_CHARS - 1], text[-_SIGNATURE_CHARS:]
    if (
        len(text) > MAX_TICKET_CHARS
        or not text.isascii()
        or not signed.startswith(PREFIX)
        or text[len(signed) : -_SIGNATURE_CHARS] != "_"
    ):
        raise Unauthenticated("ticket: expected 'tk_', a payload, '_' and a signature")
    # All keys are tried, whichever fits.
    fits = [
        hmac.compare_digest(_signature(signed, key).encode(), signature.encode()) for key in keys
    ]
    if not any(fits):
        raise Unauthenticated(
            "ticket: its signature is not of a key of this cluster; get another, and check that "
            "all daemons have the same cluster_key_file",
            reason="signature",
        )
    ticket = _parse(signed.removeprefix(PREFIX))
    if now_s > ticket.expires_s + SKEW_S:
        raise Unauthenticated(
            f"ticket of {ticket.name!r}: expired at {utc_text(ticket.expires_s)}; get another, and "
            "check the clocks of the hosts",
            reason="expired",
        )
    return ticket


def _parse(payload: str) -> Ticket:
    """Return the content of a payload with a valid signature; another release may have made it."""
    try:
        data = json.loads(base64_content(payload))
        if set(data) != _FIELDS or not math.isfinite(data["exp"]):
            raise ValueError(sorted(data))
        return Ticket(
            name=str(data["name"]),
            kind=TicketKind(data["kind"]),
            roles={space: Role(role) for space, role in data["roles"].items()},
            roles_by_id={int(space): Role(role) for space, role in data["roles_by_id"].items()},
            expires_s=int(data["exp"]),
            ticket_id=str(data["id"]),
        )
    except (ValueError, ArithmeticError, LookupError, TypeError, AttributeError, RecursionError):
        raise Unauthenticated(
            "ticket: expected the fields of this release; run one release on all daemons"
        ) from None

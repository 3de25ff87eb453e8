"""Mapping of errors to gRPC statuses and back, shared by clients and servers.

A server sends the class of an error in the trailing metadata. Without it, the status code
decides; this is the case for errors that gRPC itself raises."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from asterism_proto.errors import (
    PLACE_KEY,
    REASON_KEY,
    RETRY_AFTER_KEY,
    AsterismError,
    Deadline,
    Internal,
    InvalidRequest,
    Unavailable,
    from_status,
    parse_retry_after,
)

if TYPE_CHECKING:
    import grpc

MAX_DETAILS_BYTES = 2000
"""Maximum bytes of an error's text.

The text travels in a header, at up to three bytes each, and headers end at 8 KiB."""

_NOT_GRPC = re.compile(r"(?i)Expected SETTINGS frame|Failed parsing HTTP/2|http1\.x server")
"""Texts of gRPC about a server that does not speak gRPC, such as an HTTP server."""
_TOO_LARGE = re.compile(r"larger than max \((\d+) vs\.? (\d+)\)")
_CAUSES = (
    (re.compile(r"(?i)connection refused"), "connection refused"),
    (re.compile(r"(?i)no route to host|(network|host) is unreachable"), "host unreachable"),
    (re.compile(r"(?i)\bDNS\b|name resolution|domain name"), "host name not found"),
    (re.compile(r"(?i)handshaker"), "cannot connect"),
    (re.compile(r"(?i)timed? ?out|deadline"), "timed out"),
    (
        re.compile(r"(?i)closed|reset|broken pipe|shutdown|shutting|goaway|cancelled|EOF"),
        "connection closed",
    ),
)
"""Causes of a failed call, recognized in gRPC's text, in the order of precedence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcStatus:
    """Status that ends a call."""

    code: str
    """Name of the status code, such as ``"NOT_FOUND"``."""
    details: str = ""
    metadata: tuple[tuple[str, str], ...] = ()
    """Trailing metadata."""


def status_from_error(error: AsterismError) -> GrpcStatus:
    """Return the status with which a server ends a call."""
    raw = error.message.encode(errors="replace")
    details = (
        raw.decode()
        if len(raw) <= MAX_DETAILS_BYTES
        else raw[:MAX_DETAILS_BYTES].decode(errors="ignore") + " ..."
    )
    place = () if error.place is None else ((PLACE_KEY, error.place.to_json()),)
    wait = ((RETRY_AFTER_KEY, f"{error.retry_after_s:.3f}"),) if error.retry_after_s > 0 else ()
    return GrpcStatus(
        code=error.code,
        details=details,
        metadata=((REASON_KEY, type(error).__name__), *place, *wait),
    )


def error_from_status(status: GrpcStatus, peer: str) -> AsterismError:
    """Return the error that a call ended with.

    Parameters
    ----------
    status : GrpcStatus
        Status as the caller received it.
    peer : str
        Description of the server, such as ``"graphd at 10.0.0.1:9669"``.

    Returns
    -------
    AsterismError
    """
    metadata, code, details = dict(status.metadata), status.code, status.details
    reason = metadata.get(REASON_KEY)
    if reason is None and _NOT_GRPC.search(details):
        error = Unavailable(
            f"{peer}: this port does not speak gRPC; if it is the HTTP port of a daemon, use its "
            "gRPC port (by default 9669 of graphd, 9559 of metad, 9779 of storaged)"
        )
        error.never_arrived = True
        return error
    if reason is None and code in ("UNAVAILABLE", "CANCELLED"):
        error = Unavailable(f"no answer from {peer}{_cause(details)}; is it running there?")
        error.never_arrived = "failed to connect" in details.lower()
        return error
    if reason is None and code == "UNIMPLEMENTED":
        return Internal(
            f"{peer} does not know this call; check that the address is that of the right daemon, "
            "and that both sides are of the same release"
        )
    if reason is None and code == "DEADLINE_EXCEEDED":
        return Deadline(
            f"no answer from {peer} in time; send a smaller request, or set a longer timeout"
        )
    if reason is None and code == "RESOURCE_EXHAUSTED" and (sizes := _TOO_LARGE.search(details)):
        return InvalidRequest(
            f"{peer}: a message of {int(sizes[1]):,} bytes is larger than the maximum of "
            f"{int(sizes[2]):,} bytes; split the request"
        )
    return from_status(
        code,
        details,
        reason,
        metadata.get(PLACE_KEY),
        parse_retry_after(metadata.get(RETRY_AFTER_KEY)),
    )


def _cause(details: str) -> str:
    """Return the cause of a failed call in parentheses; empty if gRPC's text has no known one."""
    return next((f" ({cause})" for pattern, cause in _CAUSES if pattern.search(details)), "")


def error_from_rpc(rpc_error: grpc.RpcError, peer: str) -> AsterismError:
    """Return the error of an exception that grpcio raised; ``peer`` describes the server."""
    trailing: Iterable[Any] = rpc_error.trailing_metadata() or ()
    return error_from_status(
        GrpcStatus(
            code=rpc_error.code().name,
            details=rpc_error.details() or "",
            metadata=tuple((key, value) for key, value in trailing if isinstance(value, str)),
        ),
        peer,
    )

"""Mapping of errors to gRPC statuses and back, shared by clients and servers.

A server sends the class of an error in the trailing metadata. Without it, the status code
decides; this is the case for errors that gRPC itself raises."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from asterism_proto.errors import (
    PLACE_KEY,
    REASON_KEY,
    AsterismError,
    Deadline,
    InvalidRequest,
    Unavailable,
    from_status,
)

if TYPE_CHECKING:
    import grpc

MAX_DETAILS_BYTES = 2000
"""Maximum bytes of an error's text.

The text travels in a header, at up to three bytes each, and headers end at 8 KiB."""


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
    return GrpcStatus(
        code=error.code, details=details, metadata=((REASON_KEY, type(error).__name__), *place)
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
    if reason is None and code in ("UNAVAILABLE", "CANCELLED"):
        error = Unavailable(f"no answer from {peer}: {details}; is it running there?")
        error.never_arrived = "failed to connect" in details.lower()
        return error
    if reason is None and code == "DEADLINE_EXCEEDED":
        return Deadline(f"no answer from {peer} in time; ask for less, or with a longer timeout")
    if reason is None and code == "RESOURCE_EXHAUSTED" and "larger than max" in details:
        return InvalidRequest(f"{peer}: {details}; ask in smaller pieces")
    return from_status(code, details, reason, metadata.get(PLACE_KEY))


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

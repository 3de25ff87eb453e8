"""Errors as gRPC statuses, and gRPC statuses as errors: the one mapping of clients and servers.

A server sends the class of an error in the trailing metadata; the status code decides where there
is none, which is the case of errors that gRPC itself raises."""

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
"""Bytes of an error's text: it travels in a header, at up to three bytes each, and headers end at
8 KiB.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcStatus:
    """The status that ends a call."""

    code: str
    """Name of the status code, such as ``"NOT_FOUND"``."""
    details: str = ""
    metadata: tuple[tuple[str, str], ...] = ()
    """Trailing metadata."""


def status_from_error(error: AsterismError) -> GrpcStatus:
    """Return the status that a server ends a call with."""
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
        As the caller received it.
    peer : str
        The server in words, such as ``"graphd at 10.0.0.1:9669"``.
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
    """Return the error of an exception that grpcio raised; ``peer`` as of `error_from_status`."""
    trailing: Iterable[Any] = rpc_error.trailing_metadata() or ()
    return error_from_status(
        GrpcStatus(
            code=rpc_error.code().name,
            details=rpc_error.details() or "",
            metadata=tuple((key, value) for key, value in trailing if isinstance(value, str)),
        ),
        peer,
    )

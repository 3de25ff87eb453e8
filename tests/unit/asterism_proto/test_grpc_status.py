"""Tests of the mapping of errors to gRPC statuses and back, as one table."""

from __future__ import annotations

import pytest

from asterism_proto.errors import (
    ALL,
    PLACE_KEY,
    REASON_KEY,
    RETRY_AFTER_KEY,
    AsterismError,
    Busy,
    Conflict,
    Corrupt,
    Deadline,
    Internal,
    InvalidRequest,
    NotFound,
    NotReady,
    QuotaExceeded,
    SourceLocation,
    Stale,
    Unavailable,
)
from asterism_proto.grpc_status import (
    MAX_DETAILS_BYTES,
    GrpcStatus,
    error_from_rpc,
    error_from_status,
    status_from_error,
)

PEER = "graphd at 10.0.0.1:9669"
SILENT = "no answer from graphd at 10.0.0.1:9669{}; is it running there?"
LATE = (
    "no answer from graphd at 10.0.0.1:9669 in time; send a smaller request, or set a longer "
    "timeout"
)
NOT_GRPC = (
    "graphd at 10.0.0.1:9669: this port does not speak gRPC; if it is the HTTP port of a daemon, "
    "use its gRPC port (by default 9669 of graphd, 9559 of metad, 9779 of storaged)"
)
REFUSED = (
    "failed to connect to all addresses; last error: UNKNOWN: ipv4:10.0.0.1:9669: Failed to "
    "connect to remote host: connect: Connection refused (111)"
)
HANDSHAKE = (
    "failed to connect to all addresses; last error: UNKNOWN: ipv4:10.0.0.1:9669: tcp handshaker "
    "shutdown"
)
TOO_LARGE = "Received message larger than max (67108865 vs. 67108864)"

# Code, class named in the metadata, details -> class, text.
TABLE: list[tuple[str, str | None, str, type[AsterismError], str]] = [
    ("INVALID_ARGUMENT", "InvalidRequest", "k=-1", InvalidRequest, "k=-1"),
    ("NOT_FOUND", "NotFound", "no space", NotFound, "no space"),
    ("FAILED_PRECONDITION", "NotReady", "no version", NotReady, "no version"),
    ("ALREADY_EXISTS", "Conflict", "the space exists", Conflict, "the space exists"),
    ("RESOURCE_EXHAUSTED", "Busy", "queue full", Busy, "queue full"),
    ("UNAVAILABLE", "Unavailable", "no storaged", Unavailable, "no storaged"),
    ("DEADLINE_EXCEEDED", "Deadline", "time is up", Deadline, "time is up"),
    ("ABORTED", "Stale", "version 3", Stale, "version 3"),
    ("DATA_LOSS", "Corrupt", "block 7", Corrupt, "block 7"),
    ("INTERNAL", "Internal", "id 1f", Internal, "id 1f"),
    # The class takes precedence over the code; the code applies if the class is unknown.
    ("ABORTED", "NotFound", "gone", NotFound, "gone"),
    ("ABORTED", "Renamed", "gone", Stale, "gone"),
    # gRPC's own errors have no class.
    ("UNAVAILABLE", None, "Failed to connect", Unavailable, SILENT.format("")),
    ("UNAVAILABLE", None, REFUSED, Unavailable, SILENT.format(" (connection refused)")),
    ("UNAVAILABLE", None, HANDSHAKE, Unavailable, SILENT.format(" (cannot connect)")),
    (
        "UNAVAILABLE",
        None,
        "DNS resolution failed for graphs:9669: C-ares status is not ARES_SUCCESS",
        Unavailable,
        SILENT.format(" (host name not found)"),
    ),
    ("UNAVAILABLE", None, "Socket closed", Unavailable, SILENT.format(" (connection closed)")),
    ("CANCELLED", None, "Channel closed!", Unavailable, SILENT.format(" (connection closed)")),
    ("UNAVAILABLE", None, "Trying to connect an http1.x server", Unavailable, NOT_GRPC),
    (
        "UNIMPLEMENTED",
        None,
        "Failed parsing HTTP/2 (Expected SETTINGS frame as the first frame, got frame type 80)",
        Unavailable,
        NOT_GRPC,
    ),
    ("DEADLINE_EXCEEDED", None, "Deadline Exceeded", Deadline, LATE),
    (
        "RESOURCE_EXHAUSTED",
        None,
        TOO_LARGE,
        InvalidRequest,
        f"{PEER}: a message of 67,108,865 bytes is larger than the maximum of 67,108,864 bytes; "
        "split the request",
    ),
    ("RESOURCE_EXHAUSTED", None, "too many streams", Busy, "too many streams"),
    (
        "UNIMPLEMENTED",
        None,
        "Method not found!",
        Internal,
        f"{PEER} does not know this call; check that the address is that of the right daemon, and "
        "that both sides are of the same release",
    ),
    ("UNKNOWN", None, "", Internal, "UNKNOWN: "),
]


@pytest.mark.parametrize(("code", "reason", "details", "expected_class", "text"), TABLE)
def test_status_becomes_a_typed_error(
    code: str, reason: str | None, details: str, expected_class: type[AsterismError], text: str
) -> None:
    metadata = () if reason is None else ((REASON_KEY, reason),)
    error = error_from_status(GrpcStatus(code=code, details=details, metadata=metadata), PEER)
    assert (type(error), error.message) == (expected_class, text)


@pytest.mark.parametrize("error_class", ALL)
def test_error_survives_the_wire(error_class: type[AsterismError]) -> None:
    location = SourceLocation(line=2, column=7, expected=("'('",), incomplete=True)
    status = status_from_error(error_class("nodes[3]=-5: expected 0 or more", location))
    error = error_from_status(status, PEER)
    assert status.code == error_class.code
    assert (type(error), error.message, error.place) == (
        error_class,
        "nodes[3]=-5: expected 0 or more",
        location,
    )


def test_error_without_a_place_sends_none() -> None:
    assert status_from_error(NotFound("no space")).metadata == ((REASON_KEY, "NotFound"),)


def test_seconds_before_a_retry_survive_the_wire() -> None:
    status = status_from_error(QuotaExceeded("calls_per_s=100: used up", retry_after_s=0.2304))
    assert (RETRY_AFTER_KEY, "0.230") in status.metadata
    error = error_from_status(status, PEER)
    assert (type(error), error.retry_after_s) == (QuotaExceeded, 0.23)
    assert status_from_error(Busy("full")).metadata == ((REASON_KEY, "Busy"),)


@pytest.mark.parametrize("text", ["", "soon", "-1", "nan", "inf"])
def test_a_damaged_number_of_seconds_is_left_out(text: str) -> None:
    metadata = ((REASON_KEY, "Busy"), (RETRY_AFTER_KEY, text))
    status = GrpcStatus(code="RESOURCE_EXHAUSTED", details="full", metadata=metadata)
    assert error_from_status(status, PEER).retry_after_s == 0.0


def test_damaged_place_is_left_out() -> None:
    metadata = ((REASON_KEY, "InvalidRequest"), (PLACE_KEY, "{"))
    status = GrpcStatus(code="INVALID_ARGUMENT", details="k=-1", metadata=metadata)
    assert error_from_status(status, PEER).place is None


@pytest.mark.parametrize(
    ("details", "never_arrived"),
    [
        ("failed to connect to all addresses", True),
        ("Trying to connect an http1.x server", True),
        ("Socket closed", False),
    ],
)
def test_failed_connection_is_a_request_that_never_arrived(
    details: str, never_arrived: bool
) -> None:
    error = error_from_status(GrpcStatus(code="UNAVAILABLE", details=details), PEER)
    assert isinstance(error, Unavailable)
    assert error.never_arrived is never_arrived


def test_long_text_is_cut_at_a_character() -> None:
    details = status_from_error(Internal("a" + "é" * MAX_DETAILS_BYTES)).details
    assert details == "a" + "é" * ((MAX_DETAILS_BYTES - 1) // 2) + " ..."


class _Code:
    name = "NOT_FOUND"


class _RpcError(Exception):
    """An error of a call that grpcio ended, with metadata of both kinds."""

    def code(self) -> _Code:
        return _Code()

    def details(self) -> str | None:
        return None

    def trailing_metadata(self) -> tuple[tuple[str, str | bytes], ...] | None:
        return (("trace-bin", b"\x00"), (REASON_KEY, "Stale"))


def test_exception_of_grpcio_becomes_a_typed_error() -> None:
    error = error_from_rpc(_RpcError(), PEER)  # type: ignore[arg-type]  # as grpcio's own
    assert type(error) is Stale

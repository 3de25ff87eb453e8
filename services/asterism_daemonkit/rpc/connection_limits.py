"""Limits of the connections to a daemon, so that silent and slow callers do not fill its ports."""

from __future__ import annotations

import resource
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """Limits of each open port of a daemon."""

    grpc_connections: int = 16384
    """Connections that the gRPC port accepts at a time."""
    http_connections: int = 1024
    """Connections that the HTTP port accepts at a time."""
    stream_connections: int = 1024
    """Connections that the binary endpoint accepts at a time."""
    header_timeout_s: float = 10.0
    """Seconds that a caller may take for a handshake, a greeting, or the head of a request."""
    request_timeout_s: float = 60.0
    """Seconds that a caller may take to send the rest of a request."""
    reply_timeout_s: float = 60.0
    """Seconds that a caller may take to accept a reply."""
    idle_timeout_s: float = 600.0
    """Seconds after which an unused connection of gRPC or of the binary endpoint is closed."""
    message_memory_mib: int = 1024
    """MiB that the requests in progress may take, those of gRPC and of the binary endpoint each."""


DEFAULT_LIMITS = ConnectionLimits()


def raise_file_limit() -> int:
    """Raise the limit of open files to the host's maximum, and return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard

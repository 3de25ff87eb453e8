"""Settings of the connections to open ports, shared by the daemons and the embedded service."""

from __future__ import annotations

from pydantic import BaseModel, Field

from asterism_daemonkit.rpc.connection_limits import ConnectionLimits


class ConnectionSettings(BaseModel):
    """Settings of the limits of connections."""

    grpc_connections: int = Field(default=16384, ge=1, le=1 << 20)
    """Connections that the gRPC port accepts at a time, up to three quarters of the open files that
    the process may have. Further ones are closed."""
    http_connections: int = Field(default=1024, ge=1, le=1 << 20)
    """Connections that the HTTP port accepts at a time. A further one takes the place of the
    oldest that has sent no complete request."""
    header_timeout_s: float = Field(default=10.0, ge=0.1, le=3600)
    """Seconds that a caller may take for the handshake of a connection, a greeting, or the head of
    an HTTP request."""
    request_timeout_s: float = Field(default=60.0, ge=0.1, le=3600)
    """Seconds that a caller may take to send the rest of a request."""
    reply_timeout_s: float = Field(default=60.0, ge=0.1, le=3600)
    """Seconds that a caller may take to accept a reply."""
    idle_timeout_s: float = Field(default=600.0, ge=1, le=86400)
    """Seconds after which a connection of gRPC or of the binary endpoint without calls is closed;
    clients open another when they need one."""
    message_memory_mib: int = Field(default=1024, ge=64, le=1 << 20)
    """MiB that requests above 1 MiB may take while they wait or are served, on the gRPC port and on
    the binary endpoint each. A further one is refused as Busy."""

    def connection_limits(self) -> ConnectionLimits:
        """Return the limits of the connections to each open port."""
        return ConnectionLimits(
            grpc_connections=self.grpc_connections,
            http_connections=self.http_connections,
            header_timeout_s=self.header_timeout_s,
            request_timeout_s=self.request_timeout_s,
            reply_timeout_s=self.reply_timeout_s,
            idle_timeout_s=self.idle_timeout_s,
            message_memory_mib=self.message_memory_mib,
        )

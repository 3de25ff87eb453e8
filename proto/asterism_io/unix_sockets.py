"""Abstract Unix sockets between processes of one host, in addition to TCP ports.

Loopback TCP passes the network stack twice. A Unix socket copies data once in each direction,
and carries several times as many bytes a second. A server that listens on loopback therefore
also listens under an abstract name derived from its port, and a client with a loopback address
tries that name first. Abstract names exist only on Linux and within one network namespace, so
they do not connect a host to its containers."""

from __future__ import annotations

import os
import socket
import struct
import sys

_LOOPBACK = ("127.0.0.1", "localhost")
_LISTEN_HOSTS = (*_LOOPBACK, "0.0.0.0", "[::]")
_PROBE_TIMEOUT_S = 0.5
_UCRED = struct.Struct("3i")  # pid, uid, gid


def socket_name(host: str, port: int) -> str:
    """Return the abstract name for a port on ``host``, without its leading zero byte.

    Empty if there is none: on other systems, or if ``host`` does not include loopback."""
    return f"asterism:{port}" if sys.platform == "linux" and host in _LISTEN_HOSTS else ""


def grpc_target(address: str) -> str:
    """Return the best gRPC target for ``host:port``.

    This is the port's Unix socket if a process of this user or of root listens there, else the
    address itself."""
    host, _, port = address.rpartition(":")
    name = socket_name(host, int(port)) if host in _LOOPBACK and port.isdigit() else ""
    return f"unix-abstract:{name}" if name and _is_own_socket(name) else address


def connect(name: str, timeout_s: float) -> socket.socket | None:
    """Connect to the socket of this name.

    Returns None if no process listens, or one of another user than this one and root."""
    if not name or sys.platform != "linux":
        return None
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout_s)
        connection.connect(f"\0{name}")
        _, uid, _ = _UCRED.unpack(
            connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
        )
        if uid in (os.getuid(), 0):
            return connection
    except OSError:  # not on this host, or closed
        pass
    connection.close()
    return None


def listen(name: str) -> socket.socket | None:
    """Return a socket that listens under this name; None if that is not possible."""
    if sys.platform != "linux":
        return None
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(f"\0{name}")
        listener.listen(256)
    except OSError:  # the name is in use
        listener.close()
        return None
    return listener


def _is_own_socket(name: str) -> bool:
    connection = connect(name, _PROBE_TIMEOUT_S)
    if connection is None:
        return False
    connection.close()
    return True

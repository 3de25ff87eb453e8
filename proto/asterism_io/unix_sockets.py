"""The short way between processes of one host: an abstract Unix socket beside a port.

What crosses loopback TCP passes the whole network stack twice; a Unix socket copies it once each
way, and carries several times as many bytes a second. So a door that listens where loopback is
heard also listens under an abstract name that says its port, and who is told a loopback address
looks there first. Such names are Linux's, and of one network namespace: a container is not reached
by its host's."""

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
    """The name beside a port where ``host`` listens, without its leading zero byte; empty where
    there is none.
    """
    return f"asterism:{port}" if sys.platform == "linux" and host in _LISTEN_HOSTS else ""


def grpc_target(address: str) -> str:
    """Where gRPC best reaches ``host:port``: by its Unix socket, where one of this user or of root
    listens, or as it says.
    """
    host, _, port = address.rpartition(":")
    name = socket_name(host, int(port)) if host in _LOOPBACK and port.isdigit() else ""
    return f"unix-abstract:{name}" if name and _is_own_socket(name) else address


def connect(name: str, timeout_s: float) -> socket.socket | None:
    """A connection to the socket of that name; None where nobody listens, or somebody who is
    neither this user nor root.
    """
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
    except OSError:  # it is not on this host, or has gone
        pass
    connection.close()
    return None


def listen(name: str) -> socket.socket | None:
    """A socket that listens under that name; None where that can not be had."""
    if sys.platform != "linux":
        return None
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(f"\0{name}")
        listener.listen(256)
    except OSError:  # somebody has it
        listener.close()
        return None
    return listener


def _is_own_socket(name: str) -> bool:
    connection = connect(name, _PROBE_TIMEOUT_S)
    if connection is None:
        return False
    connection.close()
    return True

"""Listening sockets of the servers: one way to open a port, and one message if that fails."""

from __future__ import annotations

import errno
import os
import socket

from asterism_proto.errors import InvalidRequest, Unavailable

BACKLOG = 256
"""Maximum number of connections that wait to be accepted."""

_REASONS = {
    errno.EADDRINUSE: "another process listens on this port; stop it, or choose another port",
    errno.EADDRNOTAVAIL: "this host has no such address; choose one of its own, or 0.0.0.0",
    errno.EACCES: "this user may not open the port; choose a port of 1024 or above",
}


def listen(address: str) -> socket.socket:
    """Return a socket that listens on ``host:port``; port 0 is any free port.

    Raises
    ------
    Unavailable
        If the port is taken, or cannot be opened for another reason.
    InvalidRequest
        If the address is malformed.
    """
    host, port = split_address(address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host.strip("[]"), port), family=family, backlog=BACKLOG)
    except OSError as error:
        number = error.errno or 0
        if number in (socket.EAI_NONAME, socket.EAI_AGAIN):  # `create_server` keeps the number
            reason = "host name not found; use an address of this host"
        else:
            reason = _REASONS.get(number) or os.strerror(number)
        raise listen_error(address, reason) from error


def listen_error(address: str, reason: str) -> Unavailable:
    """Return the error of a port that cannot be opened."""
    return Unavailable(f"cannot listen on {address}: {reason}")


def split_address(address: str) -> tuple[str, int]:
    """Split ``host:port`` into a pair; InvalidRequest for another form."""
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdigit() or int(port) > 65535:
        raise InvalidRequest(f"address {address!r}: expected host:port, such as 127.0.0.1:9669")
    return host, int(port)

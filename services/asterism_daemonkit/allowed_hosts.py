"""By which names an HTTP door may be called: what keeps a page whose name was made to lead here
from being taken for one of ours.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from ipaddress import ip_address

ANY_HOST = "*"


class AllowedHosts:
    """The names of a door.

    Parameters
    ----------
    names : iterable of str
        Besides those that it always has; ``.example.com`` is every name below example.com, ``*`` is
        any.
    advertised : str
        host:port under which others reach the daemon; empty: none.

    Notes
    -----
    It always has IP addresses, ``localhost``, names without a dot (of compose, of a cluster's
    services, of hosts nearby), this host's own name and the advertised one. Nobody can make these
    lead here from a name of theirs."""

    def __init__(self, names: Iterable[str] = (), advertised: str = "") -> None:
        patterns = {name.strip().lower().rstrip(".") for name in names} - {""}
        self._any = ANY_HOST in patterns
        self._exact = patterns | {
            _host_name(advertised),
            socket.gethostname().lower(),
            socket.getfqdn().lower(),
        }
        self._suffixes = tuple(name for name in patterns if name.startswith("."))

    def allows(self, host: str) -> bool:
        """Whether a ``Host`` header names this door; what is no browser may leave it out."""
        name = _host_name(host)
        if (
            self._any
            or not host
            or "." not in name
            or name in self._exact
            or name.endswith((".localhost", *self._suffixes))
        ):
            return True
        try:
            ip_address(name)
        except ValueError:
            return False
        return True


def _host_name(host: str) -> str:
    """The name of ``name:port`` or ``[address]:port``."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower().rstrip(".")

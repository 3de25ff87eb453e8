"""Host names that an HTTP server accepts, as a protection against DNS rebinding."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from ipaddress import ip_address

ANY_HOST = "*"


class AllowedHosts:
    """Set of host names under which an HTTP server may be called.

    Parameters
    ----------
    names : iterable of str
        Further names. ``.example.com`` allows every name below example.com, ``*`` any name.
    advertised : str
        host:port under which other hosts reach the daemon; empty for none.

    Notes
    -----
    IP addresses, ``localhost``, names without a dot (of compose, of a cluster's services, of
    nearby hosts), this host's own name and the advertised name are always allowed. An attacker
    cannot point these names here from a domain of their own."""

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
        """Return whether a ``Host`` header is allowed; clients other than browsers may omit it."""
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
    """Return the host of ``name:port`` or ``[address]:port``, in lower case."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower().rstrip(".")

"""Loopback addresses: those that only processes of this host can connect to."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, ip_address

_NETWORK = IPv4Network("127.0.0.0/8")
_ADDRESS = IPv6Address("::1")


def is_loopback_host(host: str) -> bool:
    """Return whether a host is ``localhost`` or a loopback address; no other name is looked up.

    Parameters
    ----------
    host : str
        Name or address; an IPv6 address with or without brackets.
    """
    try:
        address: IPv4Address | IPv6Address = ip_address(host.strip("[]"))
    except ValueError:
        return host.lower() == "localhost"
    return address in _NETWORK if isinstance(address, IPv4Address) else address == _ADDRESS

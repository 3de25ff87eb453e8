"""Exposure of a daemon: the ports that other hosts reach, and what they need to be opened.

A port on a loopback address needs nothing. Every other port needs TLS and access control, unless
the setting ``insecure`` says that it may do without them."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Mapping, Sequence
from typing import Protocol

from asterism_daemonkit.listening import split_address
from asterism_io.loopback import is_loopback_host
from asterism_proto.errors import InvalidRequest

logger = logging.getLogger(__name__)

INSECURE_VARIABLE = "ASTERISM_INSECURE"
"""Environment variable of the setting ``insecure`` of every daemon and of `asterism serve`."""


class PortProtection(Protocol):
    """Settings that protect the ports of a daemon."""

    @property
    def insecure(self) -> bool:
        """Open ports that other hosts reach even without TLS and access control."""

    @property
    def tls_cert(self) -> str:
        """PEM file of the certificate; empty: no TLS."""

    @property
    def cluster_key_file(self) -> str:
        """File with the keys of the cluster; empty: no access control."""


def insecure_addresses(addresses: Mapping[str, str], protection: PortProtection) -> list[str]:
    """Return the addresses of ports that other hosts reach without TLS or access control.

    Parameters
    ----------
    addresses : mapping
        host:port of each port by the name of its setting; empty for a port that is not opened.
    protection : PortProtection
        Settings of the daemon.

    Raises
    ------
    InvalidRequest
        If there is such a port, and the setting ``insecure`` does not permit it.
    """
    missing = missing_protection(protection)
    exposed = {
        name: address
        for name, address in (addresses.items() if missing else ())
        if address and not is_loopback(address)
    }
    if exposed and not protection.insecure:
        name, address = next(iter(exposed.items()))
        *first, last = [setting for settings in missing.values() for setting in settings]
        remedy = f"{', '.join(first)} and {last}" if first else last
        raise InvalidRequest(
            f"{name}={address!r}: expected an address of the loopback interface, as this one can "
            f"be reached from other hosts without {' and '.join(missing)}; set {remedy}, or permit "
            f"it with --insecure ({INSECURE_VARIABLE}=true)"
        )
    return list(exposed.values())


def missing_protection(protection: PortProtection) -> dict[str, list[str]]:
    """Return the settings that would complete the protection of ports, by what is missing."""
    missing = {}
    if not protection.tls_cert:
        missing["TLS"] = ["tls_cert", "tls_key"]
    if not protection.cluster_key_file:
        missing["access control"] = ["cluster_key_file"]
    return missing


def log_insecure(addresses: Sequence[str], protection: PortProtection) -> None:
    """Log a warning if ports can be reached from other hosts without TLS or access control."""
    if addresses:
        logger.warning(
            "ports_insecure",
            extra={
                "addresses": ", ".join(dict.fromkeys(addresses)),
                "tls": bool(protection.tls_cert),
                "access_control": bool(protection.cluster_key_file),
            },
        )


def is_loopback(address: str) -> bool:
    """Return whether only processes of this host can connect to ``host:port``.

    A host name is looked up: all its addresses must be loopback ones. A name that is not found
    counts as reachable."""
    host, _ = split_address(address)
    if is_loopback_host(host):
        return True
    try:
        found = socket.getaddrinfo(host.strip("[]"), None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    return all(is_loopback_host(str(entry[4][0])) for entry in found)


def insecure_from_environment() -> dict[str, str]:
    """Return the setting ``insecure`` from the variable that all daemons share, if it is set."""
    value = os.environ.get(INSECURE_VARIABLE, "")  # noqa: TID251 - a setting, read once
    return {"insecure": value} if value else {}

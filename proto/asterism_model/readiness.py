"""Readiness of a service: the hosts and partitions that are unavailable, as text.

`asterism status` and the web pages of graphd print the same sentences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPresence:
    """Daemon of a cluster, and whether it is online."""

    uuid: str
    role: str
    """``storaged`` or ``graphd``."""
    address: str
    online: bool
    parts: int
    """Number of partitions that it holds."""


def offline_partitions(
    hosts: Sequence[HostPresence], spaces: Mapping[str, Sequence[Sequence[str]]]
) -> dict[str, list[int]]:
    """Return the partitions without a host online, by space; spaces without any are absent.

    Parameters
    ----------
    hosts : sequence of HostPresence
    spaces : mapping
        Uuids of the hosts of each partition, by the name of the space.
    """
    online = {host.uuid for host in hosts if host.online}
    offline = {
        name: [part for part, part_hosts in enumerate(parts) if not online & set(part_hosts)]
        for name, parts in spaces.items()
    }
    return {name: parts for name, parts in offline.items() if parts}


def readiness_problems(
    hosts: Sequence[HostPresence], spaces: Mapping[str, Sequence[Sequence[str]]]
) -> list[str]:
    """Return why partitions are unavailable; an empty list means the service is ready.

    The arguments are those of `offline_partitions`. Without hosts the list is empty: a folder that
    is opened read-only has every partition in this process.
    """
    if not hosts:
        return []
    problems = [
        f"{host.role} {host.address} is offline" for host in hosts if not host.online and host.parts
    ]
    problems += [
        f"space {name}: {len(parts)} of {len(spaces[name])} partitions have no host online"
        for name, parts in offline_partitions(hosts, spaces).items()
    ]
    return problems

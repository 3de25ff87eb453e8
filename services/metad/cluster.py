"""Who is there: daemons by uuid, their leases, addresses and what they hold; a quiet room that is told the time.

`Cluster` answers with what a host becomes; whoever asked (`metad.attendance`) writes that down where it must last, then
puts it in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from asterism_proto.errors import Conflict, InvalidRequest, Stale
from metad.ids import HostId, LoadId, SpaceId


class Role(Enum):
    """What a daemon does; the numbers are those of the wire."""

    STORAGED = 1
    """It holds parts, builds and draws."""
    GRAPHD = 2
    """It answers trainers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """What a daemon says of itself in a beat."""

    uuid: HostId
    role: Role
    incarnation: int
    address: str
    http_address: str
    held: frozenset[tuple[SpaceId, int]] = frozenset()
    """(space, version) that it can draw from (storaged) or has seen (graphd)."""
    free_bytes: int = 0
    held_bytes: int = 0
    """That its folder takes of the disk; 0: not known."""
    start: int = 0
    """Random number of the process; 0: not said."""
    dropped_loads: frozenset[LoadId] = frozenset()
    """Of the abandoned loads that it was told of: those that it holds no block of (storaged)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A daemon as metad knows it."""

    uuid: HostId
    role: Role
    address: str
    http_address: str
    incarnation: int
    """Larger at each of its starts; an older one is fenced."""
    online: bool
    last_beat_ms: int
    held: frozenset[tuple[SpaceId, int]] = frozenset()
    free_bytes: int = 0
    held_bytes: int = 0
    start: int = 0
    """Random number of its process; 0: not known."""

    def matters(self) -> tuple[str, str, int, bool]:
        """What others are told of it: while this stays, a beat changes nothing."""
        return (self.address, self.http_address, self.incarnation, self.online)


class Cluster:
    """Every daemon that ever beat, less the graphds that are long gone."""

    def __init__(self, hosts: Iterable[Host], *, lease_ms: int, patience_ms: int, now_ms: int) -> None:
        """Take up ``hosts`` as they were left; those that were online get a full lease from now.

        ``patience_ms`` is how long a graphd must have known a version before nothing that it began earlier is under way.
        """
        self._lease_ms = lease_ms
        self._patience_ms = patience_ms
        self._followed: dict[HostId, dict[SpaceId, list[tuple[int, int]]]] = {}
        """graphd -> space -> (version, when it was first heard to route by it), ascending; from its first beat on."""
        self._hosts = {host.uuid: host for host in hosts}
        self._lease_end_ms = {host.uuid: now_ms + lease_ms for host in self._hosts.values() if host.online}

    @property
    def hosts(self) -> Mapping[HostId, Host]:
        """By uuid."""
        return self._hosts

    def get(self, uuid: HostId) -> Host | None:
        """The host, if it ever beat."""
        return self._hosts.get(uuid)

    def online(self, role: Role) -> list[Host]:
        """Those that are there, by uuid."""
        return sorted((host for host in self._hosts.values() if host.online and host.role is role), key=lambda host: host.uuid)

    def check(self, uuid: HostId, role: Role, incarnation: int, start: int = 0) -> None:
        """Refuse a sender that another one with its uuid has followed (Stale) or that claims another role (InvalidRequest).

        Two processes with one uuid and one incarnation come from a copied folder: the first one is heard while it is online.
        """
        known = self._hosts.get(uuid)
        if known is None:
            return
        if known.role is not role:
            raise InvalidRequest(
                f"uuid={uuid}: belongs to a {known.role.name.lower()}, not to a {role.name.lower()}; give each daemon its own data folder"
            )
        if incarnation < known.incarnation:
            # A graphd counts its starts by the wall clock, which may have been set back, and holds nothing.
            if role is Role.GRAPHD and start and known.start and start != known.start:
                if not known.online:
                    return
                raise Conflict(
                    f"uuid={uuid}: a graphd at {known.address} has this uuid and the larger incarnation {known.incarnation}, this one has "
                    f"{incarnation}; it is accepted once the lease of the other is over; end one of the two if both run"
                )
            raise Stale(f"uuid={uuid}, incarnation={incarnation}: expected {known.incarnation}, which has started since; stop this process")
        copied = incarnation == known.incarnation and start != known.start and bool(start and known.start)
        if copied and known.online:
            raise Conflict(
                f"uuid={uuid}: already used by the process at {known.address}; one data folder is a copy of the other: "
                "stop one of the two processes and remove its data folder"
            )

    def after(self, word: Word, now_ms: int) -> Host:
        """What the sender of ``word`` becomes; Stale if it is fenced."""
        self.check(word.uuid, word.role, word.incarnation, word.start)
        return Host(
            uuid=word.uuid,
            role=word.role,
            address=word.address,
            http_address=word.http_address,
            incarnation=word.incarnation,
            online=True,
            last_beat_ms=now_ms,
            held=word.held,
            free_bytes=word.free_bytes,
            held_bytes=word.held_bytes,
            start=word.start,
        )

    def lapsed(self, now_ms: int) -> list[Host]:
        """What those become whose lease is over."""
        return [replace(self._hosts[uuid], online=False) for uuid, end in sorted(self._lease_end_ms.items()) if end <= now_ms]

    def put(self, host: Host, now_ms: int) -> None:
        """Take on what a host has become; being online starts its lease anew."""
        if host.role is Role.GRAPHD:
            self._follow(host, now_ms)
        self._hosts[host.uuid] = host
        if host.online:
            self._lease_end_ms[host.uuid] = now_ms + self._lease_ms
        else:
            self._lease_end_ms.pop(host.uuid, None)

    def _follow(self, host: Host, now_ms: int) -> None:
        """Note since when a graphd routes by which versions; one that restarted or went away has to say so anew."""
        known = self._hosts.get(host.uuid)
        if not host.online or known is None or known.incarnation != host.incarnation:
            self._followed.pop(host.uuid, None)
        if not host.online:
            return
        steps = self._followed.setdefault(host.uuid, {})
        for space_id in steps.keys() - {space for space, _ in host.held}:
            del steps[space_id]
        for space_id, version in host.held:
            mine = steps.setdefault(space_id, [])
            if not mine or version > mine[-1][0]:
                mine.append((version, now_ms))
            while len(mine) > 1 and mine[1][1] <= now_ms - self._patience_ms:
                del mine[0]

    def long_gone(self, role: Role, before_ms: int) -> list[HostId]:
        """Hosts of a role that are offline and were last heard before ``before_ms``."""
        return sorted(host.uuid for host in self._hosts.values() if host.role is role and not host.online and host.last_beat_ms < before_ms)

    def remove(self, uuid: HostId) -> None:
        """Forget a host."""
        self._hosts.pop(uuid, None)
        self._followed.pop(uuid, None)
        self._lease_end_ms.pop(uuid, None)

    def left_behind(self, space_id: SpaceId, version: int, now_ms: int) -> bool:
        """Whether every graphd that is there has routed by something newer than ``version`` of a space for long enough.

        One that was there when metad stopped, and has not spoken since, may route by anything.
        """
        for host in self.online(Role.GRAPHD):
            steps = self._followed.get(host.uuid)
            if steps is None:
                return False
            since = next((since for number, since in steps.get(space_id, ()) if number > version), None)
            if space_id in steps and (since is None or since > now_ms - self._patience_ms):
                return False
        return True

"""The daemons of a cluster: their leases, addresses and the versions that they hold.

Pure: the time is an argument. `ClusterMembership` returns the new record of a host. The caller
(`metad.host_registry`) stores the record if it must last, then puts it into the cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from asterism_proto.errors import Conflict, InvalidRequest, Stale
from metad.model.hosts import DaemonRole, HeartbeatReport, Host
from metad.model.ids import HostId, SpaceId


class ClusterMembership:
    """All known daemons, except graphds that were removed after a long silence."""

    def __init__(self, hosts: Iterable[Host], *, lease_ms: int, drain_ms: int, now_ms: int) -> None:
        """Start from stored ``hosts``; those that were online get a full lease from now.

        After a graphd has known a version for ``drain_ms``, no request that it began earlier is
        still running."""
        self._lease_ms = lease_ms
        self._drain_ms = drain_ms
        self._routed_versions: dict[HostId, dict[SpaceId, list[tuple[int, int]]]] = {}
        """graphd -> space -> (version, time of the first heartbeat that reported it), ascending."""
        self._hosts = {host.uuid: host for host in hosts}
        self._lease_end_ms = {
            host.uuid: now_ms + lease_ms for host in self._hosts.values() if host.online
        }

    @property
    def hosts(self) -> Mapping[HostId, Host]:
        """Hosts by uuid."""
        return self._hosts

    def get(self, uuid: HostId) -> Host | None:
        """Return a host; None if it never sent a heartbeat."""
        return self._hosts.get(uuid)

    def online(self, role: DaemonRole) -> list[Host]:
        """Return the online hosts of a role, by uuid."""
        return sorted(
            (host for host in self._hosts.values() if host.online and host.role is role),
            key=lambda host: host.uuid,
        )

    def stored_bytes(self) -> dict[SpaceId, int]:
        """Return the disk usage of each space on all storageds, as their last heartbeats say."""
        total: Counter[SpaceId] = Counter()
        for host in self._hosts.values():
            if host.role is DaemonRole.STORAGED and host.resources is not None:
                total.update(dict(host.resources.space_bytes))
        return total

    def check_sender(
        self, uuid: HostId, role: DaemonRole, incarnation: int, start: int = 0
    ) -> None:
        """Refuse a sender that is not the current process of its uuid.

        Two processes with the same uuid and incarnation come from a copied folder. The first one is
        accepted while it is online.

        Raises
        ------
        Stale
            If a later start of the daemon has reported.
        InvalidRequest
            If the uuid belongs to a daemon of another role.
        Conflict
            If another process with this uuid is online.
        """
        current = self._hosts.get(uuid)
        if current is None:
            return
        if current.role is not role:
            raise InvalidRequest(
                f"uuid={uuid}: belongs to a {current.role.name.lower()}, not to a "
                f"{role.name.lower()}; give each daemon its own data folder"
            )
        if incarnation < current.incarnation:
            # A graphd derives its incarnation from the wall clock, which may have been set back. It
            # holds no data, so a smaller incarnation is accepted once the other is offline.
            if (
                role is DaemonRole.GRAPHD
                and start
                and current.start_id
                and start != current.start_id
            ):
                if not current.online:
                    return
                raise Conflict(
                    f"uuid={uuid}: a graphd at {current.address} has this uuid and the larger "
                    f"incarnation {current.incarnation}, this one has {incarnation}; it is "
                    "accepted when the lease of the other has expired; stop one of the two if "
                    "both run"
                )
            raise Stale(
                f"uuid={uuid}, incarnation={incarnation}: expected {current.incarnation}, "
                "because the daemon has restarted since; stop this process"
            )
        is_copy = (
            incarnation == current.incarnation
            and start != current.start_id
            and bool(start and current.start_id)
        )
        if is_copy and current.online:
            raise Conflict(
                f"uuid={uuid}: already used by the process at {current.address}; one data "
                "folder is a copy of the other: "
                "stop one of the two processes and remove its data folder"
            )

    def host_after(self, heartbeat: HeartbeatReport, now_ms: int) -> Host:
        """Return the record of the sender of a heartbeat; Stale if it is fenced."""
        self.check_sender(heartbeat.uuid, heartbeat.role, heartbeat.incarnation, heartbeat.start_id)
        return Host(
            uuid=heartbeat.uuid,
            role=heartbeat.role,
            address=heartbeat.address,
            http_address=heartbeat.http_address,
            incarnation=heartbeat.incarnation,
            online=True,
            last_heartbeat_ms=now_ms,
            held_versions=heartbeat.held_versions,
            free_bytes=heartbeat.free_bytes,
            held_bytes=heartbeat.held_bytes,
            start_id=heartbeat.start_id,
            resources=heartbeat.resources,
        )

    def expired_hosts(self, now_ms: int) -> list[Host]:
        """Return offline records of the hosts that have an expired lease."""
        return [
            replace(self._hosts[uuid], online=False)
            for uuid, end in sorted(self._lease_end_ms.items())
            if end <= now_ms
        ]

    def next_lease_end_ms(self) -> int | None:
        """Return when the next lease ends if it is not renewed; None if no host is online."""
        return min(self._lease_end_ms.values(), default=None)

    def put(self, host: Host, now_ms: int) -> None:
        """Set the record of a host; if it is online, a new lease starts."""
        if host.role is DaemonRole.GRAPHD:
            self._track_versions(host, now_ms)
        self._hosts[host.uuid] = host
        if host.online:
            self._lease_end_ms[host.uuid] = now_ms + self._lease_ms
        else:
            self._lease_end_ms.pop(host.uuid, None)

    def _track_versions(self, host: Host, now_ms: int) -> None:
        """Record since when a graphd routes by which versions.

        The record starts over when the graphd restarts or goes offline."""
        previous = self._hosts.get(host.uuid)
        if not host.online or previous is None or previous.incarnation != host.incarnation:
            self._routed_versions.pop(host.uuid, None)
        if not host.online:
            return
        versions_by_space = self._routed_versions.setdefault(host.uuid, {})
        for space_id in versions_by_space.keys() - {space for space, _ in host.held_versions}:
            del versions_by_space[space_id]
        for space_id, version in host.held_versions:
            versions = versions_by_space.setdefault(space_id, [])
            if not versions or version > versions[-1][0]:
                versions.append((version, now_ms))
            while len(versions) > 1 and versions[1][1] <= now_ms - self._drain_ms:
                del versions[0]

    def offline_since(self, role: DaemonRole, before_ms: int) -> list[HostId]:
        """Return hosts of a role that are offline and were last heard before ``before_ms``."""
        return sorted(
            host.uuid
            for host in self._hosts.values()
            if host.role is role and not host.online and host.last_heartbeat_ms < before_ms
        )

    def remove(self, uuid: HostId) -> None:
        """Remove a host."""
        self._hosts.pop(uuid, None)
        self._routed_versions.pop(uuid, None)
        self._lease_end_ms.pop(uuid, None)

    def is_superseded(self, space_id: SpaceId, version: int, now_ms: int) -> bool:
        """Return whether all online graphds have routed by newer versions for ``drain_ms``.

        A graphd that was online when metad stopped, and has sent no heartbeat since, may route
        by any version."""
        for host in self.online(DaemonRole.GRAPHD):
            versions_by_space = self._routed_versions.get(host.uuid)
            if versions_by_space is None:
                return False
            since = next(
                (
                    since
                    for number, since in versions_by_space.get(space_id, ())
                    if number > version
                ),
                None,
            )
            if space_id in versions_by_space and (since is None or since > now_ms - self._drain_ms):
                return False
        return True

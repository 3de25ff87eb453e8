"""Health of the cluster in one sentence, and the use of its disks."""

from __future__ import annotations

from collections.abc import Sequence

from asterism_model.readiness import HostPresence, offline_partitions, readiness_problems
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from graphd.pages import views
from graphd.pages.plot_data import format_ranges

MIN_FREE_SHARE = 0.1
"""Share of a disk that should be free; a build may need as much as the space itself."""
NEARLY_FULL_SHARE = 0.85
"""Share of a disk or of memory above which the overview shows its use in amber."""


def cluster_health(
    hosts: Sequence[metad_pb.Host],
    spaces: Sequence[common_pb.Space],
    *,
    daemon: str,
    missing: Sequence[str],
    catalog_fault: str,
) -> views.Health:
    """Return the health of the cluster.

    It is red if partitions are unavailable: the sentence is then that of `asterism status`. It is
    amber if all are available and something else needs attention.

    Parameters
    ----------
    hosts : sequence of Host
    spaces : sequence of Space
    daemon : str
        Name of the daemon that serves the pages.
    missing : sequence of str
        Reasons why that daemon cannot serve yet.
    catalog_fault : str
        Reason why daemons do not follow metad's catalog; empty if they do.
    """
    presences = [_presence(host) for host in hosts]
    part_hosts = {space.name: [list(part.hosts) for part in space.parts] for space in spaces}
    problems = readiness_problems(presences, part_hosts)
    if catalog_fault:
        problems.insert(0, catalog_fault)
    warnings = [f"this {daemon}: {reason}" for reason in missing]
    warnings += [
        f"{presence.role} {presence.address} is offline"
        for presence in presences
        if not presence.online and not presence.parts
    ]
    warnings += [
        f"the disk of {', '.join(disk.hosts)} is {1 - disk.free_bytes / disk.total_bytes:.0%} full"
        for disk in disk_rows(hosts)
        if disk.total_bytes and disk.free_bytes < MIN_FREE_SHARE * disk.total_bytes
    ]
    offline = offline_partitions(presences, part_hosts) if hosts else {}
    if problems:
        level: views.HealthLevel = "red"
        sentence = f"not ready: {'; '.join([*problems, *warnings])}"
    elif warnings:
        level, sentence = "amber", f"ready, but {'; '.join(warnings)}"
    else:
        level, sentence = "green", f"ready: {_summary(hosts, spaces)}"
    return views.Health(
        level=level,
        sentence=sentence,
        offline=[
            views.OfflinePartitions(
                space=name,
                count=len(parts),
                parts=len(part_hosts[name]),
                which=format_ranges(parts),
            )
            for name, parts in offline.items()
        ],
    )


def disk_rows(hosts: Sequence[metad_pb.Host]) -> list[views.DiskRow]:
    """Return the disks of the storageds.

    Storageds on one disk share a row. A storaged that does not report its disk has its own.
    """
    groups: dict[str, list[metad_pb.Host]] = {}
    for host in hosts:
        if host.role == metad_pb.STORAGED:
            groups.setdefault(host.resources.disk_id or host.uuid, []).append(host)
    rows = []
    for group in groups.values():
        newest = max(group, key=lambda host: host.last_heartbeat_ms)
        rows.append(
            views.DiskRow(
                hosts=sorted(display_address(host.address) for host in group),
                held_bytes=sum(host.held_bytes for host in group),
                free_bytes=newest.free_bytes,
                total_bytes=newest.resources.disk_total_bytes,
                nearly_full=_is_nearly_full(
                    newest.resources.disk_total_bytes - newest.free_bytes,
                    newest.resources.disk_total_bytes,
                ),
            )
        )
    return sorted(rows, key=lambda row: row.hosts)


def memory_rows(hosts: Sequence[metad_pb.Host], limit: int) -> list[views.MemoryRow]:
    """Return the online daemons that use the largest shares of their memory, largest first.

    Daemons that do not report their memory are left out. Those of one process share a row.
    """
    found: dict[tuple[str, str], views.MemoryRow] = {}
    for host in hosts:
        if not host.online or not host.resources.memory_bytes:
            continue
        row = views.MemoryRow(
            role="all"
            if host.address.endswith(":0")
            else "storaged"
            if host.role == metad_pb.STORAGED
            else "graphd",
            address=display_address(host.address),
            used_bytes=host.resources.memory_bytes,
            total_bytes=host.resources.memory_total_bytes,
            nearly_full=_is_nearly_full(
                host.resources.memory_bytes, host.resources.memory_total_bytes
            ),
        )
        found[row.role, row.address] = row
    rows = list(found.values())
    rows.sort(
        key=lambda row: (
            -row.used_bytes / row.total_bytes if row.total_bytes else 0.0,
            row.role,
            row.address,
        )
    )
    return rows[:limit]


def _is_nearly_full(used: int, total: int) -> bool:
    return used > NEARLY_FULL_SHARE * total > 0


def space_usage(hosts: Sequence[metad_pb.Host]) -> dict[int, int]:
    """Return the disk usage of each space over all storageds in bytes, by space id."""
    used: dict[int, int] = {}
    for host in hosts:
        for usage in host.resources.spaces:
            used[usage.space_id] = used.get(usage.space_id, 0) + usage.bytes
    return used


def display_address(address: str) -> str:
    """Return the address of a daemon; one without a port of its own is in this process."""
    return "in this process" if address.endswith(":0") else address


def _presence(host: metad_pb.Host) -> HostPresence:
    return HostPresence(
        uuid=host.uuid,
        role="storaged" if host.role == metad_pb.STORAGED else "graphd",
        address=display_address(host.address),
        online=host.online,
        parts=host.parts,
    )


def _summary(hosts: Sequence[metad_pb.Host], spaces: Sequence[common_pb.Space]) -> str:
    storageds = sum(host.role == metad_pb.STORAGED for host in hosts)
    graphds = sum(host.role == metad_pb.GRAPHD for host in hosts)
    partitions = sum(len(space.parts) for space in spaces)
    return f"{_plural(storageds, 'storaged')} and {_plural(graphds, 'graphd')} are online; " + (
        f"all {partitions:,} partitions of {_plural(len(spaces), 'space')} have a host online"
        if spaces
        else "there is no space yet"
    )


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"

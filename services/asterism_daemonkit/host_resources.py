"""Measurement of a daemon's resource use: processor, memory and disk, for display on pages."""

from __future__ import annotations

import hashlib
import os
import platform
import resource
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

from asterism_io.available_memory import total_bytes
from asterism_io.control_groups import available_cores
from asterism_proto.v1 import metad_pb2 as metad_pb

_STATM, _BOOT_ID = Path("/proc/self/statm"), Path("/proc/sys/kernel/random/boot_id")
_INTERVAL_S = 5.0
"""Shortest interval between two measurements; heartbeats within it repeat the last one.

Measuring on each heartbeat would take half as much of an idle daemon's time as the heartbeat."""


class ResourceMeter:
    """Measures the resource use of this process and of the disk that holds its folder.

    Processes that a daemon starts, such as those of builds, are not included.

    Parameters
    ----------
    folder : Path, optional
        Data folder; None if the daemon has none.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._started_ms = time.time_ns() // 1_000_000
        self._memory_total = total_bytes() or 0
        self._cpu_count = available_cores()
        self._measured_at, self._cpu_s = time.monotonic(), time.process_time()
        self._last: metad_pb.HostResources | None = None

    def measure(self, space_bytes: Mapping[int, int] | None = None) -> metad_pb.HostResources:
        """Return the resource use of the last seconds.

        ``space_bytes`` has the disk usage of each space."""
        now, cpu_s = time.monotonic(), time.process_time()
        elapsed_s = now - self._measured_at
        if self._last is not None and elapsed_s < _INTERVAL_S:
            return self._last
        cpu_cores = (cpu_s - self._cpu_s) / elapsed_s if elapsed_s > 0 else 0.0
        self._measured_at, self._cpu_s = now, cpu_s
        resources = metad_pb.HostResources(
            cpu_cores=cpu_cores,
            cpu_count=self._cpu_count,
            memory_bytes=_resident_bytes(),
            memory_total_bytes=self._memory_total,
            started_ms=self._started_ms,
            spaces=[
                metad_pb.SpaceUsage(space_id=space_id, bytes=used)
                for space_id, used in sorted((space_bytes or {}).items())
            ],
        )
        if self._folder is not None:
            resources.disk_id = disk_id(self._folder)
            resources.disk_total_bytes = shutil.disk_usage(self._folder).total
        self._last = resources
        return resources


def disk_id(folder: Path) -> str:
    """Return an identifier of the disk that holds a folder.

    It is equal for all folders on one disk of one machine, in containers too: they share the boot
    id of the kernel. It differs between machines.
    """
    try:
        machine = _BOOT_ID.read_text().strip()
    except OSError:
        machine = platform.node()
    return hashlib.sha256(f"{machine} {folder.stat().st_dev}".encode()).hexdigest()[:16]


def _resident_bytes() -> int:
    """Return the resident memory of this process; where the kernel does not say, its peak."""
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

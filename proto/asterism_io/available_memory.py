"""Measurement of the memory that is available to this process."""

from __future__ import annotations

from pathlib import Path

from asterism_io.control_groups import control_groups

_MEMINFO = Path("/proc/meminfo")


def available_bytes() -> int | None:
    """Return the bytes of memory that this process may still allocate; None if not known.

    This is the minimum over the machine, the process's control group and the groups above it.
    File pages count as available, because the kernel reclaims them on demand."""
    candidates = []
    if _MEMINFO.is_file():
        candidates += [
            int(line.split()[1]) * 1024
            for line in _MEMINFO.read_text().splitlines()
            if line.startswith("MemAvailable:")
        ]
    for group in control_groups("memory"):
        for limit, used in (
            ("memory.max", "memory.current"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):
            try:
                headroom = int((group / limit).read_text()) - int((group / used).read_text())
                stat = dict(
                    line.split() for line in (group / "memory.stat").read_text().splitlines()
                )
            except (OSError, ValueError):  # no such group, or "max"
                continue
            candidates.append(
                headroom + sum(int(stat.get(name, 0)) for name in ("active_file", "inactive_file"))
            )
    return min(candidates, default=None)


def total_bytes() -> int | None:
    """Return the memory that this process may use in bytes; None if not known.

    This is the memory of the machine, or the lowest limit of the process's control groups."""
    candidates = []
    if _MEMINFO.is_file():
        candidates += [
            int(line.split()[1]) * 1024
            for line in _MEMINFO.read_text().splitlines()
            if line.startswith("MemTotal:")
        ]
    for group in control_groups("memory"):
        for limit in ("memory.max", "memory.limit_in_bytes"):
            try:
                candidates.append(int((group / limit).read_text()))
            except (OSError, ValueError):  # no such group, or "max"
                continue
    return min(candidates, default=None)

"""How much memory there is to be had."""

from __future__ import annotations

from pathlib import Path

_MEMINFO, _GROUPS = Path("/proc/meminfo"), Path("/sys/fs/cgroup")


def available_bytes() -> int | None:
    """What this process may still take: of the machine, and of its control group; None where nobody says."""
    found = []
    if _MEMINFO.is_file():
        found += [int(line.split()[1]) * 1024 for line in _MEMINFO.read_text().splitlines() if line.startswith("MemAvailable:")]
    for limit, used in (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes")):
        try:
            found.append(int((_GROUPS / limit).read_text()) - int((_GROUPS / used).read_text()))
        except (OSError, ValueError):  # no such group, or "max"
            continue
    return min(found, default=None)

"""How much memory there is to be had."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_MEMINFO, _CGROUP_ROOT, _OWN_CGROUPS = (
    Path("/proc/meminfo"),
    Path("/sys/fs/cgroup"),
    Path("/proc/self/cgroup"),
)


def available_bytes() -> int | None:
    """What this process may still take: of the machine, and of its control group and those above;
    None where nobody says.

    Pages of files count as had: the kernel gives them up when somebody needs them.
    """
    candidates = []
    if _MEMINFO.is_file():
        candidates += [
            int(line.split()[1]) * 1024
            for line in _MEMINFO.read_text().splitlines()
            if line.startswith("MemAvailable:")
        ]
    for group in _cgroups():
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


def _cgroups() -> Iterator[Path]:
    """The folders of this process's groups, and of those that they are in; of a container, the root
    is its own.
    """
    try:
        lines = _OWN_CGROUPS.read_text().splitlines()
    except OSError:
        lines = []
    roots = {_CGROUP_ROOT: "/", _CGROUP_ROOT / "memory": "/"}
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers or "memory" in controllers.split(","):
            roots[_CGROUP_ROOT / "memory" if controllers else _CGROUP_ROOT] = path
    for root, path in roots.items():
        group = root / path.strip("/")
        yield group
        while group != root:
            group = group.parent
            yield group

"""Control groups of this process, which limit its memory and its processor time."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path

_ROOT, _OWN_GROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def control_groups(controller: str) -> Iterator[Path]:
    """Yield the folders of this process's control groups and of the groups above them.

    In a container, the root is its own group.

    Parameters
    ----------
    controller : str
        Such as ``memory`` or ``cpu``.
    """
    try:
        lines = _OWN_GROUPS.read_text().splitlines()
    except OSError:
        lines = []
    roots = {_ROOT: "/", _ROOT / controller: "/"}
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers or controller in controllers.split(","):
            roots[_ROOT / controller if controllers else _ROOT] = path
    for root, path in roots.items():
        group = root / path.strip("/")
        yield group
        while group != root:
            group = group.parent
            yield group


def available_cores() -> int:
    """Return the number of cores that this process may use, at least 1.

    A limit on processor time, such as that of a container, counts as cores, rounded up."""
    try:
        cores = len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        cores = os.cpu_count() or 1
    for group in control_groups("cpu"):
        quota = _quota(group)
        if quota is not None and quota > 0:
            cores = min(cores, math.ceil(quota))
    return max(cores, 1)


def _quota(group: Path) -> float | None:
    """Return the processor time of a group in cores; None or negative if it has no limit."""
    try:
        quota, period = (group / "cpu.max").read_text().split()
        return int(quota) / int(period)
    except (OSError, ValueError):  # no such group, "max", or groups of version 1
        pass
    try:
        quota, period = ((group / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        return int(quota) / int(period)
    except (OSError, ValueError):
        return None

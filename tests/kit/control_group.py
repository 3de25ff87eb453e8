"""Control groups with a limit on memory (page cache included) or on processor time.

Not every machine allows a process to create one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.kit.waiting import wait_until

ROOT = Path("/sys/fs/cgroup")
_ENTER = 'echo $$ > "$0/cgroup.procs" && exec "$@"'
_PERIOD_US = 10_000


@contextmanager
def memory_group(limit_bytes: int) -> Iterator[tuple[str, ...]]:
    """Yield the arguments that run a command in a new group below this process's group.

    Raises OSError if no group can be created.
    """
    with _group(
        "memory", {"memory.limit_in_bytes": str(limit_bytes)}, {"memory.max": str(limit_bytes)}
    ) as group:
        yield ("sh", "-c", _ENTER, str(group))


@contextmanager
def core_group(share: float) -> Iterator[Path]:
    """Create a group that gets this share of a core and yield its folder.

    A process joins it by its ``cgroup.procs``. Raises OSError if no group can be created.
    """
    quota = str(int(share * _PERIOD_US))
    with _group(
        "cpu",
        {"cpu.cfs_period_us": str(_PERIOD_US), "cpu.cfs_quota_us": quota},
        {"cpu.max": f"{quota} {_PERIOD_US}"},
    ) as group:
        yield group


@contextmanager
def _group(
    controller: str, v1_limits: Mapping[str, str], v2_limits: Mapping[str, str]
) -> Iterator[Path]:
    """Create a group with limits, named as in version 1 or version 2 of cgroups."""
    parent, limits = _own_group(controller, v1_limits, v2_limits)
    group = parent / f"asterism-{os.getpid()}-{time.monotonic_ns()}"
    group.mkdir()
    try:
        for name, value in limits.items():
            (group / name).write_text(value)
        yield group
    finally:
        # The kernel may still be reaping its processes.
        wait_until(lambda: _is_removed(group), f"{group} is removed", ignored=OSError)


def _is_removed(group: Path) -> bool:
    if group.exists():
        group.rmdir()
    return True


def _own_group(
    controller: str, v1_limits: Mapping[str, str], v2_limits: Mapping[str, str]
) -> tuple[Path, Mapping[str, str]]:
    """Return the folder of this process's group, and the limits in its version's names."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return ROOT / controller / path.lstrip("/"), v1_limits
        if not controllers and controller in _read_words(
            ROOT / path.lstrip("/") / "cgroup.subtree_control"
        ):
            return ROOT / path.lstrip("/"), v2_limits
    raise OSError(f"no {controller} controller is given to this process's control group")


def _read_words(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []

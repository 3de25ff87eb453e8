"""A control group with a limit on memory, page cache included, where the machine lets one be made."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
_ENTER = 'echo $$ > "$0/cgroup.procs" && exec "$@"'


@contextmanager
def memory_group(limit_bytes: int) -> Iterator[tuple[str, ...]]:
    """The words that run a command in a new group below this process's own; OSError where none can be made."""
    parent, limit = _own()
    group = parent / f"asterism-{os.getpid()}-{time.monotonic_ns()}"
    group.mkdir()
    try:
        (group / limit).write_text(str(limit_bytes))
        yield ("sh", "-c", _ENTER, str(group))
    finally:
        end = time.monotonic() + 10
        while group.exists():
            try:
                group.rmdir()
            except OSError:  # its processes are being reaped
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)


def _own() -> tuple[Path, str]:
    """The folder of this process's memory group, and the name of its limit, of either version."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            return ROOT / "memory" / path.lstrip("/"), "memory.limit_in_bytes"
        if not controllers and "memory" in _words(ROOT / path.lstrip("/") / "cgroup.subtree_control"):
            return ROOT / path.lstrip("/"), "memory.max"
    raise OSError("no memory controller is given to this process's control group")


def _words(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []

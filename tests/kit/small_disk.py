"""A file system of a few megabytes that a test fills."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class SmallDisk:
    """A mounted tmpfs, which raises the kernel's own ENOSPC for writes and for mapped pages."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ballast = path / "ballast"

    def fill(self, *, keep_free: int = 0) -> None:
        """Use all space except ``keep_free`` bytes."""
        with self._ballast.open("ab") as file:
            while (remaining := (self.free() - keep_free) // 4096 * 4096) > 0:
                # Other processes may write at the same time.
                with contextlib.suppress(OSError):
                    os.posix_fallocate(file.fileno(), os.fstat(file.fileno()).st_size, remaining)

    def empty(self) -> None:
        """Free the used space."""
        self._ballast.unlink(missing_ok=True)

    def free(self) -> int:
        """Return the free bytes."""
        statistics = os.statvfs(self.path)
        return statistics.f_bavail * statistics.f_frsize


@contextmanager
def small_disk(path: Path, size_mib: int) -> Iterator[SmallDisk]:
    """Mount a disk at ``path`` until the block ends.

    Skips the test if users of this host may not mount one.
    """
    path.mkdir(parents=True, exist_ok=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size_mib}m", "tmpfs", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)

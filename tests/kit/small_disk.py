"""A file system of a few megabytes, that a test fills."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class SmallDisk:
    """A mounted tmpfs: the kernel's own ENOSPC, for writes and for mapped pages."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ballast = path / "ballast"

    def fill(self, *, leave: int = 0) -> None:
        """Take all its room but ``leave`` bytes."""
        with self._ballast.open("ab") as file:
            while (rest := (self.free() - leave) // 4096 * 4096) > 0:
                # Others write meanwhile.
                with contextlib.suppress(OSError):
                    os.posix_fallocate(file.fileno(), os.fstat(file.fileno()).st_size, rest)

    def empty(self) -> None:
        """Give the room back."""
        self._ballast.unlink(missing_ok=True)

    def free(self) -> int:
        """Bytes that are left."""
        found = os.statvfs(self.path)
        return found.f_bavail * found.f_frsize


@contextmanager
def small_disk(path: Path, size_mib: int) -> Iterator[SmallDisk]:
    """A disk at ``path`` until the block ends; a skip where this host does not let its users mount one."""
    path.mkdir(parents=True, exist_ok=True)
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size_mib}m", "tmpfs", str(path)], capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no file system can be mounted here: {made.stderr.strip()}")
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)

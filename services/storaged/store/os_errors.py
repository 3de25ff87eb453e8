"""Typed errors for failures of the operating system, such as a full disk."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import IO

from asterism_proto.errors import AsterismError, Unavailable


def allocate(file: IO[bytes], size: int) -> None:
    """Give ``file`` so many bytes of the disk, or raise OSError: a mapped page that finds no room
    later kills the process.
    """
    if size:
        os.posix_fallocate(file.fileno(), 0, size)


def disk_error(error: OSError, path: Path) -> AsterismError:
    """The typed error of what the file system said under ``path``."""
    location = error.filename or path
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Unavailable(f"{location}: the disk is full; free space and do it again")
    if error.errno == errno.ENOMEM:
        return Unavailable(
            f"{location}: not enough memory; give storaged more memory and do it again"
        )
    return Unavailable(f"{location}: {error.strerror or error}")


def memory_error(error: MemoryError) -> AsterismError:
    """Return the typed error of a task that its process had not enough memory for."""
    cause = f" ({error})" if str(error) else ""
    return Unavailable(
        f"not enough memory for the task{cause}; give storaged more memory, or lower "
        "concurrent_tasks, and recover the job"
    )

"""Typed errors for failures of the operating system, such as a full disk."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import IO

from asterism_proto.errors import AsterismError, Unavailable


def allocate(file: IO[bytes], size: int) -> None:
    """Allocate ``size`` bytes of the disk to a file, or raise OSError.

    A mapped page without space on the disk would kill the process later.
    """
    if size:
        os.posix_fallocate(file.fileno(), 0, size)


def disk_error(error: OSError, path: Path) -> AsterismError:
    """Return the typed error for an error of the file system under ``path``."""
    location = error.filename or path
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Unavailable(f"{location}: the disk is full; free space and try again")
    if error.errno == errno.ENOMEM:
        return Unavailable(
            f"{location}: not enough memory; give storaged more memory and try again"
        )
    return Unavailable(f"{location}: {error.strerror or error}")


def memory_error(error: MemoryError) -> AsterismError:
    """Return the typed error of a task that ran out of memory."""
    cause = f" ({error})" if str(error) else ""
    return Unavailable(
        f"not enough memory for the task{cause}; give storaged more memory, or lower "
        "concurrent_tasks, and recover the job"
    )

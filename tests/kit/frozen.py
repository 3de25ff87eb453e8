"""Processes that are alive but do not respond."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.kit.waiting import wait_until


@contextmanager
def stopped_process(pid: int) -> Iterator[None]:
    """Stop a process by SIGSTOP while the block runs."""
    os.kill(pid, signal.SIGSTOP)
    tasks = Path(f"/proc/{pid}/task")
    wait_until(  # a thread stops only once it is scheduled
        lambda: all(" T " in task.read_text() for task in tasks.glob("*/stat")),
        f"every thread of process {pid} is stopped",
    )
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)

"""A process that answers nobody and is still there."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def stopped_process(pid: int) -> Iterator[None]:
    """A process that is stopped, not ended, while the block runs."""
    os.kill(pid, signal.SIGSTOP)
    while any(" T " not in task.read_text() for task in Path(f"/proc/{pid}/task").glob("*/stat")):
        time.sleep(0.01)  # a thread stops when it is given a turn
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)

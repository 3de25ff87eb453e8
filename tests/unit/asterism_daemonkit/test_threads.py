"""Tests that a process ends if its serving thread fails; other errors are only reported."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.kit.waiting import HANG_S

from asterism_daemonkit.critical_threads import EXIT_STATUS

SCRIPT = """
import sys, threading
from asterism_daemonkit.critical_threads import exit_on_lost_threads

def lose(): raise {error}

exit_on_lost_threads()
thread = threading.Thread(target=lose, name={name!r})
thread.start()
thread.join()
"""


@pytest.mark.parametrize(
    ("error", "name", "status"),
    [
        ("MemoryError('no memory')", "poll", EXIT_STATUS),
        ("RuntimeError('no thread')", "Thread-1 (_serve)", EXIT_STATUS),
        ("RuntimeError('a fault')", "poll", 0),
    ],
)
def test_a_lost_thread_ends_its_process(error: str, name: str, status: int) -> None:
    script = SCRIPT.format(error=error, name=name)
    completed = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=HANG_S, check=False
    )
    assert completed.returncode == status, completed.stderr
    assert error.partition("(")[0] in completed.stderr
    assert ("thread_lost" in completed.stderr) == (status == EXIT_STATUS)

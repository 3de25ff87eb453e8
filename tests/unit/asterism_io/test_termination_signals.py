"""A signal ends the wait of the main thread, whatever this is just doing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from tests.kit.waiting import HANG_S

PROGRAM = """
import os, signal, sys
from asterism_io.termination_signals import TerminationSignals

termination = TerminationSignals()
print("ready", flush=True)

def interrupt(frame, event, argument):
    if event == "line":
        os.kill(os.getpid(), int(sys.argv[1]))
    return interrupt

if len(sys.argv) > 1:
    sys.settrace(interrupt)
termination.wait()
sys.settrace(None)
print("end", flush=True)
"""
"""Program that waits; with an argument, this signal arrives before each line of the wait."""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_between_all_lines_of_the_wait(number: signal.Signals) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(int(number))],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "ready\nend\n", "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_wait(number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        os.kill(process.pid, number)
        assert process.stdout.readline() == "end\n"
        assert process.wait(HANG_S) == 0

"""Tests of the end of a process."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.kit.waiting import HANG_S

_PROGRAM = """
import atexit, gc, sys
from asterism_io.fast_exit import skip_last_collections

class InCycle:
    def __init__(self):
        self.own = self
    def __del__(self):
        print("collected", flush=True)

atexit.register(print, "handler", flush=True)
if sys.argv[1] == "skip":
    skip_last_collections()
gc.collect()
gc.disable()
kept = InCycle()
sys.exit(3)
"""


@pytest.mark.parametrize(("how", "lines"), [("skip", ["handler"]), ("", ["handler", "collected"])])
def test_a_process_ends_without_its_last_collections(how: str, lines: list[str]) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _PROGRAM, how],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert (ended.returncode, ended.stdout.split(), ended.stderr) == (3, lines, "")

"""A killed test run leaves no process running.

This covers daemons, processes in sessions of their own, and forked processes. The commands that it
registered for its end are run.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.kit import reaper
from tests.kit.waiting import HANG_S, wait_until

CLUSTER = """
import json, multiprocessing, os, signal, subprocess, sys, time
from pathlib import Path
from tests.kit.cluster import LocalCluster

def test_runs_until_it_is_killed(tmp_path):
    with LocalCluster(1, 1) as cluster:
        forked = multiprocessing.get_context("fork").Process(target=signal.pause)
        forked.start()
        daemons = {name: daemon.pid for name, daemon in cluster.daemons.items()}
        report(forked=forked.pid, **daemons)
"""
SESSION = """
import json, os, signal, subprocess, sys
from pathlib import Path

def test_runs_until_it_is_killed():
    program = "import subprocess; subprocess.run(['sleep', '100000'], start_new_session=True)"
    child = subprocess.Popen([sys.executable, "-c", program], start_new_session=True)
    report(child=child.pid, worker=os.getpid())
"""
REPORT = """
def report(**pids):
    from tests.kit import reaper

    ending = reaper.start().on_end("touch", str(Path(__file__).with_name("ended")))
    ending.__enter__()
    target = Path(__file__).with_name("pids.json")
    target.with_suffix(".tmp").write_text(json.dumps(pids))
    target.with_suffix(".tmp").rename(target)
    while True:
        signal.pause()
"""


@pytest.mark.parametrize(
    ("program", "options"), [(CLUSTER, ()), (SESSION, ("-n", "1"))], ids=["cluster", "xdist"]
)
def test_a_killed_test_run_leaves_no_process(
    root: Path, tmp_path: Path, program: str, options: Sequence[str]
) -> None:
    file, pids, log = tmp_path / "test_case.py", tmp_path / "pids.json", tmp_path / "log"
    file.write_text(program + REPORT)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-c",
        "pyproject.toml",
        "-p",
        "tests.conftest",
        "-p",
        "no:cacheprovider",
        *options,
        str(file),
    ]
    with log.open("wb") as out, subprocess.Popen(command, cwd=root, stdout=out, stderr=out) as run:
        try:
            wait_until(
                lambda: pids.exists() or run.poll() is not None, "the case reports its processes"
            )
            assert run.poll() is None, log.read_text()
            started = json.loads(pids.read_text())
            alive = {process.pid for process in reaper.processes()}
            assert set(started.values()) <= alive
        finally:
            run.kill()
            run.wait(HANG_S)
    wait_until(
        lambda: not {process.pid for process in reaper.processes()} & set(started.values()),
        f"all of {started} have ended",
    )
    wait_until((tmp_path / "ended").exists, "the registered command has run")
    wait_until(lambda: not _processes_naming(tmp_path), "nothing else runs from the folder")


def _processes_naming(folder: Path) -> list[int]:
    """Return the ids of the processes that name a folder in their command line."""
    return [
        process.pid
        for process in reaper.processes()
        if str(folder).encode() in reaper._read(process.pid, "cmdline")
    ]

"""Programs forked from a warm interpreter run as if they were executed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kit.waiting import HANG_S
from tests.kit.warm_interpreter import WarmInterpreter

PROGRAM = """
import json, os, subprocess, sys
print(json.dumps([__name__, sys.argv, sys.path[:2], os.environ["COLOR"], preloaded.PID, os.getpid(),
                  os.getsid(0)]))
if sys.argv[1:] == ["parent"]:
    child = [sys.executable, "-u", __file__, "child"]
    with open(sys.path[0] + "/log", "wb") as log:
        process = subprocess.Popen(child, env={**os.environ, "COLOR": "red"}, stdout=log,
                                   stderr=subprocess.STDOUT, start_new_session=True)
    assert process.wait() == 4
    print(open(log.name).read(), end="")
    sys.exit("for a reason")
sys.exit(4)
"""


@pytest.fixture
def warm(tmp_path: Path) -> Iterator[WarmInterpreter]:
    (tmp_path / "program.py").write_text("import preloaded\n" + PROGRAM)
    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / "preloaded.py").write_text("import os\nPID = os.getpid()\n")
    with WarmInterpreter(
        Path(sys.executable), ["preloaded"], scripts=modules, environment={}
    ) as interpreter:
        yield interpreter


def test_programs_and_children_are_forked_with_their_settings(
    warm: WarmInterpreter, tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    environment = {"COLOR": "blue", "PYTHONPATH": str(tmp_path / "more")}
    completed = warm.run(program, "parent", environment=environment, timeout_s=HANG_S)
    *lines, reason = completed.stdout.splitlines()
    assert (completed.returncode, reason) == (1, "for a reason"), completed.stdout
    parent, child = map(json.loads, lines)
    path = [str(tmp_path), str(tmp_path / "more")]
    assert parent[:4] == ["__main__", [str(program), "parent"], path, "blue"]
    assert child[:4] == ["__main__", [str(program), "child"], path, "red"]
    assert len({parent[4], parent[5], child[5], os.getpid()}) == 4
    assert parent[4] == child[4], "the module was imported again"
    assert (parent[5], child[5]) == (parent[6], child[6]), "not in sessions of their own"
    repeated = warm.run(program, "child", environment=environment, timeout_s=HANG_S)
    assert repeated.returncode == 4


def test_a_program_that_hangs_is_killed(warm: WarmInterpreter, tmp_path: Path) -> None:
    (tmp_path / "hangs.py").write_text("import signal\nsignal.pause()\n")
    with pytest.raises(subprocess.TimeoutExpired):
        warm.run(tmp_path / "hangs.py", environment={}, timeout_s=0.1)
    (tmp_path / "ends.py").write_text("print('ended')\n")
    completed = warm.run(tmp_path / "ends.py", environment={}, timeout_s=HANG_S)
    assert (completed.returncode, completed.stdout) == (0, "ended\n")


def test_an_import_that_fails_is_an_error(tmp_path: Path) -> None:
    with (
        WarmInterpreter(
            Path(sys.executable), ["no_such_module"], scripts=tmp_path, environment={}
        ) as interpreter,
        pytest.raises(RuntimeError, match="no_such_module has ended"),
    ):
        interpreter.run(tmp_path / "ends.py", environment={}, timeout_s=HANG_S)

"""Real PyG, in an interpreter of its own, and real TensorFlow in another: programs run there with this checkout's sources; modules of `tests/kit/pyg`
and `tests/kit/tensorflow` are tests that run there."""

from __future__ import annotations

import ast
import contextlib
import os
import signal
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SCRIPTS = Path(__file__).parent / "pyg"
TENSORFLOW = Path(__file__).parent / "tensorflow"
ROOT = SCRIPTS.parents[2]
STOP_S = 60.0
SOURCES = [str(ROOT / name) for name in ("proto", "client", "services")] + [str(ROOT)]


def run(python: Path, *words: object, home: Path, timeout_s: float = 240.0, more: Mapping[str, str] | None = None) -> str:
    """Run a program with the framework at hand and give its output; a failure shows the end of it."""
    done = _done(python, *words, home=home, timeout_s=timeout_s, more=more)
    assert done.returncode == 0, f"{words[0]} ended with {done.returncode}:\n{done.stdout[-4000:]}"
    return done.stdout


def names(module: str, scripts: Path = SCRIPTS) -> list[str]:
    """The tests of a module of `tests/kit/pyg`, or of another folder, read without running it: what it imports is not here."""
    tree = ast.parse((scripts / module).read_text())
    return [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """How the tests of a module ended."""

    failures: Mapping[str, str]
    """What was told of each that failed."""
    passed: frozenset[str]
    output: str

    def require(self, name: str) -> None:
        """Fail where a test of that name failed, was skipped or did not run."""
        assert name not in self.failures, self.failures[name]
        assert name in self.passed, f"{name} did not run:\n{self.output[-4000:]}"


def outcomes(python: Path, module: str, *options: str, home: Path, timeout_s: float = 840.0, scripts: Path = SCRIPTS) -> Outcomes:
    """Run the tests of a module of `tests/kit/pyg`, or of another folder, all in one process."""
    told = home / f"{module}.xml"
    # The frameworks warn about themselves: only there warnings are no failures.
    done = _done(
        python,
        "-m",
        "pytest",
        scripts / module,
        "-q",
        "-W",
        "default",
        "-p",
        "no:cacheprovider",
        f"--junitxml={told}",
        *options,
        home=home,
        timeout_s=timeout_s,
    )
    failures: dict[str, list[str]] = {}
    passed: set[str] = set()
    for case in ElementTree.parse(told).iter("testcase") if told.exists() else ():
        name = case.get("name", "").partition("[")[0]
        said = [f"{end.get('message', '')}\n{end.text}" for end in case if end.tag in ("failure", "error", "skipped")]
        if said:
            failures.setdefault(name, []).extend(said)
        else:
            passed.add(name)
    return Outcomes(failures={name: "\n".join(said) for name, said in failures.items()}, passed=frozenset(passed), output=done.stdout)


def _done(python: Path, *words: object, home: Path, timeout_s: float, more: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    settings = {
        "PYTHONPATH": os.pathsep.join(SOURCES),
        "HOME": str(home),
        "OMP_NUM_THREADS": "1",
        **(more or {}),
    }
    command = ["env", *(f"{key}={value}" for key, value in settings.items()), str(python), *map(str, words)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running:
        try:
            output, _ = running.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            running.send_signal(signal.SIGINT)  # so that it ends the daemons that it started
            with contextlib.suppress(subprocess.TimeoutExpired):
                running.communicate(timeout=STOP_S)
            running.kill()
            raise
    return subprocess.CompletedProcess(command, running.returncode, output)

"""Runners of PyG and TensorFlow programs, each in a separate interpreter.

They run with the sources of this checkout. Modules of `tests/kit/pyg` and `tests/kit/tensorflow`
are tests that run there.
"""

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
TENSORFLOW_SCRIPTS = Path(__file__).parent / "tensorflow"
ROOT = SCRIPTS.parents[2]
STOP_S = 60.0
SOURCES = [str(ROOT / name) for name in ("proto", "client", "services")] + [str(ROOT)]


def run(
    python: Path,
    *arguments: object,
    home: Path,
    timeout_s: float = 240.0,
    extra_environment: Mapping[str, str] | None = None,
) -> str:
    """Run a program with the framework and return its output; a failure shows the end of it."""
    completed = _run_process(
        python, *arguments, home=home, timeout_s=timeout_s, extra_environment=extra_environment
    )
    assert completed.returncode == 0, (
        f"{arguments[0]} ended with {completed.returncode}:\n{completed.stdout[-4000:]}"
    )
    return completed.stdout


def list_tests(module: str, scripts: Path = SCRIPTS) -> list[str]:
    """Return the tests of a module of `tests/kit/pyg`, or of another folder.

    The module is parsed but not run, because its imports are not available here.
    """
    tree = ast.parse((scripts / module).read_text())
    return [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """Outcomes of the tests of a module."""

    failures: Mapping[str, str]
    """Failure messages, by test name."""
    passed: frozenset[str]
    output: str

    def require(self, name: str) -> None:
        """Fail if a test of that name failed, was skipped or did not run."""
        assert name not in self.failures, self.failures[name]
        assert name in self.passed, f"{name} did not run:\n{self.output[-4000:]}"


def run_tests(
    python: Path,
    module: str,
    *options: str,
    home: Path,
    timeout_s: float = 840.0,
    scripts: Path = SCRIPTS,
) -> Outcomes:
    """Run the tests of a module of `tests/kit/pyg`, or of another folder, in one process."""
    report_path = home / f"{module}.xml"
    # Warnings of the frameworks about themselves are not failures.
    completed = _run_process(
        python,
        "-m",
        "pytest",
        scripts / module,
        "-q",
        "-W",
        "default",
        "-p",
        "no:cacheprovider",
        f"--junitxml={report_path}",
        *options,
        home=home,
        timeout_s=timeout_s,
    )
    failures: dict[str, list[str]] = {}
    passed: set[str] = set()
    for case in ElementTree.parse(report_path).iter("testcase") if report_path.exists() else ():
        name = case.get("name", "").partition("[")[0]
        messages = [
            f"{end.get('message', '')}\n{end.text}"
            for end in case
            if end.tag in ("failure", "error", "skipped")
        ]
        if messages:
            failures.setdefault(name, []).extend(messages)
        else:
            passed.add(name)
    return Outcomes(
        failures={name: "\n".join(messages) for name, messages in failures.items()},
        passed=frozenset(passed),
        output=completed.stdout,
    )


def _run_process(
    python: Path,
    *arguments: object,
    home: Path,
    timeout_s: float,
    extra_environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    settings = {
        "PYTHONPATH": os.pathsep.join(SOURCES),
        "HOME": str(home),
        "OMP_NUM_THREADS": "1",
        **(extra_environment or {}),
    }
    command = [
        "env",
        *(f"{key}={value}" for key, value in settings.items()),
        str(python),
        *map(str, arguments),
    ]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as running:
        try:
            output, _ = running.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            running.send_signal(signal.SIGINT)  # lets it stop the daemons that it started
            with contextlib.suppress(subprocess.TimeoutExpired):
                running.communicate(timeout=STOP_S)
            running.kill()
            raise
    return subprocess.CompletedProcess(command, running.returncode, output)

"""Tests that each mutant is rejected, and that the checks accept the unchanged sampler."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

from tests.mutants import END
from tests.mutants.catalogue import GROUPS, mutants_of


@pytest.fixture(scope="module")
def start_runner(root: Path) -> Iterator[Callable[[bool], subprocess.Popen[str]]]:
    """Return a function that starts a runner: one for groups with checks, one for the others.

    Each imports the sampler once for all of its groups.
    """
    with ExitStack() as stack:

        @cache
        def start(has_checks: bool) -> subprocess.Popen[str]:
            runner = stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-m", "tests.mutants", "--serve"],
                    cwd=root,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                )
            )
            stack.callback(lambda: runner.stdin.close() if runner.stdin else None)
            return runner

        yield start


@pytest.mark.parametrize("group", GROUPS)
def test_every_mutant_is_rejected(
    group: str, start_runner: Callable[[bool], subprocess.Popen[str]]
) -> None:
    runner = start_runner(any(mutant.check for mutant in mutants_of(group)))
    assert runner.stdin is not None
    assert runner.stdout is not None
    runner.stdin.write(f"{group}\n")
    runner.stdin.flush()
    report: list[str] = []
    for line in runner.stdout:
        report.append(line)
        if line.startswith(END):
            break
    assert report[-1:] == [f"{END}0\n"], "".join(report)
    assert len(report) > len(mutants_of(group)), "".join(report)

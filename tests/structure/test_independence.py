"""Tests that no test depends on the machine, such as on free ports or fixed times."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

from tests.kit.waiting import HANG_S

CHOSEN_PORT = re.compile(r"\bfree_ports?\b|randrange\(\s*\d[\d_]{3,},\s*\d[\d_]{3,}\)")

MAX_POLL_S = 0.25
"""Longest sleep between two checks of a condition, in seconds."""
WAITING_MODULE = "tests/kit/waiting.py"


def modules_of(root: Path) -> list[Path]:
    return sorted(path for path in (root / "tests").rglob("*.py") if path != Path(__file__))


def test_no_test_chooses_a_port_beforehand(root: Path) -> None:
    """A port is reserved (`tests.kit.ports`), or a daemon listens on port 0 and reports it
    (`--ports-file`).
    """
    violations = [
        f"{path.relative_to(root)}:{number}"
        for path in modules_of(root)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if CHOSEN_PORT.search(line)
    ]
    assert violations == []


def fixed_sleeps(path: Path) -> list[int]:
    """Return the lines of a module with fixed sleeps that are long enough to be waits."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "sleep"
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "time"
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, int | float)
        and node.args[0].value > MAX_POLL_S
    ]


def test_no_test_sleeps_for_a_fixed_time(root: Path) -> None:
    """Tests poll for events with `tests.kit.waiting.wait_until`.

    `let_pass` is only for time that must pass.

    Programs of other environments do not have the kit; they state at their sleeps what the time
    is for."""
    foreign = tuple(root / "tests/kit" / name for name in ("pyg", "tensorflow", "dgl"))
    sleeps = [
        f"{path.relative_to(root)}:{line}"
        for path in modules_of(root)
        if str(path.relative_to(root)) != WAITING_MODULE
        and not path.is_relative_to(root / "tests/benchmarks")
        and path.parent not in foreign
        for line in fixed_sleeps(path)
    ]
    assert sleeps == []


def test_time_limits_are_only_guards(root: Path) -> None:
    """A test may take many times as long as on an idle machine.

    The longest wait of the kit ends before the time limit of a test.
    """
    limits = [
        int(seconds)
        for path in modules_of(root)
        for seconds in re.findall(r"mark\.timeout\((\d+)\)", path.read_text())
    ]
    options = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    assert min([*limits, options["timeout"]]) >= 2 * HANG_S

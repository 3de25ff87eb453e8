"""Tests that tests wait only with `tests.kit.waiting.wait_until`, without polling loops."""

from __future__ import annotations

import ast
from pathlib import Path

OWN_LOOPS = frozenset(
    {
        "tests/kit/waiting.py",
        # Processes that import no test modules.
        "tests/kit/faultpoints/sitecustomize.py",
        "tests/kit/reaper.py",
        # Run by the interpreter of another environment.
        "tests/kit/pyg/batches.py",
    }
)
PACED = frozenset(
    {
        # These work at a pace until an event is set, or for a time.
        "tests/contract/test_engine.py",
        "tests/integration/cluster/test_async_client.py",
        "tests/integration/faults/test_faults_kills.py",
        "tests/integration/faults/test_faults_writes.py",
        "tests/integration/requests/test_client_requests.py",
    }
)


def sleeping_loops(tree: ast.AST) -> list[int]:
    """Return the lines of while loops that sleep."""
    return [
        loop.lineno
        for loop in ast.walk(tree)
        if isinstance(loop, ast.While)
        and any(
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "sleep"
            for node in ast.walk(loop)
        )
    ]


def test_a_loop_that_sleeps_is_found() -> None:
    assert sleeping_loops(ast.parse("while not done():\n    time.sleep(1)\n")) == [1]


def test_tests_wait_with_the_polling_helper(root: Path) -> None:
    found = {
        str(path.relative_to(root))
        for path in (root / "tests").rglob("*.py")
        if "benchmarks" not in path.parts and sleeping_loops(ast.parse(path.read_text()))
    }
    assert sorted(found - OWN_LOOPS - PACED) == []
    assert sorted((OWN_LOOPS | PACED) - found) == []

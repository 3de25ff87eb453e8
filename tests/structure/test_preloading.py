"""The zygote has imported what daemons import when they open their ports."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from tests.kit.zygote import PRELOADED


def _imports_of_functions(path: Path) -> set[str]:
    """Return the modules that functions of a file import."""
    return {
        str(node.module)
        for function in ast.walk(ast.parse(path.read_text()))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.ImportFrom)
    }


@pytest.mark.parametrize("daemon", ["metad", "storaged", "graphd"])
def test_forked_daemons_import_nothing_to_open_ports(root: Path, daemon: str) -> None:
    """Each of the suite's many daemons would spend 0.3 s or more on FastAPI and routes."""
    imported = _imports_of_functions(root / "services" / daemon / "app.py")
    assert imported, "ports are opened by functions that import the HTTP server"
    assert imported - set(PRELOADED) == set()

"""The zygote has imported what daemons import when they open their ports, and their kernels."""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path

import pytest
from tests.kit.zygote import PRELOADED, load_cached_kernels


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


def test_cached_kernels_are_loaded_before_they_are_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each build task of a forked storaged would load some twenty."""
    (tmp_path / "probed").mkdir()
    (tmp_path / "probed/doubling.py").write_text(
        "from asterism_graphkit.compile.jit import kernel\n\n\n"
        "@kernel\ndef double(x):\n    return 2 * x\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert importlib.import_module("probed.doubling").double(4) == 8
    monkeypatch.delitem(sys.modules, "probed.doubling")
    kernel = importlib.import_module("probed.doubling").double
    load_cached_kernels(["graphd", "storaged"])
    assert not kernel.overloads
    load_cached_kernels(["probed"])
    assert [types[0].name for types in kernel.overloads] == ["int64"]

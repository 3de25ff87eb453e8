"""Tests that kernels have few parameters: tables, one record of scalars, inputs, outputs."""

from __future__ import annotations

import ast
from pathlib import Path

DECORATORS = {"kernel", "kernel_holding_gil", "inlined"}
MAX_PARAMETERS = 10
LONGER: dict[str, str] = {}
"""Reasons, by ``path:function``, of kernels with more, but at most `MAX_LONGER`."""
MAX_LONGER = 12


def parameter_counts(root: Path) -> dict[str, int]:
    """Return the number of parameters of each compiled function of the services."""
    counts = {}
    for path in sorted((root / "services").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and any(
                isinstance(decorator, ast.Name) and decorator.id in DECORATORS
                for decorator in node.decorator_list
            ):
                arguments = node.args
                counts[f"{path.relative_to(root)}:{node.name}"] = len(
                    [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
                )
    return counts


def test_kernels_take_few_parameters(root: Path) -> None:
    counts = parameter_counts(root)
    assert len(counts) > 100
    assert {
        name: n for name, n in counts.items() if n > MAX_PARAMETERS and name not in LONGER
    } == {}
    assert {name: counts[name] for name in LONGER if counts[name] > MAX_LONGER} == {}

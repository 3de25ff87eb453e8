"""Tests of NamedTuples in kernels: Numba distinguishes them by class and field names only."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path


def named_tuples(path: Path) -> list[tuple[str, ...]]:
    """Return the NamedTuples of a module: class name, then field names."""
    return [
        (
            node.name,
            *(ast.unparse(item.target) for item in node.body if isinstance(item, ast.AnnAssign)),
        )
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef)
        and any(ast.unparse(base) == "NamedTuple" for base in node.bases)
    ]


def test_no_two_named_tuples_look_alike_to_numba(root: Path) -> None:
    """Numba would type calls with the second class again, in a fraction of a millisecond each."""
    counts = Counter(
        shape
        for folder in ("services", "client")
        for path in (root / folder).rglob("*.py")
        for shape in named_tuples(path)
    )
    assert len(counts) > 10
    assert [shape for shape, count in counts.items() if count > 1] == []

"""Tests that packages and modules are documented, without references to outside material."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest
from tests.kit.waiting import HANG_S

ROOTS = ("proto", "client", "services")
CODE_ROOTS = (*ROOTS, "tests", "examples")
VAGUE = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "managers"}
FOREIGN = re.compile(
    r"(?<![\w./])/(root|work|home)/\w|\.pyenv|https?://[^\s)\"']*(pypi|artifactory|/simple)\b",
    re.IGNORECASE,
)
NOTE_TO_SELF = re.compile(r"\b(" + "|".join(("TODO", "FIXME", "XXX", "HACK")) + r")\b")

SWAGGER_UI = "services/asterism_daemonkit/http/swagger_ui/swagger-ui-bundle.js"
"""Script of another project, shipped unchanged."""
NOT_SEARCHED = ("tests/structure/test_public_modules.py", SWAGGER_UI)


def modules(root: Path, roots: tuple[str, ...] = ROOTS) -> list[Path]:
    return sorted(
        path
        for name in roots
        for path in (root / name).rglob("*.py")
        if not path.stem.endswith("_pb2")
    )


def relative(root: Path, paths: list[Path]) -> list[str]:
    return [str(path.relative_to(root)) for path in paths]


def test_every_package_has_a_docstring(root: Path) -> None:
    undocumented = [
        path
        for path in modules(root)
        if path.name == "__init__.py" and not ast.get_docstring(ast.parse(path.read_text()))
    ]
    assert relative(root, undocumented) == []


def test_every_folder_with_modules_is_a_package(root: Path) -> None:
    folders = {
        path.parent
        for path in modules(root)
        if path.parent.name not in ROOTS and not (path.parent / "__init__.py").exists()
    }
    assert relative(root, sorted(folders)) == []


def test_every_module_has_a_docstring(root: Path) -> None:
    undocumented = [
        path for path in modules(root) if not ast.get_docstring(ast.parse(path.read_text()))
    ]
    assert relative(root, undocumented) == []


def test_no_module_has_a_vague_name(root: Path) -> None:
    assert [
        name
        for name in relative(root, modules(root, CODE_ROOTS))
        if VAGUE & set(Path(name).with_suffix("").parts)
    ] == []


def test_nothing_is_pickled(root: Path) -> None:
    offenders = []
    for path in modules(root):
        for node in ast.walk(ast.parse(path.read_text())):
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            if {name.split(".")[0] for name in names} & {"pickle", "marshal", "shelve", "dill"}:
                offenders.append(path)
    assert relative(root, offenders) == []


def tracked(root: Path) -> list[Path]:
    listed = (
        subprocess.run(
            ["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True, timeout=HANG_S
        )
        .stdout.decode()
        .split("\0")
    )
    return [
        root / name
        for name in listed
        if name and (root / name).is_file() and name not in NOT_SEARCHED
    ]


@pytest.mark.parametrize(
    "pattern", [FOREIGN, NOTE_TO_SELF], ids=["machine paths and registries", "notes to self"]
)
def test_files_mention_no_machine_paths_or_notes(root: Path, pattern: re.Pattern[str]) -> None:
    matches = []
    for path in tracked(root):
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        matches += [
            f"{path.relative_to(root)}:{n}: {line.strip()[:100]}"
            for n, line in enumerate(text.splitlines(), 1)
            if pattern.search(line)
        ]
    assert matches == []

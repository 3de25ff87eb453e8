"""Tests of packaging: one version, split packages, and valid names of extras."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.kit.waiting import HANG_S

import asterism

REQUIREMENT = re.compile(r"\basterism(?:-graph)?\[([a-z0-9,]+)\]")
"""Extras of the client in pip's syntax, by the name of the distribution or a former name."""


def project_of(root: Path, folder: str) -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((root / folder / "pyproject.toml").read_text())
    return project


def packages_of(root: Path, folder: str) -> set[str]:
    wheel = project_of(root, folder)["tool"]["hatch"]["build"]["targets"]["wheel"]
    return {Path(package).name for package in wheel["packages"]}


def package_folders(root: Path, *folders: str) -> set[str]:
    return {path.parent.name for folder in folders for path in root.glob(f"{folder}/*/__init__.py")}


def texts(root: Path) -> Iterator[tuple[str, str]]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True, timeout=HANG_S
    ).stdout.decode()
    for name in filter(None, listed.split("\0")):
        path = root / name
        if path.suffix in (".py", ".md", ".toml", ".txt") and path != Path(__file__):
            yield name, path.read_text()


def test_every_package_is_in_one_distribution(root: Path) -> None:
    assert packages_of(root, ".") == package_folders(root, "client", "proto")
    assert packages_of(root, "services") == package_folders(root, "services")
    assert len(packages_of(root, ".")) == 4
    assert len(packages_of(root, "services")) == 7


def test_types_of_packages_and_examples_are_checked(root: Path) -> None:
    checked = project_of(root, ".")["tool"]["mypy"]["packages"]
    assert set(checked) == packages_of(root, ".") | packages_of(root, "services") | {"examples"}


def test_both_distributions_have_one_version(root: Path) -> None:
    client, server = (project_of(root, folder)["project"] for folder in (".", "services"))
    version = asterism.__version__
    assert server["version"] == version
    assert f"asterism-graph=={version}" in server["dependencies"]
    assert client["optional-dependencies"]["server"] == [f"asterism-graph-server=={version}"]


def test_both_distributions_have_one_author_license_and_python(root: Path) -> None:
    client, server = (project_of(root, folder)["project"] for folder in (".", "services"))
    for field in ("authors", "license", "license-files", "requires-python"):
        assert client[field] == server[field]
    assert (root / "services/LICENSE").read_bytes() == (root / "LICENSE").read_bytes()


def test_every_named_extra_exists(root: Path) -> None:
    extras = set(project_of(root, ".")["project"]["optional-dependencies"])
    unknown = {
        f"{name}: {match[0]}"
        for name, text in texts(root)
        for match in REQUIREMENT.finditer(text)
        if not match[0].startswith("asterism-graph[") or not set(match[1].split(",")) <= extras
    }
    assert sorted(unknown) == []


def test_every_guarded_import_names_an_extra(root: Path) -> None:
    """The first argument of `asterism.extras.required` is the name of an extra."""
    extras = set(project_of(root, ".")["project"]["optional-dependencies"])
    named = {
        argument.value
        for path in (root / "client").rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id == "required"
        for argument in call.args[:1]
        if isinstance(argument, ast.Constant)
    }
    assert {"server", "ingest", "export", "cli", "aio"} <= named <= extras

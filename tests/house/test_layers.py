"""Imports run one way, and the contracts in pyproject.toml say which."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest
from importlinter import cli


def test_every_import_contract_is_kept(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(root)
    monkeypatch.setattr(sys, "path", list(sys.path))  # the linter adds to it
    contracts = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    status = cli.lint_imports(config_filename="pyproject.toml", no_cache=True, no_logo=True)
    report = capsys.readouterr().out
    assert status == cli.EXIT_STATUS_SUCCESS, report
    assert f"{len(contracts)} kept, 0 broken" in report


def test_the_name_of_every_import_contract_is_its_own(root: Path) -> None:
    names = [c["name"] for c in tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]]
    assert len(set(names)) == len(names) > 0

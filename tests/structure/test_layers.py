"""Tests of the layers: the import contracts in pyproject.toml hold."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from importlinter import configuration
from importlinter.application import use_cases


def test_every_import_contract_is_kept(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(root)
    contracts = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ]
    # Not by the function of its command, which configures logging for the entire process and
    # disables our loggers.
    configuration.configure()
    passed = use_cases.lint_imports(config_filename="pyproject.toml", cache_dir=None, no_logo=True)
    report = capsys.readouterr().out
    assert passed, report
    assert f"{len(contracts)} kept, 0 broken" in report


def test_the_name_of_every_import_contract_is_its_own(root: Path) -> None:
    names = [
        c["name"]
        for c in tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"][
            "contracts"
        ]
    ]
    assert len(set(names)) == len(names) > 0

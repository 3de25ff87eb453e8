"""Tests of the commands that create certificates and the key of a cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from asterism.cli.app import run
from asterism.cli.exit_codes import ExitCode
from asterism_access.credentials.cluster_key import ClusterKey

Captured = pytest.CaptureFixture[str]


def test_certificates_are_created_once(tmp_path: Path, capsys: Captured) -> None:
    command = ["certificates", "create", str(tmp_path), "--host", "db-0", "--json"]
    assert run(command) == ExitCode.DONE
    assert json.loads(capsys.readouterr().out) == {"folder": str(tmp_path), "created": True}
    key = (tmp_path / "daemon.key").read_text()
    assert run(command) == ExitCode.USAGE
    assert "ca.key: the file exists" in capsys.readouterr().err
    assert run([*command, "--if-missing"]) == ExitCode.DONE
    assert json.loads(capsys.readouterr().out)["created"] is False
    assert (tmp_path / "daemon.key").read_text() == key


def test_a_cluster_key_is_created_once_and_not_printed(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "cluster.key"
    command = ["access", "create-cluster-key", str(file)]
    assert run(command) == ExitCode.DONE
    printed = capsys.readouterr()
    assert file.read_text().strip() not in printed.out + printed.err
    assert ClusterKey(str(file)).root_ticket(60)
    assert run(command) == ExitCode.USAGE
    assert "expected a new file" in capsys.readouterr().err
    assert run([*command, "--if-missing"]) == ExitCode.DONE
    file.chmod(0o644)
    assert run([*command, "--if-missing"]) == ExitCode.USAGE

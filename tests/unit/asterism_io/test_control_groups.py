"""Tests of the cores that control groups leave to a process."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from asterism_io import control_groups
from asterism_io.control_groups import available_cores


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the control groups of a process that may run on 16 cores."""
    (tmp_path / "own").write_text("4:cpu,cpuacct:/job/mine\n0::/job/mine\n")
    monkeypatch.setattr(control_groups, "_ROOT", tmp_path / "groups")
    monkeypatch.setattr(control_groups, "_OWN_GROUPS", tmp_path / "own")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(16)))
    for name in ("groups/job/mine", "groups/cpu/job/mine"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path / "groups"


def test_cores_without_a_limit_are_those_of_the_process(groups: Path) -> None:
    assert available_cores() == 16
    (groups / "job/mine/cpu.max").write_text("max 100000\n")
    (groups / "cpu/job/cpu.cfs_quota_us").write_text("-1\n")
    (groups / "cpu/job/cpu.cfs_period_us").write_text("100000\n")
    assert available_cores() == 16


@pytest.mark.parametrize(("quota", "cores"), [(400_000, 4), (150_000, 2), (10_000, 1)])
def test_a_limit_of_processor_time_counts_as_cores(groups: Path, quota: int, cores: int) -> None:
    (groups / "job/cpu.max").write_text(f"{quota} 100000\n")
    assert available_cores() == cores


def test_the_tightest_group_of_version_1_counts(groups: Path) -> None:
    for name, quota in (("cpu/job/mine", 800_000), ("cpu/job", 300_000)):
        (groups / name / "cpu.cfs_quota_us").write_text(f"{quota}\n")
        (groups / name / "cpu.cfs_period_us").write_text("100000\n")
    assert available_cores() == 3


def test_a_process_without_groups_has_its_cores(groups: Path) -> None:
    (groups.parent / "own").unlink()
    assert available_cores() == 16
    (groups / "cpu.max").write_text("200000 100000\n")
    assert available_cores() == 2, "in a container, the root is its own group"

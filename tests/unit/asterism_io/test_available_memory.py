"""Tests of available memory, of the machine and of control groups."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from asterism_io import available_memory, control_groups

GIB = 1 << 30


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the files of a machine with 16 GiB of available memory."""
    (tmp_path / "meminfo").write_text(f"MemTotal: 99 kB\nMemAvailable: {16 << 20} kB\n")
    (tmp_path / "groups").mkdir()
    monkeypatch.setattr(available_memory, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(control_groups, "_ROOT", tmp_path / "groups")
    monkeypatch.setattr(control_groups, "_OWN_GROUPS", tmp_path / "own")
    return tmp_path


def write_cgroup(folder: Path, files: Mapping[str, object]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in files.items():
        (folder / name).write_text(f"{value}\n")


def test_available_memory_without_cgroups(machine: Path) -> None:
    assert available_memory.available_bytes() == 16 * GIB
    (machine / "meminfo").unlink()
    assert available_memory.available_bytes() is None


def test_tightest_ancestor_cgroup_limits_memory(machine: Path) -> None:
    (machine / "own").write_text("0::/job/mine\n")
    write_cgroup(
        machine / "groups/job/mine",
        {"memory.max": "max", "memory.current": GIB, "memory.stat": "anon 1"},
    )
    assert available_memory.available_bytes() == 16 * GIB
    stat = f"anon {GIB}\nactive_file {GIB}\ninactive_file {2 * GIB}"
    write_cgroup(
        machine / "groups/job",
        {"memory.max": 8 * GIB, "memory.current": 6 * GIB, "memory.stat": stat},
    )
    assert available_memory.available_bytes() == 5 * GIB


def test_container_sees_its_cgroup_as_the_root(machine: Path) -> None:
    (machine / "own").write_text("0::/\n")
    write_cgroup(
        machine / "groups",
        {"memory.max": 4 * GIB, "memory.current": GIB, "memory.stat": "inactive_file 0"},
    )
    assert available_memory.available_bytes() == 3 * GIB


def test_limits_of_cgroup_v1_are_read(machine: Path) -> None:
    (machine / "own").write_text("9:name=systemd:/else\n4:cpu,memory:/work\n")
    write_cgroup(
        machine / "groups/memory",
        {"memory.limit_in_bytes": 1 << 62, "memory.usage_in_bytes": GIB, "memory.stat": ""},
    )
    write_cgroup(
        machine / "groups/memory/work",
        {
            "memory.limit_in_bytes": 2 * GIB,
            "memory.usage_in_bytes": GIB,
            "memory.stat": "active_file 5",
        },
    )
    assert available_memory.available_bytes() == GIB + 5

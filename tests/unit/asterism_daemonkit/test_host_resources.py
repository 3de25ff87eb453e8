"""Tests of the measurement of a daemon's resource use."""

from __future__ import annotations

import time
from pathlib import Path

from asterism_daemonkit.host_resources import ResourceMeter, disk_id


def test_memory_processors_and_disk_are_measured(tmp_path: Path) -> None:
    before_ms = time.time_ns() // 1_000_000
    resources = ResourceMeter(tmp_path).measure({7: 100, 3: 50})
    assert 1 << 20 < resources.memory_bytes <= resources.memory_total_bytes
    assert resources.cpu_count >= 1
    assert resources.disk_total_bytes > 0
    assert before_ms <= resources.started_ms <= time.time_ns() // 1_000_000
    assert [(usage.space_id, usage.bytes) for usage in resources.spaces] == [(3, 50), (7, 100)]


def test_folders_on_one_disk_have_one_disk_id(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    assert disk_id(tmp_path / "a") == disk_id(tmp_path)
    assert disk_id(Path("/proc")) != disk_id(tmp_path)


def test_a_daemon_without_a_folder_reports_no_disk() -> None:
    resources = ResourceMeter(None).measure()
    assert (resources.disk_id, resources.disk_total_bytes) == ("", 0)


def test_processor_use_is_measured_over_an_interval() -> None:
    """Two heartbeats in quick succession report the same measurement."""
    meter = ResourceMeter(None)
    meter._measured_at -= 10
    meter._cpu_s -= 5
    cores = meter.measure().cpu_cores
    assert cores >= 0.4  # 5 s in 10 s, less on a busy machine, more if other threads work
    assert meter.measure().cpu_cores == cores
    meter._measured_at -= 10
    assert meter.measure().cpu_cores < cores

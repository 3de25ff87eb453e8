"""Processor time and memory of the daemons of a cluster, as counted by the kernel."""

from __future__ import annotations

import urllib.request
from pathlib import Path

import psutil

from tests.kit.cluster import LocalCluster
from tests.kit.waiting import HANG_S, wait_until

MIB = 1 << 20


def busy_s(cluster: LocalCluster, name: str) -> float:
    """Return the processor time that a daemon has used so far."""
    times = psutil.Process(cluster[name].pid).cpu_times()
    return float(times.user + times.system)


def resident_bytes(cluster: LocalCluster, name: str) -> int:
    """Return the resident memory of a daemon in bytes."""
    return int(psutil.Process(cluster[name].pid).memory_info().rss)


def reset_peak(cluster: LocalCluster, name: str) -> int:
    """Reset the peak of a daemon's memory, and return its current memory."""
    Path(f"/proc/{cluster[name].pid}/clear_refs").write_text("5")
    return resident_bytes(cluster, name)


def peak_bytes(cluster: LocalCluster, name: str) -> int:
    """Return the peak memory of a daemon since `reset_peak`, in bytes."""
    status = Path(f"/proc/{cluster[name].pid}/status").read_text()
    return next(
        int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM")
    )


def in_flight(cluster: LocalCluster, name: str) -> int:
    """Return the number of calls in progress in a daemon."""
    with urllib.request.urlopen(
        f"http://{cluster[name].http_address}/metrics", timeout=HANG_S
    ) as reply:
        lines = reply.read().decode().splitlines()
    return int(
        sum(
            float(line.rpartition(" ")[2])
            for line in lines
            if line.startswith("asterism_calls_in_flight")
        )
    )


def wait_idle(cluster: LocalCluster, *names: str) -> None:
    """Wait until daemons have no call in progress."""
    wait_until(
        lambda: not any(in_flight(cluster, name) for name in names), f"{names} answer no call"
    )


def drain_cpu_s(cluster: LocalCluster, *names: str) -> dict[str, float]:
    """Wait until daemons have no call in progress; return the processor time used meanwhile."""
    before = {name: busy_s(cluster, name) for name in names}
    wait_idle(cluster, *names)
    return {name: busy_s(cluster, name) - used_before for name, used_before in before.items()}

"""Many concurrent trainers while a graphd is killed: results are correct or typed errors.

Nothing hangs, and memory stays bounded.
"""

from __future__ import annotations

import json
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from tests.kit import cases, zygote
from tests.kit.cluster import LocalCluster
from tests.kit.waiting import HANG_S, let_pass, wait_until

MIB = 1 << 20
PROCESSES = 4
SAMPLING_CALLS = (
    "nodes",
    "edges",
    "fanout",
    "walks",
    "subgraph",
    "neighbors",
    "negatives",
    "layer",
    "distinct",
    "probabilities",
    "scan",
    "features",
)
MAX_INCREASE_MIB = 400
"""Largest memory growth of a daemon: arenas of all serving threads, scratch of each."""


def run_trainers(
    cluster: LocalCluster, seconds: float, threads: int, seed: int, expected: Path
) -> dict[str, Any]:
    """Run a process of trainers and return its report."""
    process = zygote.run(
        "tests.kit.trainer", cluster.addresses, "cases", seconds, threads, seed, expected
    )
    assert process.returncode == 0, process.stderr
    report: dict[str, Any] = json.loads(process.stdout)
    return report


def resident_mib(cluster: LocalCluster) -> dict[str, float]:
    return {
        name: psutil.Process(daemon.pid).memory_info().rss / MIB
        for name, daemon in cluster.daemons.items()
    }


def in_flight(cluster: LocalCluster, name: str) -> float:
    with urllib.request.urlopen(
        f"http://{cluster[name].http_address}/metrics", timeout=HANG_S
    ) as reply:
        lines = reply.read().decode().splitlines()
    return float(
        next(line for line in lines if line.startswith("asterism_calls_in_flight")).rsplit(" ", 1)[
            1
        ]
    )


@pytest.mark.parametrize(
    ("clients", "seconds"),
    [(16, 4.0), pytest.param(64, 60.0, marks=pytest.mark.slow)],
    ids=["16 for seconds", "64 for a minute"],
)
def test_trainers_get_right_results_while_a_graphd_is_killed(
    tmp_path: Path, clients: int, seconds: float
) -> None:
    with LocalCluster(3, 2) as cluster, ThreadPoolExecutor(PROCESSES) as pool:
        graph = cases.load(cluster.client(timeout_s=HANG_S), "cases")
        expected = {
            name: digest
            for name, digest in cases.call_digests(graph).items()
            if any(call in name for call in SAMPLING_CALLS)
        }
        assert len(expected) > 40
        expected_file = tmp_path / "expected.json"
        expected_file.write_text(json.dumps(expected))
        before = resident_mib(cluster)
        running = [
            pool.submit(run_trainers, cluster, seconds, clients // PROCESSES, i, expected_file)
            for i in range(PROCESSES)
        ]
        let_pass(seconds / 2 + 0.5)  # trainers take half a second to start
        cluster.kill("graphd-1")
        reports = [report.result() for report in running]
        print(
            {
                key: [report[key] for report in reports]
                for key in ("calls", "fewest", "errors", "hung")
            }
        )
        for measure in (
            "seconds",
            "requests",
        ):  # a call of many requests, such as a scan in small batches, sums their times
            times = 1e3 * np.array([second for report in reports for second in report[measure]])
            print(
                f"{measure}, ms: {len(times)}, p50 {np.median(times):.1f}, p99 "
                f"{np.percentile(times, 99):.1f}, most {times.max():.1f}"
            )
        assert [name for report in reports for name in report["wrong"]] == []
        assert sum(report["hung"] for report in reports) == 0
        assert {name for report in reports for name in report["errors"]} <= {"Busy", "Unavailable"}
        assert sum(sum(report["errors"].values()) for report in reports) <= 2 * clients, (
            "each client may lose what the killed one was answering"
        )
        assert min(report["fewest"] for report in reports) > 0
        cluster.restart("graphd-1")
        after = resident_mib(cluster)
        increases = {name: after[name] - before[name] for name in before if name != "graphd-1"}
        print(f"MiB more: { {name: round(increase) for name, increase in increases.items()} }")
        assert max(increases.values()) <= MAX_INCREASE_MIB
        assert cases.call_digests(graph) == cases.call_digests(cluster.client().graph("cases"))
        wait_until(
            lambda: [in_flight(cluster, name) for name in ("graphd-0", "storaged-0")] == [0, 0],
            "no call is in flight",
            poll_interval_s=0.1,
        )

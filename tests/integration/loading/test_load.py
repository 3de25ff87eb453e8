"""Many concurrent trainers while a graphd is killed: results are correct or typed errors.

Nothing hangs, and memory stays bounded.
"""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from typing import Any

import numpy as np
import psutil
import pytest
from tests.kit import cases
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


def start_trainers(
    cluster: LocalCluster, seconds: float, threads: int, seed: int, expected: dict[str, str]
) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        "-m",
        "tests.kit.trainer",
        cluster.addresses,
        "cases",
        str(seconds),
        str(threads),
        str(seed),
    ]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    process.stdin.write(json.dumps(expected))
    process.stdin.close()
    return process


def trainer_report(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    process.stdin = None
    out, _ = process.communicate(timeout=HANG_S)
    report: dict[str, Any] = json.loads(out)
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
    [(16, 6.0), pytest.param(64, 60.0, marks=pytest.mark.slow)],
    ids=["16 for seconds", "64 for a minute"],
)
def test_trainers_get_right_results_while_a_graphd_is_killed(clients: int, seconds: float) -> None:
    with LocalCluster(3, 2) as cluster:
        graph = cases.load(cluster.client(timeout_s=HANG_S), "cases")
        expected = {
            name: digest
            for name, digest in cases.call_digests(graph).items()
            if any(call in name for call in SAMPLING_CALLS)
        }
        assert len(expected) > 40
        before = resident_mib(cluster)
        processes = [
            start_trainers(cluster, seconds, clients // PROCESSES, i, expected)
            for i in range(PROCESSES)
        ]
        let_pass(seconds / 2 + 1)  # trainers take a second to start
        cluster.kill("graphd-1")
        reports = [trainer_report(process) for process in processes]
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

"""Idle daemons wait for events and deadlines instead of polling.

The tests count wakes, because CPU time depends on the load of the machine. ``python -m
tests.benchmarks.idle`` prints shares of a core.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.kit import bodies, wakes
from tests.kit.cluster import LocalCluster
from tests.kit.deployment import Deployment

WINDOW_S = 4.0
BOUNDS = {"metad": 110.0, "storaged-0": 90.0, "graphd-0": 90.0}
"""Bound on wakes per second of an idle daemon, over all threads: twice the measured rate.

Most wakes are gRPC's. A thread at a completion queue wakes five times a second to check for
signals. A worker of its pool checks for more work eleven times in the second after a heartbeat. A
loop that polls a hundred times a second exceeds each bound.
"""
OWN_BOUND = 2.5
"""Bound on wakes per second of one thread of a daemon.

Heartbeats occur once a second. The maintenance of metad waits twice for each check, which occurs
every two seconds.
"""
PARKED_BOUND = 1.0
"""Bound for a thread that waits for changes of metad's catalog: it wakes every 10 s."""


def min_wake_rates(windows: int, window_s: float) -> dict[str, float]:
    """Return the lowest rate of wakes of each daemon over several windows.

    Occasional work is missing in some windows; a polling loop shows in all of them.
    """
    with LocalCluster(1, 1, fast=False, cold=True) as cluster:
        with cluster.client() as client:
            bodies.assert_build_published(client, "shop")
        pids = {name: daemon.pid for name, daemon in cluster.daemons.items()}
        samples = list(
            wakes.print_windows(
                lambda: {
                    name: sum(rate.values())
                    for name, rate in wakes.wake_rates(pids, window_s).items()
                },
                windows,
            )
        )
    return {name: min(rates[name] for rates in samples) for name in pids}


def assert_quiet(rates: Mapping[str, float]) -> None:
    assert {name: rate for name, rate in rates.items() if rate > BOUNDS[name]} == {}


def test_an_idle_daemon_waits_and_does_not_poll() -> None:
    assert_quiet(min_wake_rates(3, WINDOW_S))


@pytest.mark.slow
def test_an_idle_daemon_waits_over_minutes_too() -> None:
    assert_quiet(min_wake_rates(4, 30.0))


def test_each_thread_of_idle_daemons_wakes_for_events_alone(tmp_path: Path) -> None:
    others = {thread.native_id for thread in threading.enumerate()}
    deployment = Deployment(tmp_path, storageds=1, heartbeat_interval_s=1.0, poll_wait_s=10.0)
    try:
        deployment.publish("shop")
        names = {
            thread.native_id: thread.name
            for thread in threading.enumerate()
            if thread.native_id not in others
        }

        def measure() -> dict[str, float]:
            wake_rates = wakes.wake_rates({"here": os.getpid()}, 2.0)["here"]
            return {
                f"{names[task]} {task}": rate for task, rate in wake_rates.items() if task in names
            }

        windows = list(wakes.print_windows(measure, 4))
    finally:
        deployment.stop()
    rates = {name: min(window.get(name, 0.0) for window in windows) for name in windows[0]}
    parked = {name: rate for name, rate in rates.items() if name.startswith("poll ")}
    assert len(parked) == 2, rates
    assert {
        name: rate
        for name, rate in rates.items()
        if rate > (PARKED_BOUND if name in parked else OWN_BOUND)
    } == {}

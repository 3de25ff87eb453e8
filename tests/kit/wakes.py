"""Wakes of idle processes: voluntary context switches of their threads, and their share of the processor."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path


def switches(pid: int) -> dict[int, int]:
    """Return the voluntary context switches of each thread of a process since its start, by thread id."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # it has ended
            text = (task / "status").read_text()
            found[int(task.name)] = int(text.partition("\nvoluntary_ctxt_switches:")[2].split()[0])
    return found


def cpu_s(pid: int) -> float:
    """Return the CPU time of all threads of a process, to the nanosecond."""
    return sum(int(path.read_text().split()[0]) for path in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def rates(pids: Mapping[str, int], window_s: float) -> dict[str, dict[int, float]]:
    """Return the wakes per second of each thread that lives through a window, by process name and thread id.

    Counts do not depend on the machine's load, as CPU time does: a thread wakes when an event or a deadline comes. Only waiting
    for a lock that a preempted thread holds adds to them; that differs from window to window, so the least of several windows
    is what a process always does.
    """
    begun = time.monotonic()
    before = {name: switches(pid) for name, pid in pids.items()}
    time.sleep(window_s)  # this time itself is what is measured
    passed = time.monotonic() - begun
    after = {name: switches(pid) for name, pid in pids.items()}
    return {name: {task: (count - before[name][task]) / passed for task, count in after[name].items() if task in before[name]} for name in pids}


def shares(pids: Mapping[str, int], window_s: float) -> dict[str, float]:
    """Return the share of a core that each process takes over a window."""
    begun = time.monotonic()
    before = {name: cpu_s(pid) for name, pid in pids.items()}
    time.sleep(window_s)
    return {name: (cpu_s(pid) - before[name]) / (time.monotonic() - begun) for name, pid in pids.items()}


def each(measure: Callable[[], Mapping[str, float]], windows: int) -> Iterator[Mapping[str, float]]:
    """Measure several windows, and print each."""
    for _ in range(windows):
        found = measure()
        print({name: round(value, 2) for name, value in found.items()})
        yield found

"""Wakes of idle processes: context switches of their threads, and processor share."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path


def context_switches(pid: int) -> dict[int, int]:
    """Return the voluntary context switches of a process since its start, by thread id."""
    counts = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # the thread may have ended
            text = (task / "status").read_text()
            counts[int(task.name)] = int(text.partition("\nvoluntary_ctxt_switches:")[2].split()[0])
    return counts


def cpu_s(pid: int) -> float:
    """Return the CPU time of all threads of a process, to the nanosecond."""
    return (
        sum(
            int(path.read_text().split()[0])
            for path in Path(f"/proc/{pid}/task").glob("*/schedstat")
        )
        / 1e9
    )


def wake_rates(pids: Mapping[str, int], window_s: float) -> dict[str, dict[int, float]]:
    """Return the wakes per second of threads over a window, by process name and thread id.

    Only threads that live through the window count.

    Counts do not depend on the machine's load, as CPU time does: a thread wakes when an event or a
    deadline comes. Only waiting for a lock that a preempted thread holds adds to them; that differs
    from window to window, so the minimum over several windows is a property of the process."""
    started = time.monotonic()
    before = {name: context_switches(pid) for name, pid in pids.items()}
    time.sleep(window_s)  # the window that is measured
    elapsed_s = time.monotonic() - started
    after = {name: context_switches(pid) for name, pid in pids.items()}
    return {
        name: {
            task: (count - before[name][task]) / elapsed_s
            for task, count in after[name].items()
            if task in before[name]
        }
        for name in pids
    }


def core_shares(pids: Mapping[str, int], window_s: float) -> dict[str, float]:
    """Return the share of a core that each process takes over a window."""
    started = time.monotonic()
    before = {name: cpu_s(pid) for name, pid in pids.items()}
    time.sleep(window_s)
    return {
        name: (cpu_s(pid) - before[name]) / (time.monotonic() - started)
        for name, pid in pids.items()
    }


def print_windows(
    measure: Callable[[], Mapping[str, float]], windows: int
) -> Iterator[Mapping[str, float]]:
    """Measure several windows, and print each."""
    for _ in range(windows):
        measured = measure()
        print({name: round(value, 2) for name, value in measured.items()})
        yield measured

"""How much this graphd answers, and how fast: a ring of differences of its own metrics, bounded and gone with the process."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from daemonkit.metrics import SECONDS, Metrics, Seen

STEP_S = 5.0
"""Of one measurement."""
KEPT = 360
"""Measurements that are kept: half an hour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What was answered between two measurements."""

    ended_ms: int
    seconds: float
    seen: Mapping[str, Seen]
    """By method; those that were not called are left out."""


class Rates:
    """Measures a daemon every few seconds, in a thread of its own.

    Parameters
    ----------
    metrics : Metrics
    step_s : float
        Seconds between two measurements.
    """

    def __init__(self, metrics: Metrics, step_s: float = STEP_S) -> None:
        self._metrics = metrics
        self.step_s = step_s
        self._steps: deque[Step] = deque(maxlen=KEPT)
        self._before = metrics.seen()
        self._at = time.monotonic()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rates", daemon=True)

    def start(self) -> None:
        """Begin to measure."""
        self._thread.start()

    def stop(self) -> None:
        """Measure no more."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(5)

    def steps(self) -> list[Step]:
        """What is kept, oldest first."""
        return list(self._steps)

    def measure(self) -> None:
        """Take one measurement."""
        now, seen = time.monotonic(), self._metrics.seen()
        apart = {method: all_.since(self._before.get(method)) for method, all_ in seen.items()}
        step = Step(ended_ms=time.time_ns() // 1_000_000, seconds=now - self._at, seen={method: one for method, one in apart.items() if one.calls})
        self._before, self._at = seen, now
        self._steps.append(step)

    def _run(self) -> None:
        while not self._stopping.wait(self.step_s):
            self.measure()


def together(seen: Sequence[Seen]) -> Seen:
    """Several counts as one."""
    return Seen(
        calls=sum(one.calls for one in seen),
        errors=sum(one.errors for one in seen),
        buckets=tuple(sum(column) for column in zip(*(one.buckets for one in seen), strict=True)) if seen else (0,) * (len(SECONDS) + 1),
    )


def quantile(seen: Seen, share: float) -> float | None:
    """Seconds within which this share of calls was answered; None without calls.

    Notes
    -----
    Between the bounds of a bucket it is interpolated by the logarithm; beyond the last bound it is that bound.
    """
    timed = sum(seen.buckets)
    if not timed:
        return None
    rank, below = share * timed, 0
    for bucket, count in enumerate(seen.buckets):
        if count and below + count >= rank:
            if bucket == len(SECONDS):
                return SECONDS[-1]
            low = SECONDS[bucket - 1] if bucket else SECONDS[0] / 2
            return float(low * (SECONDS[bucket] / low) ** ((rank - below) / count))
        below += count
    return SECONDS[-1]

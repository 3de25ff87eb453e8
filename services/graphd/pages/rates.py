"""Call rates and latencies of this graphd: a ring buffer of differences of its metrics.

It is bounded and does not outlive the process.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from asterism_daemonkit.metrics import LATENCY_BUCKETS_S, MethodStats, Metrics

INTERVAL_S = 5.0
"""Seconds of one measurement."""
MAX_INTERVALS = 360
"""Maximum number of measurements: half an hour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RateInterval:
    """Calls between two measurements."""

    ended_ms: int
    seconds: float
    by_method: Mapping[str, MethodStats]
    """Statistics by method; methods without calls are absent."""


class RateMonitor:
    """Measure a daemon's metrics every few seconds, in a separate thread.

    Parameters
    ----------
    metrics : Metrics
    interval_s : float
        Seconds between two measurements.
    """

    def __init__(self, metrics: Metrics, interval_s: float = INTERVAL_S) -> None:
        self._metrics = metrics
        self.interval_s = interval_s
        self._intervals: deque[RateInterval] = deque(maxlen=MAX_INTERVALS)
        self._calls_counted = metrics.calls_counted
        self._previous = metrics.method_stats()
        self._measured_at = time.monotonic()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rates", daemon=True)

    def start(self) -> None:
        """Start measuring."""
        self._thread.start()

    def stop(self) -> None:
        """Stop measuring."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(5)

    def intervals(self) -> list[RateInterval]:
        """Return the stored intervals, oldest first."""
        return list(self._intervals)

    def measure(self) -> None:
        """Take one measurement."""
        now, calls_counted = time.monotonic(), self._metrics.calls_counted
        totals = (
            self._previous if calls_counted == self._calls_counted else self._metrics.method_stats()
        )
        deltas = {
            method: total.since(self._previous.get(method)) for method, total in totals.items()
        }
        interval = RateInterval(
            ended_ms=time.time_ns() // 1_000_000,
            seconds=now - self._measured_at,
            by_method={method: delta for method, delta in deltas.items() if delta.calls},
        )
        self._previous, self._measured_at = totals, now
        self._calls_counted = calls_counted
        self._intervals.append(interval)

    def _run(self) -> None:
        while not self._stopping.wait(self.interval_s):
            self.measure()


def combine(method_stats: Sequence[MethodStats]) -> MethodStats:
    """Return the sum of several statistics."""
    return MethodStats(
        calls=sum(stats.calls for stats in method_stats),
        errors=sum(stats.errors for stats in method_stats),
        buckets=tuple(
            sum(column) for column in zip(*(stats.buckets for stats in method_stats), strict=True)
        )
        if method_stats
        else (0,) * (len(LATENCY_BUCKETS_S) + 1),
    )


def quantile(stats: MethodStats, fraction: float) -> float | None:
    """Return a quantile of call latencies in seconds; None without calls.

    Notes
    -----
    Values between the bounds of a bucket are interpolated on a logarithmic scale. Beyond the last
    bound the result is that bound."""
    call_count = sum(stats.buckets)
    if not call_count:
        return None
    rank, below = fraction * call_count, 0
    for bucket, count in enumerate(stats.buckets):
        if count and below + count >= rank:
            if bucket == len(LATENCY_BUCKETS_S):
                return LATENCY_BUCKETS_S[-1]
            low = LATENCY_BUCKETS_S[bucket - 1] if bucket else LATENCY_BUCKETS_S[0] / 2
            return float(low * (LATENCY_BUCKETS_S[bucket] / low) ** ((rank - below) / count))
        below += count
    return LATENCY_BUCKETS_S[-1]
